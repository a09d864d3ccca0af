//// weak: the recovered address against a mapping that is empty for zero
contract Pass {
    mapping(uint256 => address) public signerOf;
    mapping(bytes32 => bool) used;
    function enter(uint256 gate, bytes32 h, uint8 v, bytes32 r, bytes32 s) external returns (bool) {
        bytes32 d = keccak256(abi.encode(block.chainid, address(this), gate, h));
        require(!used[d]); used[d] = true;
        return ecrecover(d, v, r, s) == signerOf[gate]; // !
    }
}
//// weak: an owner that may be unset, in an old compiler
pragma solidity ^0.4.24;
contract Door {
    address guardian; uint256 public n; address public tenant;
    function setTenant(address t, uint8 v, bytes32 r, bytes32 s) public {
        bytes32 d = keccak256(abi.encodePacked("\x19Ethereum Signed Message:\n32", keccak256(abi.encodePacked(address(this), t, n))));
        address who = ecrecover(d, v, r, s); // !
        if (who != guardian) revert(); // !
        n++; tenant = t;
    }
}
//// clean: zero refused by a custom error
contract Tok2 {
    mapping(address => mapping(address => uint256)) public allowance; mapping(address => uint256) public nonces;
    error Bad();
    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external {
        if (deadline < block.timestamp) revert Bad();
        bytes32 d = keccak256(abi.encodePacked(hex"1901", keccak256(abi.encode(block.chainid, address(this))), keccak256(abi.encode(owner, spender, value, nonces[owner]++, deadline))));
        address got = ecrecover(d, v, r, s);
        if (got == address(0) || got != owner) revert Bad();
        allowance[owner][spender] = value;
    }
}
