//// weak: a swap callback pays whoever calls
contract Trader {
  IERC20 public immutable token;
  constructor(IERC20 t) { token = t; }
  function uniswapV3SwapCallback(int256 a0, int256 a1, bytes calldata) external {
    uint256 owed = a0 > 0 ? uint256(a0) : uint256(a1);
    token.transfer(msg.sender, owed); // !
  }
}
//// weak: a flash loan callback runs what it is given
contract Borrower {
  address public lender;
  constructor(address l) { lender = l; }
  function onFlashLoan(address, address token, uint256 amount, uint256 fee, bytes calldata data) external returns (bytes32) {
    (address target, bytes memory what) = abi.decode(data, (address, bytes));
    (bool ok, ) = target.call(what); // !
    require(ok);
    IERC20(token).approve(msg.sender, amount + fee);
    return keccak256("ERC3156FlashBorrower.onFlashLoan");
  }
}
//// clean: only the pool
contract Trader {
  IERC20 public immutable token;
  address public immutable pool;
  constructor(IERC20 t, address p) { token = t; pool = p; }
  function uniswapV3SwapCallback(int256 a0, int256 a1, bytes calldata) external {
    if (msg.sender != pool) revert();
    require(token.transfer(msg.sender, a0 > 0 ? uint256(a0) : uint256(a1)));
  }
}
