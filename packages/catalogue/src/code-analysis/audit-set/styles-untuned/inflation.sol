//// weak: own books of shares, in an older compiler, with a helper for the price
pragma solidity ^0.6.12;
interface T { function balanceOf(address) external view returns (uint256); function transfer(address, uint256) external returns (bool); function transferFrom(address, address, uint256) external returns (bool); }
library M { function mul(uint a, uint b) internal pure returns (uint c) { c = a * b; require(a == 0 || c / a == b); } function add(uint a, uint b) internal pure returns (uint c) { c = a + b; require(c >= a); } function sub(uint a, uint b) internal pure returns (uint) { require(b <= a); return a - b; } }
contract V2 {
    using M for uint256;
    T token; uint256 public shares; mapping(address => uint256) public held;
    constructor(T t) public { token = t; }
    function holdings() public view returns (uint256) { return token.balanceOf(address(this)); }
    function join(uint256 v) external {
        uint256 got = v;
        if (shares > 0) { got = v.mul(shares) / holdings(); } // !
        require(token.transferFrom(msg.sender, address(this), v), "in");
        shares = shares.add(got); held[msg.sender] = held[msg.sender].add(got); // !
    }
    function exit(uint256 s) external {
        uint256 v = s.mul(holdings()) / shares;
        held[msg.sender] = held[msg.sender].sub(s); shares = shares.sub(s);
        require(token.transfer(msg.sender, v), "out");
    }
}
//// weak: solmate's ERC4626 with the balance as its assets
import {ERC4626} from "solmate/tokens/ERC4626.sol";
import {ERC20} from "solmate/tokens/ERC20.sol";
contract V4 is ERC4626 {
    constructor(ERC20 a) ERC4626(a, "x", "x") {}
    function totalAssets() public view override returns (uint256) { return asset.balanceOf(address(this)); } // !
}
//// clean: one more than nobody and a floor of shares
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract V6 is ERC20 {
    IERC20 immutable a; error Few();
    constructor(IERC20 x) ERC20("v", "v") { a = x; }
    function deposit(uint256 v, uint256 least) external {
        uint256 s = v * (totalSupply() + 1000) / (a.balanceOf(address(this)) + 1);
        if (s == 0 || s < least) revert Few();
        require(a.transferFrom(msg.sender, address(this), v));
        _mint(msg.sender, s);
    }
}
