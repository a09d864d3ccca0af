//// weak: a role by mapping of addresses to uint
contract Votes {
  mapping(address => uint256) public weight;
  mapping(bytes32 => bool) public cast;
  uint256 public yes;
  function vote(bytes32 id, uint8 v, bytes32 r, bytes32 s) external {
    bytes32 h = keccak256(abi.encode(address(this), block.chainid, id));
    require(!cast[h]); cast[h] = true;
    address voter = ecrecover(h, v, r, s); // !
    if (voter != owner) revert();
    yes += 1;
  }
  address public owner;
}
//// weak: the struct says who signed
contract Meta {
  struct Req { address from; address to; uint256 nonce; bytes data; }
  mapping(address => uint256) public nonces;
  function _ok(Req calldata q, uint8 v, bytes32 r, bytes32 s) internal view returns (bool) {
    bytes32 h = keccak256(abi.encode(address(this), block.chainid, q.from, q.to, q.nonce, keccak256(q.data)));
    return nonces[q.from] == q.nonce && ecrecover(h, v, r, s) == q.from; // !
  }
  function execute(Req calldata q, uint8 v, bytes32 r, bytes32 s) external {
    require(_ok(q, v, r, s), "bad");
    nonces[q.from]++;
    (bool ok, ) = q.to.call(abi.encodePacked(q.data, q.from));
    require(ok);
  }
}
//// clean: a helper that refuses zero
contract Votes {
  address public immutable teller;
  mapping(bytes32 => bool) public cast;
  uint256 public yes;
  constructor(address t) { teller = t; }
  function _who(bytes32 h, uint8 v, bytes32 r, bytes32 s) internal pure returns (address w) {
    w = ecrecover(h, v, r, s);
    if (w == address(0)) revert();
  }
  function vote(bytes32 id, uint8 v, bytes32 r, bytes32 s) external {
    bytes32 h = keccak256(abi.encode(address(this), block.chainid, id));
    require(!cast[h]); cast[h] = true;
    require(_who(h, v, r, s) == teller);
    yes += 1;
  }
}
