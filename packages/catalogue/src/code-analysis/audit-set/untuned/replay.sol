//// weak: a helper verifies, nothing is kept
import "solady/src/utils/ECDSA.sol";
contract Exec {
  address public immutable guardian;
  constructor(address g) { guardian = g; }
  receive() external payable {}
  function _verify(bytes32 h, bytes calldata sig) internal view { if (ECDSA.recover(h, sig) != guardian) revert(); } // !
  function pay(address payable to, uint256 v, bytes calldata sig) external {
    _verify(keccak256(abi.encode(to, v, address(this))), sig);
    to.transfer(v);
  }
}
//// weak: a contract wallet's answer
interface I1271 { function isValidSignature(bytes32 h, bytes calldata s) external view returns (bytes4); }
contract Trade {
  mapping(address => uint256) public held;
  function take(address maker, uint256 v, bytes calldata sig) external {
    bytes32 h = keccak256(abi.encode(block.chainid, address(this), maker, v, msg.sender));
    require(I1271(maker).isValidSignature(h, sig) == 0x1626ba7e, "sig"); // !
    held[maker] -= v;
    held[msg.sender] += v;
  }
}
//// clean: an order is filled once
import "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
contract Book {
  mapping(bytes32 => uint256) public filled;
  IERC20 public immutable token;
  constructor(IERC20 t) { token = t; }
  function fill(address maker, uint256 total, uint256 v, uint256 salt, bytes calldata sig) external {
    bytes32 h = keccak256(abi.encode(block.chainid, address(this), maker, total, salt));
    require(ECDSA.recover(h, sig) == maker);
    filled[h] += v;
    require(filled[h] <= total, "full");
    require(token.transferFrom(maker, msg.sender, v));
  }
}
