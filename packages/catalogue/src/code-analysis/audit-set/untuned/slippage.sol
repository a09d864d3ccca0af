//// weak: liquidity at any price
interface IR2 { function addLiquidity(address a, address b, uint256 x, uint256 y, uint256 amountAMin, uint256 amountBMin, address to, uint256 deadline) external returns (uint256, uint256, uint256); }
contract Zap {
  IR2 public immutable r;
  constructor(IR2 x) { r = x; }
  function join(address a, address b, uint256 x, uint256 y) external {
    r.addLiquidity(a, b, x, y, 0, 0, msg.sender, block.timestamp); // !
  }
}
//// weak: a local zero
contract Harvester {
  IRouter public immutable router;
  address[] public path;
  address public immutable to;
  constructor(IRouter r, address[] memory p, address t) { router = r; path = p; to = t; }
  function harvest() external {
    uint256 least;
    uint256 all = IERC20(path[0]).balanceOf(address(this));
    router.swapExactTokensForTokens(all, least, path, to, block.timestamp); // !
  }
}
//// weak: a pool of its own that asks for no minimum
contract Amm {
  IERC20 public immutable a;
  IERC20 public immutable b;
  constructor(IERC20 x, IERC20 y) { a = x; b = y; }
  function swap(uint256 amountIn) external returns (uint256 out) {
    uint256 ra = a.balanceOf(address(this));
    uint256 rb = b.balanceOf(address(this));
    out = amountIn * rb / (ra + amountIn);
    require(a.transferFrom(msg.sender, address(this), amountIn));
    require(b.transfer(msg.sender, out)); // !
  }
}
//// clean: a pool that asks for a minimum
contract Amm {
  IERC20 public immutable a;
  IERC20 public immutable b;
  constructor(IERC20 x, IERC20 y) { a = x; b = y; }
  function swap(uint256 amountIn, uint256 least) external returns (uint256 out) {
    uint256 ra = a.balanceOf(address(this));
    out = amountIn * b.balanceOf(address(this)) / (ra + amountIn);
    require(out >= least, "moved");
    require(a.transferFrom(msg.sender, address(this), amountIn));
    require(b.transfer(msg.sender, out));
  }
}
