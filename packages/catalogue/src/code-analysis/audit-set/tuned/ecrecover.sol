//// weak: compared with a stored signer
contract Gate {
  address public signer;
  mapping(bytes32 => bool) public used;
  uint256 public opened;
  function setSigner(address s) external { require(msg.sender == signer); signer = s; }
  function open(bytes32 h, uint8 v, bytes32 r, bytes32 s) external {
    require(!used[h]); used[h] = true;
    require(ecrecover(h, v, r, s) == signer, "bad"); // !
    opened++;
  }
}
//// weak: the signer is named by the caller
contract Permit {
  mapping(address => uint256) public nonces;
  mapping(address => mapping(address => uint256)) public allowance;
  function permit(address owner, address spender, uint256 value, uint8 v, bytes32 r, bytes32 s) external {
    bytes32 h = keccak256(abi.encode(address(this), block.chainid, owner, spender, value, nonces[owner]++));
    address who = ecrecover(h, v, r, s); // !
    require(who == owner, "sig");
    allowance[owner][spender] = value;
  }
}
//// weak: in a library
library Sig {
  function from(bytes32 h, bytes memory sig) internal pure returns (address) {
    (bytes32 r, bytes32 s, uint8 v) = abi.decode(sig, (bytes32, bytes32, uint8));
    return ecrecover(h, v, r, s); // !
  }
}
contract Box {
  mapping(uint256 => address) public keeper;
  mapping(uint256 => uint256) public turn;
  function seize(uint256 id, address to, bytes calldata sig) external {
    bytes32 h = keccak256(abi.encode(block.chainid, address(this), id, to, turn[id]++));
    require(Sig.from(h, sig) == keeper[id]);
    keeper[id] = to;
  }
}
//// clean: zero is refused
contract Gate {
  address public immutable signer;
  mapping(bytes32 => bool) public used;
  uint256 public opened;
  constructor(address s) { signer = s; }
  function open(bytes32 h, uint8 v, bytes32 r, bytes32 s) external {
    require(!used[h]); used[h] = true;
    address who = ecrecover(keccak256(abi.encode(address(this), block.chainid, h)), v, r, s);
    require(who != address(0) && who == signer, "bad");
    opened++;
  }
}
