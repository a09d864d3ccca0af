//// weak: two strings under one signature
contract K1 { mapping(bytes32 => address) public nameOf; function claim(string calldata first, string calldata last) external { bytes32 k = keccak256(abi.encodePacked(first, last)); require(nameOf[k] == address(0)); nameOf[k] = msg.sender; } } // !
//// weak: bytes beside bytes, via a variable
contract K3 {
    mapping(bytes32 => uint256) public stored;
    function put(bytes memory a, uint256 n, bytes memory b, bytes memory c) public { bytes memory all = abi.encodePacked(n, a, b, c); stored[keccak256(all)] = n; } // !
}
//// clean: one text and fixed words
contract K5 { function k(address a, string calldata s, uint256 n) external pure returns (bytes32) { return keccak256(abi.encodePacked(a, n, s)); } }
//// clean: hashed parts
contract K7 { function k(string calldata a, string calldata b) external pure returns (bytes32) { return keccak256(abi.encodePacked(keccak256(bytes(a)), keccak256(bytes(b)))); } }
