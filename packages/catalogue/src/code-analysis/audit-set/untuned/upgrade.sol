//// weak: a storage struct at a slot
library Impl {
  struct Box { address at; }
  function box() internal pure returns (Box storage b) { assembly { b.slot := 0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc } }
}
contract Proxy {
  function change(address at) external payable {
    Impl.box().at = at; // !
  }
  function _go(address a) internal { (bool ok, ) = a.delegatecall(msg.data); require(ok); }
  fallback() external payable { _go(Impl.box().at); }
}
//// weak: the published helper
import "@openzeppelin/contracts/proxy/ERC1967/ERC1967Utils.sol";
import "@openzeppelin/contracts/proxy/Proxy.sol";
contract Open is Proxy {
  function _implementation() internal view override returns (address) { return ERC1967Utils.getImplementation(); }
  function replace(address to, bytes calldata data) external {
    ERC1967Utils.upgradeToAndCall(to, data); // !
  }
}
//// weak: a mapping of modules that are delegated to
contract Diamond {
  mapping(bytes4 => address) internal facets;
  function cut(bytes4[] calldata ids, address facet) external {
    for (uint256 i; i < ids.length; i++) {
      facets[ids[i]] = facet; // !
    }
  }
  fallback() external payable {
    address f = facets[msg.sig];
    assembly {
      calldatacopy(0, 0, calldatasize())
      let r := delegatecall(gas(), f, 0, calldatasize(), 0, 0)
      returndatacopy(0, 0, returndatasize())
      if iszero(r) { revert(0, returndatasize()) }
      return(0, returndatasize())
    }
  }
}
//// clean: a beacon by its owner
import "@openzeppelin/contracts/access/Ownable2Step.sol";
contract Beacon is Ownable2Step {
  address private impl;
  constructor(address i) Ownable(msg.sender) { impl = i; }
  function implementation() external view returns (address) { return impl; }
  function upgradeTo(address i) external onlyOwner { require(i.code.length > 0); impl = i; }
}
