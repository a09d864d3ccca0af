//// weak: a fixed gift for anybody who asks
contract Gift { 
    function claim() external { payable(msg.sender).transfer(0.1 ether); } // !
    receive() external payable {}
}
//// weak: assembly sends the whole balance
contract Asm {
    event In(address who, uint256 v);
    receive() external payable { emit In(msg.sender, msg.value); }
    function exit(address to) external {
        assembly { if iszero(call(gas(), to, selfbalance(), 0, 0, 0, 0)) { revert(0, 0) } } // !
    }
}
//// weak: a password that stands in the open
pragma solidity ^0.5.12;
contract Quiz {
    bytes32 public answer; 
    function setQuiz(bytes32 h) public payable { answer = h; }
    function solve(address payable to) public { require(answer != 0, "closed"); to.transfer(address(this).balance); } // !
}
//// clean: by shares
contract Split {
    mapping(address => uint256) public due; 
    error Nothing();
    function put(address to) external payable { due[to] += msg.value; }
    function get() external { uint256 v = due[msg.sender]; if (v == 0) revert Nothing(); due[msg.sender] = 0; (bool ok, ) = msg.sender.call{value: v}(""); require(ok); }
}
