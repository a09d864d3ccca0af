//// weak: v3 params filled field by field
interface R3 { struct ExactInputSingleParams { address tokenIn; address tokenOut; uint24 fee; address recipient; uint256 amountIn; uint256 amountOutMinimum; uint160 sqrtPriceLimitX96; } function exactInputSingle(ExactInputSingleParams calldata p) external payable returns (uint256); }
contract P2 {
    R3 immutable r; constructor(R3 x) { r = x; }
    function zap(address i, address o, uint256 v) external returns (uint256) {
        R3.ExactInputSingleParams memory p;
        p.tokenIn = i; p.tokenOut = o; p.fee = 3000; p.recipient = msg.sender; p.amountIn = v;
        return r.exactInputSingle(p); // !
    }
}
//// weak: liquidity added with zeros
interface L { function addLiquidity(address a, address b, uint256 x, uint256 y, uint256 mx, uint256 my, address t, uint256 d) external returns (uint256, uint256, uint256); }
contract P4 { L immutable l; constructor(L x) { l = x; } function provide(address a, address b, uint256 x, uint256 y) external { l.addLiquidity(a, b, x, y, 0, 0, address(this), block.timestamp); } } // !
//// clean: checked after
interface Curve { function exchange(int128 i, int128 j, uint256 dx, uint256 min) external returns (uint256); }
contract P7 { Curve immutable c; error Low(uint256 got); constructor(Curve x) { c = x; } function go(uint256 v, uint256 least) external returns (uint256 got) { got = c.exchange(0, 1, v, 0); if (got < least) revert Low(got); } }
