//// weak: the 1967 slot written by assembly with a literal number
contract Proxy {
    function upgradeTo(address impl) external payable {
        assembly { sstore(0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc, impl) } // !
    }
    fallback() external payable {
        assembly {
            let impl := sload(0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc)
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), impl, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch ok case 0 { revert(0, returndatasize()) } default { return(0, returndatasize()) }
        }
    }
    receive() external payable {}
}
//// weak: a facet table that anybody fills
pragma solidity ^0.7.6;
contract Diamond {
    mapping(bytes4 => address) private facetOf;
    event Cut(bytes4 selector, address facet);
    function cut(bytes4[] calldata sigs, address facet) external {
        for (uint256 i = 0; i < sigs.length; i++) { facetOf[sigs[i]] = facet; emit Cut(sigs[i], facet); } // !
    }
    fallback() external payable {
        address f = facetOf[msg.sig];
        require(f != address(0), "none");
        (bool ok, bytes memory out) = f.delegatecall(msg.data);
        require(ok);
        assembly { return(add(out, 32), mload(out)) }
    }
}
//// weak: a plug-in chosen by the caller runs in the contract's storage
contract Account {
    address immutable owner = msg.sender;
    error Failed();
    function run(address module, bytes calldata data) external payable returns (bytes memory) { return _exec(module, data); } // !
    function _exec(address m, bytes calldata d) private returns (bytes memory r) {
        bool ok; (ok, r) = m.delegatecall(d); // !
        if (!ok) revert Failed();
    }
    function out(address payable to) external { require(msg.sender == owner); to.transfer(address(this).balance); }
}
//// clean: UUPS by its owner
import {UUPSUpgradeable} from "solady/utils/UUPSUpgradeable.sol";
import {Ownable} from "solady/auth/Ownable.sol";
contract Safe is UUPSUpgradeable, Ownable {
    function initialize(address o) external { _initializeOwner(o); }
    function _guardInitializeOwner() internal pure override returns (bool) { return true; }
    function _authorizeUpgrade(address) internal override onlyOwner {}
}
