//// weak: two arrays in a signed message
contract Split {
  mapping(bytes32 => bool) public seen;
  function pay(address[] calldata to, uint256[] calldata v) external {
    bytes32 h = keccak256(abi.encodePacked(msg.sender, to, v)); // !
    require(!seen[h]);
    seen[h] = true;
  }
}
//// weak: sha256 of strings from storage and argument
contract Login {
  mapping(address => string) public user;
  mapping(bytes32 => bool) public keys;
  function enter(string memory pass) external view returns (bool) {
    return keys[sha256(abi.encodePacked(user[msg.sender], pass))]; // !
  }
  function set(string calldata u) external { user[msg.sender] = u; }
}
//// clean: hashed parts, and a separator of fixed size
contract Split {
  mapping(bytes32 => bool) public seen;
  function pay(string calldata a, string calldata b) external {
    bytes32 h = keccak256(abi.encodePacked(keccak256(bytes(a)), keccak256(bytes(b)), msg.sender));
    require(!seen[h]);
    seen[h] = true;
  }
}
