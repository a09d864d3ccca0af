//// weak: a library makes the call, a lock with the wrong name does nothing
library Send { function now_(address to, uint256 v) internal { (bool ok, ) = to.call{value: v}(""); require(ok); } } // !
contract Bank {
  mapping(address => uint256) private funds;
  modifier checked() { require(funds[msg.sender] > 0); _; }
  function put() external payable { funds[msg.sender] += msg.value; }
  function out() external checked { uint256 v = funds[msg.sender]; Send.now_(msg.sender, v); funds[msg.sender] -= v; }
}
//// clean: effects first, through a library
library Send { function now_(address to, uint256 v) internal { (bool ok, ) = to.call{value: v}(""); require(ok); } }
contract Bank {
  mapping(address => uint256) private funds;
  function put() external payable { funds[msg.sender] += msg.value; }
  function out() external { uint256 v = funds[msg.sender]; funds[msg.sender] = 0; Send.now_(msg.sender, v); }
}
