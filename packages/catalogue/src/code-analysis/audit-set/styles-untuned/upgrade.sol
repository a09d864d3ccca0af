//// weak: UUPS with an authorisation that is empty
import {UUPSUpgradeable} from "solady/utils/UUPSUpgradeable.sol";
contract Vault is UUPSUpgradeable {
    address public owner;
    function initialize() external { require(owner == address(0)); owner = msg.sender; }
    function _authorizeUpgrade(address) internal override {} // !
}
//// weak: an implementation that a helper stores, in an old proxy
pragma solidity ^0.4.24;
contract Upgradeable {
    address impl; address owner;
    function Upgradeable() public { owner = msg.sender; }
    function _switch(address a) internal { require(a != address(0)); impl = a; } // !
    function upgradeTo(address a) public { _switch(a); } // !
    function () public payable { require(impl.delegatecall(msg.data)); }
}
//// clean: a slot that only the admin of another slot writes
contract Admin {
    bytes32 private constant IMPL = bytes32(uint256(keccak256("x.impl")) - 1);
    bytes32 private constant ADMIN = bytes32(uint256(keccak256("x.admin")) - 1);
    constructor() { bytes32 s = ADMIN; assembly { sstore(s, caller()) } }
    function upgradeTo(address a) external {
        bytes32 s = ADMIN; address admin; assembly { admin := sload(s) }
        require(msg.sender == admin, "admin");
        s = IMPL; assembly { sstore(s, a) }
    }
    fallback() external payable { bytes32 s = IMPL; address a; assembly { a := sload(s) } (bool ok, ) = a.delegatecall(msg.data); require(ok); }
}
