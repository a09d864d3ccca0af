//// weak: one ether for whoever asks
contract Gift {
  receive() external payable {}
  function grab() external {
    payable(msg.sender).transfer(1 ether); // !
  }
}
//// weak: a paused switch is no owner
contract Pool {
  bool public paused;
  uint256 public last;
  receive() external payable {}
  function release(address payable to, uint256 amount) external {
    require(!paused && amount <= address(this).balance, "no");
    last = block.timestamp;
    (bool ok, ) = to.call{value: amount}(""); // !
    require(ok, "failed");
  }
}
//// weak: in assembly
contract Raw {
  receive() external payable {}
  function out(address to, uint256 amount) external {
    assembly {
      if iszero(call(gas(), to, amount, 0, 0, 0, 0)) { revert(0, 0) } // !
    }
  }
}
//// clean: in assembly, by the owner
contract Raw {
  address private immutable owner = msg.sender;
  receive() external payable {}
  function out(address to, uint256 amount) external {
    address o = owner;
    assembly {
      if iszero(eq(caller(), o)) { revert(0, 0) }
      if iszero(call(gas(), to, amount, 0, 0, 0, 0)) { revert(0, 0) }
    }
  }
}
//// clean: claimed once from what is owed
contract Payroll {
  mapping(address => uint256) public due;
  address public immutable boss = msg.sender;
  function grant(address who) external payable { require(msg.sender == boss); due[who] += msg.value; }
  function claim() external { uint256 v = due[msg.sender]; due[msg.sender] = 0; payable(msg.sender).transfer(v); }
}
