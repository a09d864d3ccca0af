//// weak: a pair's call moves what it is told
contract Arb {
  function uniswapV2Call(address sender, uint256 a0, uint256 a1, bytes calldata data) external {
    require(sender == address(this), "initiator");
    (address token, address to) = abi.decode(data, (address, address));
    IERC20(token).transfer(to, a0 + a1); // !
  }
}
//// weak: a receiver credits what arrives from any collection
contract Pawn {
  mapping(address => uint256) public credit;
  mapping(uint256 => address) public brought;
  function onERC721Received(address, address from, uint256 id, bytes calldata) external returns (bytes4) {
    brought[id] = from;
    credit[from] += 1 ether; // !
    return 0x150b7a02;
  }
  function spend(uint256 v) external { credit[msg.sender] -= v; }
}
//// weak: an Aave receiver
contract Lever {
  IERC20 public immutable debt;
  constructor(IERC20 d) { debt = d; }
  function executeOperation(address asset, uint256 amount, uint256 premium, address, bytes calldata params) external returns (bool) {
    address payee = abi.decode(params, (address));
    require(debt.transfer(payee, amount)); // !
    IERC20(asset).approve(msg.sender, amount + premium);
    return true;
  }
}
//// clean: computed pool
contract Arb {
  address public immutable factory;
  constructor(address f) { factory = f; }
  function _pool(address a, address b) internal view returns (address) { return address(uint160(uint256(keccak256(abi.encode(factory, a, b))))); }
  function uniswapV3SwapCallback(int256 a0, int256, bytes calldata data) external {
    (address a, address b) = abi.decode(data, (address, address));
    require(msg.sender == _pool(a, b), "pool");
    require(IERC20(a).transfer(msg.sender, uint256(a0)));
  }
}
