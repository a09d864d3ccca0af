//// weak: an arbitrary call with the contract's own name
contract Executor {
  mapping(address => uint256) public used;
  function run(address target, bytes calldata data) external returns (bytes memory out) {
    bool ok;
    used[target]++;
    (ok, out) = target.call(data); // !
    require(ok, "failed");
  }
}
//// weak: solmate, an internal function
import {SafeTransferLib} from "solmate/src/utils/SafeTransferLib.sol";
import {ERC20} from "solmate/src/tokens/ERC20.sol";
contract Locker {
  using SafeTransferLib for ERC20;
  uint256 public immutable until = block.timestamp + 1 days;
  function exit(ERC20 token, address to) external { _all(token, to); }
  function _all(ERC20 t, address to) internal {
    t.safeTransfer(to, t.balanceOf(address(this))); // !
  }
}
//// weak: an NFT goes to whoever asks
interface INft { function safeTransferFrom(address f, address t, uint256 id) external; }
contract Chest {
  INft public immutable nft;
  constructor(INft n) { nft = n; }
  function open(uint256 id) external {
    nft.safeTransferFrom(address(this), msg.sender, id); // !
  }
}
//// clean: an owner rescues
import "@openzeppelin/contracts/access/Ownable.sol";
import "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
contract Splitter is Ownable {
  using SafeERC20 for IERC20;
  constructor() Ownable(msg.sender) {}
  function rescue(IERC20 token, address to) external onlyOwner { token.safeTransfer(to, token.balanceOf(address(this))); }
}
//// clean: vesting for the beneficiary
contract Vest {
  IERC20 public immutable token;
  address public immutable who;
  uint256 public released;
  uint256 public immutable start = block.timestamp;
  constructor(IERC20 t, address w) { token = t; who = w; }
  function release() external {
    uint256 v = (block.timestamp - start) * 1e15 - released;
    released += v;
    require(token.transfer(who, v));
  }
}
