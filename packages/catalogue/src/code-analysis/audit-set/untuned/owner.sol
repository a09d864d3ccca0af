//// weak: guards are kept in a mapping and anybody joins
contract Council {
  mapping(address => bool) private members;
  uint256 public rate;
  constructor() { members[msg.sender] = true; }
  modifier seated() { require(members[msg.sender], "not seated"); _; }
  function join(address who) external {
    members[who] = true; // !
  }
  function setRate(uint256 r) external seated { rate = r; }
}
//// weak: the wrong address is compared
contract Deed {
  address private holder = msg.sender;
  function pass(address to) external {
    require(to == msg.sender, "take it yourself");
    holder = to; // !
  }
  function use() external view returns (bool) { if (holder != msg.sender) { revert("no"); } return true; }
}
//// weak: in assembly
contract Slots {
  address private keeper = msg.sender;
  uint256 public v;
  function setKeeper(address k) external {
    assembly {
      sstore(keeper.slot, k) // !
    }
  }
  function setV(uint256 x) external { require(msg.sender == keeper); v = x; }
}
//// weak: through the published Ownable
import "@openzeppelin/contracts/access/Ownable.sol";
contract Desk is Ownable {
  uint256 public fee;
  constructor() Ownable(msg.sender) {}
  function renew(address who) external {
    _transferOwnership(who); // !
  }
  function setFee(uint256 f) external onlyOwner { fee = f; }
}
//// clean: in assembly, guarded by the caller
contract Slots {
  address private keeper = msg.sender;
  function setKeeper(address k) external {
    require(msg.sender == keeper);
    assembly { sstore(keeper.slot, k) }
  }
}
//// clean: members vote in members
contract Council {
  mapping(address => bool) private members;
  constructor() { members[msg.sender] = true; }
  modifier seated() { require(members[msg.sender], "not seated"); _; }
  function add(address who, bool yes) external seated { members[who] = yes; }
  function leave() external { members[msg.sender] = false; }
}
