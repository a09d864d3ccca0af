//// weak: a refund before the books, in a base
abstract contract Book {
  mapping(address => uint256) internal owed;
  function _settle(address who) internal { delete owed[who]; }
}
contract Refunds is Book {
  function put() external payable { owed[msg.sender] += msg.value; }
  function refund() external {
    uint256 v = owed[msg.sender];
    (bool ok, ) = payable(msg.sender).call{value: v}(""); // !
    if (!ok) revert();
    _settle(msg.sender);
  }
}
//// clean: with the published lock
import "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
contract Refunds is ReentrancyGuard {
  mapping(address => uint256) internal owed;
  function put() external payable { owed[msg.sender] += msg.value; }
  function refund() external nonReentrant {
    uint256 v = owed[msg.sender];
    (bool ok, ) = payable(msg.sender).call{value: v}("");
    if (!ok) revert();
    owed[msg.sender] = 0;
  }
}
