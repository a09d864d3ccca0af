//// weak: from is an argument
contract Collector {
  IERC20 public immutable token;
  constructor(IERC20 t) { token = t; }
  function collect(address from, uint256 amount) external {
    require(token.transferFrom(from, address(this), amount)); // !
  }
}
//// weak: through a library and an internal function
import "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
contract Router {
  using SafeERC20 for IERC20;
  function pay(IERC20 token, address payer, address payee, uint256 amount) external { _pull(token, payer, payee, amount); }
  function _pull(IERC20 t, address a, address b, uint256 n) private {
    t.safeTransferFrom(a, b, n); // !
  }
}
//// weak: the owner of a stored order is not who calls
contract Orders {
  struct Order { address maker; IERC20 token; uint256 amount; }
  function fill(Order calldata order, address to) external {
    order.token.transferFrom(order.maker, to, order.amount); // !
  }
}
//// clean: from is the caller
contract Collector {
  IERC20 public immutable token;
  mapping(address => uint256) public paid;
  constructor(IERC20 t) { token = t; }
  function collect(uint256 amount) external { paid[msg.sender] += amount; _pull(msg.sender, amount); }
  function _pull(address from, uint256 amount) private { require(token.transferFrom(from, address(this), amount)); }
}
//// clean: an approved operator of from
contract Mover {
  IERC20 public immutable token;
  mapping(address => mapping(address => bool)) public operators;
  constructor(IERC20 t) { token = t; }
  function setOperator(address who, bool yes) external { operators[msg.sender][who] = yes; }
  function move(address from, address to, uint256 amount) external {
    require(from == msg.sender || operators[from][msg.sender], "not yours");
    require(token.transferFrom(from, to, amount));
  }
}
