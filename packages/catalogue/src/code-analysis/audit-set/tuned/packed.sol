//// weak: two strings
contract Names {
  mapping(bytes32 => address) public holder;
  function take(string calldata first, string calldata last) external {
    bytes32 id = keccak256(abi.encodePacked(first, last)); // !
    require(holder[id] == address(0));
    holder[id] = msg.sender;
  }
}
//// weak: an array beside bytes, in an internal function
contract Jobs {
  mapping(bytes32 => bool) public done;
  function _id(address[] memory who, bytes memory what) internal pure returns (bytes32) {
    bytes memory packed = abi.encodePacked(who, what); // !
    return keccak256(packed);
  }
  function run(address[] calldata who, bytes calldata what) external { bytes32 id = _id(who, what); require(!done[id]); done[id] = true; }
}
//// clean: encoded with lengths, or one dynamic part alone
contract Names {
  mapping(bytes32 => address) public holder;
  function take(string calldata first, string calldata last) external {
    bytes32 id = keccak256(abi.encode(first, last));
    require(holder[id] == address(0));
    holder[id] = msg.sender;
  }
  function who(string calldata name, uint256 n) external view returns (address) { return holder[keccak256(abi.encodePacked(name, n))]; }
}
