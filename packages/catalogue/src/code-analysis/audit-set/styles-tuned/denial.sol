//// weak: the former leader must accept the refund
contract N1 { address payable public king; uint256 public bid; function rule() external payable { require(msg.value > bid); if (king != address(0)) king.transfer(bid); king = payable(msg.sender); bid = msg.value; } } // !
//// weak: an exact balance
pragma solidity ^0.6.0;
contract N3 { address payable o = msg.sender; function join() external payable { require(msg.value == 1 ether); } function end() external { require(address(this).balance == 7 ether, "not yet"); o.transfer(7 ether); } } // !
//// clean: pulled
contract N5 { address public king; uint256 public bid; mapping(address => uint256) public back; function rule() external payable { require(msg.value > bid); back[king] += bid; king = msg.sender; bid = msg.value; } function get() external { uint256 v = back[msg.sender]; back[msg.sender] = 0; (bool ok, ) = msg.sender.call{value: v}(""); require(ok); } }
