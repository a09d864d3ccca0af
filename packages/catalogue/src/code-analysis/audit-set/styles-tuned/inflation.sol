//// weak: a vault that divides by its token balance
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract V1 is ERC20 {
    IERC20 immutable a;
    constructor(IERC20 x) ERC20("v", "v") { a = x; }
    function deposit(uint256 v) external {
        uint256 t = totalSupply(); uint256 pool = a.balanceOf(address(this));
        uint256 s = t == 0 ? v : v * t / pool; // !
        require(a.transferFrom(msg.sender, address(this), v));
        _mint(msg.sender, s); // !
    }
    function leave(uint256 s) external { uint256 v = s * a.balanceOf(address(this)) / totalSupply(); _burn(msg.sender, s); require(a.transfer(msg.sender, v)); }
}
//// weak: shares of ether by the contract's balance
import {ERC20} from "solmate/tokens/ERC20.sol";
import {FixedPointMathLib} from "solmate/utils/FixedPointMathLib.sol";
contract V3 is ERC20("st", "st", 18) {
    using FixedPointMathLib for uint256;
    function stake() external payable returns (uint256 s) {
        uint256 before = address(this).balance - msg.value;
        s = totalSupply == 0 ? msg.value : msg.value.mulDivDown(totalSupply, before); // !
        _mint(msg.sender, s); // !
    }
    function unstake(uint256 s) external { uint256 v = s.mulDivDown(address(this).balance, totalSupply); _burn(msg.sender, s); (bool ok, ) = msg.sender.call{value: v}(""); require(ok); }
    receive() external payable {}
}
//// clean: OpenZeppelin's ERC4626 with virtual shares
import "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
contract V5 is ERC4626 { constructor(IERC20 a) ERC4626(a) ERC20("x", "x") {} function _decimalsOffset() internal pure override returns (uint8) { return 6; } }
//// clean: books of its own assets
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract V7 is ERC20 {
    IERC20 immutable a; uint256 public assets;
    constructor(IERC20 x) ERC20("v", "v") { a = x; }
    function deposit(uint256 v) external { uint256 t = totalSupply(); uint256 s = t == 0 ? v : v * t / assets; require(s > 0); assets += v; require(a.transferFrom(msg.sender, address(this), v)); _mint(msg.sender, s); }
}
