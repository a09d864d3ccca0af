//// weak: v2 with zero by way of a constant
interface R2 { function swapExactTokensForTokens(uint256 a, uint256 m, address[] calldata p, address t, uint256 d) external returns (uint256[] memory); }
contract P1 {
    R2 immutable r; uint256 private constant ANY = 0; address immutable a; address immutable b;
    constructor(R2 x, address y, address z) { r = x; a = y; b = z; }
    function harvest() external { address[] memory p = new address[](2); p[0] = a; p[1] = b; r.swapExactTokensForTokens(1e18, ANY, p, address(this), block.timestamp); } // !
}
//// weak: eth bought with a minimum of one
pragma solidity ^0.6.0;
interface RE { function swapExactETHForTokens(uint m, address[] calldata p, address t, uint d) external payable returns (uint[] memory); }
contract P3 {
    RE router; address[] path;
    constructor(RE r, address[] memory p) public { router = r; path = p; }
    function buy() external payable { router.swapExactETHForTokens{value: msg.value}(1, path, msg.sender, now + 60); } // !
}
//// weak: a curve exchange whose least is read from the same pool
interface Curve { function exchange(int128 i, int128 j, uint256 dx, uint256 min) external returns (uint256); function get_dy(int128 i, int128 j, uint256 dx) external view returns (uint256); }
contract P5 { Curve immutable c; constructor(Curve x) { c = x; } function rebalance(uint256 v) external returns (uint256) { uint256 q = c.get_dy(0, 1, v); return c.exchange(0, 1, v, q * 99 / 100); } } // !
//// clean: the caller's least
interface R2 { function swapExactTokensForTokens(uint256 a, uint256 m, address[] calldata p, address t, uint256 d) external returns (uint256[] memory); }
contract P6 { R2 immutable r; constructor(R2 x) { r = x; } function swap(uint256 v, uint256 least, address[] calldata p, uint256 d) external { r.swapExactTokensForTokens(v, least, p, msg.sender, d); } }
