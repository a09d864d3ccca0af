//// weak: arrays in a helper, and the hash used as a permission
pragma solidity ^0.5.16;
contract K2 {
    mapping(bytes32 => bool) allowed; address o;
    constructor() public { o = msg.sender; }
    function key(address[] memory admins, address[] memory users) internal pure returns (bytes32) { return keccak256(abi.encodePacked(admins, users)); } // !
    function allow(address[] calldata a, address[] calldata u) external { require(msg.sender == o); allowed[key(a, u)] = true; }
    function enter(address[] calldata a, address[] calldata u) external view returns (bool) { return allowed[key(a, u)]; }
}
//// weak: string.concat then hashed
contract K4 { mapping(bytes32 => address) public own; function reg(string calldata l, string calldata tld) external { bytes32 h = keccak256(bytes(string.concat(l, tld))); require(own[h] == address(0), "t"); own[h] = msg.sender; } } // !
//// clean: encode
contract K6 { mapping(bytes32 => address) public o; function reg(string calldata a, string calldata b) external { bytes32 h = keccak256(abi.encode(a, b)); require(o[h] == address(0)); o[h] = msg.sender; } }
