//// weak: blockhash in a helper
pragma solidity ^0.5.0;
contract Z2 { function _roll() private view returns (uint) { return uint(blockhash(block.number - 1)) % 6; } // !
  function play() external payable { require(msg.value == 1 ether); if (_roll() == 5) msg.sender.transfer(5 ether); } function () external payable {} }
//// weak: a seed kept in storage
pragma solidity ^0.4.24;
contract Z4 { uint seed; function next() internal returns (uint) { seed = uint(keccak256(abi.encodePacked(seed, now, block.difficulty, msg.sender))); return seed; } // !
 function bet() public payable { if (next() % 2 == 0) msg.sender.transfer(msg.value * 2); } function() public payable {} }
