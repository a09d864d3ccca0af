//// weak: a signed withdrawal without a nonce
import "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
contract Cheques {
    address immutable bank; 
    constructor(address b) payable { bank = b; }
    function cash(uint256 v, bytes calldata sig) external {
        bytes32 h = MessageHashUtils.toEthSignedMessageHash(keccak256(abi.encode(msg.sender, v, address(this), block.chainid)));
        require(ECDSA.recover(h, sig) == bank, "sig"); // !
        payable(msg.sender).transfer(v); // !
    }
}
//// weak: the signature is remembered, and a malleable twin is not
pragma solidity ^0.7.0;
contract Once {
    mapping(bytes => bool) used; address signer;
    constructor(address s) public payable { signer = s; }
    function redeem(address payable to, uint256 v, bytes memory sig) public {
        require(!used[sig], "used"); // !
        used[sig] = true; // !
        (bytes32 r, bytes32 s, uint8 q) = abi.decode(sig, (bytes32, bytes32, uint8));
        address got = ecrecover(keccak256(abi.encode(address(this), to, v)), q, r, s); // !
        require(got != address(0) && got == signer, "sig");
        to.transfer(v);
    }
}
//// weak: votes by signature that count each time
import {ECDSA} from "solady/utils/ECDSA.sol";
contract Votes {
    mapping(uint256 => uint256) public yes; mapping(address => uint256) public weight;
    bytes32 immutable SEP = keccak256(abi.encode(block.chainid, address(this)));
    function voteBySig(uint256 proposal, bool support, bytes calldata sig) external {
        bytes32 h = keccak256(abi.encodePacked(hex"1901", SEP, keccak256(abi.encode(proposal, support))));
        address voter = ECDSA.recoverCalldata(h, sig); // !
        if (support) yes[proposal] += weight[voter]; // !
    }
}
//// clean: spent per digest
import {ECDSA} from "solady/utils/ECDSA.sol";
import {EIP712} from "solady/utils/EIP712.sol";
contract Votes2 is EIP712 {
    mapping(uint256 => uint256) public yes; mapping(uint256 => mapping(address => bool)) voted;
    function _domainNameAndVersion() internal pure override returns (string memory, string memory) { return ("Votes", "1"); }
    function voteBySig(uint256 proposal, bytes calldata sig) external {
        address voter = ECDSA.recoverCalldata(_hashTypedData(keccak256(abi.encode(proposal))), sig);
        require(!voted[proposal][voter]); voted[proposal][voter] = true;
        yes[proposal] += 1;
    }
}
