//// weak: a helper that splits the signature and returns the signer
library Sig {
    function signer(bytes32 d, bytes memory sig) internal pure returns (address) {
        require(sig.length == 65);
        bytes32 r; bytes32 s; uint8 v;
        assembly { r := mload(add(sig, 32)) s := mload(add(sig, 64)) v := byte(0, mload(add(sig, 96))) }
        return ecrecover(d, v, r, s); // !
    }
}
contract Meta {
    address public relayer; mapping(address => uint256) public nonce;
    function exec(address user, address to, bytes calldata data, bytes calldata sig) external {
        bytes32 d = keccak256(abi.encode(address(this), block.chainid, nonce[user]++, to, keccak256(data)));
        require(Sig.signer(d, sig) == user, "sig"); // !
        (bool ok, ) = to.call(abi.encodePacked(data, user)); require(ok);
    }
}
//// weak: a permit that compares with the owner that the caller names
contract Tok {
    mapping(address => mapping(address => uint256)) public allowance; mapping(address => uint256) public nonces;
    bytes32 immutable SEP = keccak256(abi.encode(block.chainid, address(this)));
    error Bad(); 
    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external {
        if (deadline < block.timestamp) revert Bad();
        bytes32 d; unchecked { d = keccak256(abi.encodePacked(hex"1901", SEP, keccak256(abi.encode(owner, spender, value, nonces[owner]++, deadline)))); }
        if (ecrecover(d, v, r, s) != owner) revert Bad(); // !
        allowance[owner][spender] = value;
    }
}
//// clean: solady's recover
import {ECDSA} from "solady/utils/ECDSA.sol";
contract Pass2 {
    address immutable signer; mapping(bytes32 => bool) used;
    constructor(address s) { signer = s; }
    function enter(uint256 id, bytes calldata sig) external {
        bytes32 d = ECDSA.toEthSignedMessageHash(keccak256(abi.encode(block.chainid, address(this), msg.sender, id)));
        require(!used[d]); used[d] = true;
        require(ECDSA.recoverCalldata(d, sig) == signer);
    }
}
