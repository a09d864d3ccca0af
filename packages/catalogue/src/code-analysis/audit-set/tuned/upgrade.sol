//// weak: sstore of the 1967 slot
contract Proxy {
  bytes32 private constant SLOT = 0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc;
  function upgradeTo(address impl) external {
    assembly {
      sstore(SLOT, impl) // !
    }
  }
  fallback() external payable {
    assembly {
      let impl := sload(SLOT)
      calldatacopy(0, 0, calldatasize())
      let ok := delegatecall(gas(), impl, 0, calldatasize(), 0, 0)
      returndatacopy(0, 0, returndatasize())
      switch ok case 0 { revert(0, returndatasize()) } default { return(0, returndatasize()) }
    }
  }
}
//// weak: a variable that is delegated to
contract Wallet {
  address public logic;
  address internal immutable deployer;
  constructor(address l) { logic = l; deployer = msg.sender; }
  function setLogic(address l) public {
    require(l.code.length > 0, "no code");
    logic = l; // !
  }
  fallback() external payable {
    (bool ok, ) = logic.delegatecall(msg.data);
    require(ok);
  }
}
//// weak: the UUPS hook lets anybody through
import "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
contract Logic is UUPSUpgradeable {
  uint256 public x;
  function _authorizeUpgrade(address) internal override {} // !
  function set(uint256 y) external { x = y; }
}
//// clean: the admin stores the slot
contract Proxy {
  bytes32 private constant SLOT = 0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc;
  address private immutable admin = msg.sender;
  modifier ifAdmin() { require(msg.sender == admin, "admin"); _; }
  function upgradeTo(address impl) external ifAdmin {
    require(impl.code.length > 0);
    assembly { sstore(SLOT, impl) }
  }
}
//// clean: the hook asks
import "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import "@openzeppelin/contracts/access/Ownable.sol";
contract Logic is UUPSUpgradeable, Ownable {
  constructor() Ownable(msg.sender) {}
  function _authorizeUpgrade(address) internal override onlyOwner {}
}
//// weak: the slot is worked out from its name
contract Proxy {
  function upgradeTo(address impl) public {
    bytes32 slot = bytes32(uint256(keccak256("eip1967.proxy.implementation")) - 1);
    assembly {
      sstore(slot, impl) // !
    }
  }
}
