//// weak: a rescue for everybody
contract Splitter {
  address public owner = msg.sender;
  event Rescued(address token, uint256 amount);
  function rescue(IERC20 token, address to) external {
    uint256 all = token.balanceOf(address(this));
    require(token.transfer(to, all)); // !
    emit Rescued(address(token), all);
  }
}
//// weak: an amount of the caller's choice, with a counter
contract Faucet {
  IERC20 public token;
  uint256 public given;
  bool public open = true;
  constructor(IERC20 t) { token = t; }
  function claim(uint256 amount) external {
    require(open && amount > 0, "closed");
    given += amount;
    require(token.transfer(msg.sender, amount)); // !
  }
}
//// weak: anybody lets a stranger spend
import "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
contract Treasury {
  using SafeERC20 for IERC20;
  function allow(IERC20 token, address spender, uint256 amount) external {
    token.forceApprove(spender, amount); // !
  }
}
//// clean: what was put in comes out
contract Bank {
  IERC20 public immutable token;
  mapping(address => uint256) internal held;
  constructor(IERC20 t) { token = t; }
  function put(uint256 v) external { held[msg.sender] += v; require(token.transferFrom(msg.sender, address(this), v)); }
  function take(uint256 v, address to) external { held[msg.sender] -= v; require(token.transfer(to, v)); }
}
//// clean: to a fixed treasury
contract Fees {
  address public immutable treasury;
  constructor(address t) { treasury = t; }
  function flush(IERC20 token) external { require(token.transfer(treasury, token.balanceOf(address(this)))); }
}
