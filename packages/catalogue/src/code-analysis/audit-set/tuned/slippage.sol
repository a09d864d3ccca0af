//// weak: a minimum of zero
contract Buyer {
  IRouter public immutable router;
  constructor(IRouter r) { router = r; }
  function buy(uint256 amount, address[] calldata path) external {
    IERC20(path[0]).transferFrom(msg.sender, address(this), amount);
    IERC20(path[0]).approve(address(router), amount);
    router.swapExactTokensForTokens(amount, 0, path, msg.sender, block.timestamp); // !
  }
}
//// weak: a struct with zero
contract Buyer3 {
  ISwap3 public immutable router;
  constructor(ISwap3 r) { router = r; }
  function buy(address a, address b, uint256 amount) external returns (uint256 out) {
    ISwap3.ExactInputSingleParams memory p = ISwap3.ExactInputSingleParams({
      tokenIn: a, tokenOut: b, fee: 3000, recipient: msg.sender, deadline: block.timestamp,
      amountIn: amount, amountOutMinimum: 0, sqrtPriceLimitX96: 0 });
    out = router.exactInputSingle(p); // !
  }
}
//// weak: the minimum comes from the same pool
contract Quoted {
  IRouter public immutable router;
  constructor(IRouter r) { router = r; }
  function buy(uint256 amount, address[] calldata path) external {
    uint256[] memory q = router.getAmountsOut(amount, path);
    uint256 least = q[q.length - 1] * 99 / 100;
    IERC20(path[0]).transferFrom(msg.sender, address(this), amount);
    router.swapExactTokensForTokens(amount, least, path, msg.sender, block.timestamp); // !
  }
}
//// clean: the caller says the least
contract Buyer {
  IRouter public immutable router;
  constructor(IRouter r) { router = r; }
  function buy(uint256 amount, uint256 least, address[] calldata path, uint256 deadline) external {
    require(IERC20(path[0]).transferFrom(msg.sender, address(this), amount));
    require(IERC20(path[0]).approve(address(router), amount));
    router.swapExactTokensForTokens(amount, least, path, msg.sender, deadline);
  }
}
