//// weak: solady, from a loop
import {SafeTransferLib} from "solady/src/utils/SafeTransferLib.sol";
contract Batch {
  function many(address token, address[] calldata from, uint256 each) external {
    for (uint256 i; i < from.length; ++i) {
      SafeTransferLib.safeTransferFrom(token, from[i], msg.sender, each); // !
    }
  }
}
//// weak: by a low-level call
contract Low {
  function take(address token, address from, uint256 v) external {
    (bool ok, ) = token.call(abi.encodeWithSelector(IERC20.transferFrom.selector, from, address(this), v)); // !
    require(ok, "failed");
  }
}
//// weak: the deposit is credited to another than who pays
contract Deposits {
  IERC20 public immutable token;
  mapping(address => uint256) public held;
  constructor(IERC20 t) { token = t; }
  function depositFor(address payer, address receiver, uint256 v) external {
    held[receiver] += v;
    require(token.transferFrom(payer, address(this), v), "pay"); // !
  }
  function leave(uint256 v) external { held[msg.sender] -= v; require(token.transfer(msg.sender, v)); }
}
//// clean: credited to another, paid by the caller
contract Deposits {
  IERC20 public immutable token;
  mapping(address => uint256) public held;
  constructor(IERC20 t) { token = t; }
  function depositFor(address receiver, uint256 v) external {
    address payer = msg.sender;
    held[receiver] += v;
    require(token.transferFrom(payer, address(this), v), "pay");
  }
  function leave(uint256 v) external { held[msg.sender] -= v; require(token.transfer(msg.sender, v)); }
}
//// clean: a token's own transferFrom
contract T {
  mapping(address => uint256) public balanceOf;
  mapping(address => mapping(address => uint256)) public allowance;
  constructor() { balanceOf[msg.sender] = 1e24; }
  function approve(address s, uint256 v) external returns (bool) { allowance[msg.sender][s] = v; return true; }
  function transferFrom(address from, address to, uint256 v) external returns (bool) {
    allowance[from][msg.sender] -= v;
    balanceOf[from] -= v;
    balanceOf[to] += v;
    return true;
  }
}
