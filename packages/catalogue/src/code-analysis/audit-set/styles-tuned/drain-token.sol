//// weak: rescue for anybody
interface IERC20 { function transfer(address t, uint256 v) external returns (bool); function balanceOf(address a) external view returns (uint256); }
contract Staking {
    IERC20 public immutable stake; mapping(address => uint256) public held;
    constructor(IERC20 s) { stake = s; }
    function rescue(IERC20 token, address to) external { // !
        require(token.transfer(to, token.balanceOf(address(this))), "t"); // !
    }
}
//// weak: a payment whose amount the caller states and nobody books
import {SafeTransferLib} from "solady/utils/SafeTransferLib.sol";
contract Payroll {
    address immutable usd; bool private entered; event Paid(address to, uint256 v);
    error Entered();
    constructor(address u) { usd = u; }
    modifier lock() { if (entered) revert Entered(); entered = true; _; entered = false; }
    function settle(address employee, uint256 amount) external lock {
        SafeTransferLib.safeTransfer(usd, employee, amount); // !
        emit Paid(employee, amount);
    }
}
//// weak: an NFT that anybody takes out of the escrow
interface I721 { function safeTransferFrom(address a, address b, uint256 id) external; function transferFrom(address a, address b, uint256 id) external; }
contract Escrow {
    mapping(address => mapping(uint256 => address)) public depositor;
    function deposit(I721 n, uint256 id) external { n.transferFrom(msg.sender, address(this), id); depositor[address(n)][id] = msg.sender; }
    function withdraw(I721 n, uint256 id) external {
        require(depositor[address(n)][id] != address(0), "none");
        delete depositor[address(n)][id];
        n.safeTransferFrom(address(this), msg.sender, id); // !
    }
}
//// clean: what was put in comes out
import "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
contract Box {
    using SafeERC20 for IERC20;
    IERC20 immutable t; mapping(address => uint256) held;
    constructor(IERC20 x) { t = x; }
    function put(uint256 v) external { t.safeTransferFrom(msg.sender, address(this), v); held[msg.sender] += v; }
    function get(uint256 v, address to) external { held[msg.sender] -= v; t.safeTransfer(to, v); }
}
//// clean: an escrow that returns to whom it took it from
interface I721 { function safeTransferFrom(address a, address b, uint256 id) external; function transferFrom(address a, address b, uint256 id) external; }
contract Escrow2 {
    mapping(address => mapping(uint256 => address)) public depositor;
    error NotYours();
    function deposit(I721 n, uint256 id) external { depositor[address(n)][id] = msg.sender; n.transferFrom(msg.sender, address(this), id); }
    function withdraw(I721 n, uint256 id) external {
        if (depositor[address(n)][id] != msg.sender) revert NotYours();
        delete depositor[address(n)][id];
        n.safeTransferFrom(address(this), msg.sender, id);
    }
}
