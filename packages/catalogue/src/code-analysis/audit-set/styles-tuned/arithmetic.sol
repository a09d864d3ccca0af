//// weak: unchecked subtraction of a balance
contract M1 { mapping(address => uint256) public b; constructor() { b[msg.sender] = 1e24; } function transfer(address to, uint256 v) external returns (bool) { unchecked { b[msg.sender] -= v; b[to] += v; } return true; } } // !
//// weak: a lock time that wraps
pragma solidity ^0.7.0;
contract M3 { mapping(address => uint256) public b; mapping(address => uint256) public until; function put() external payable { b[msg.sender] += msg.value; until[msg.sender] = block.timestamp + 7 days; } function extend(uint256 s) public { until[msg.sender] += s; } // !
 function get() external { require(block.timestamp > until[msg.sender] && b[msg.sender] > 0); uint256 v = b[msg.sender]; b[msg.sender] = 0; msg.sender.transfer(v); } }
//// clean: unchecked after a comparison
contract M5 { mapping(address => uint256) public b; error Few(); function transfer(address to, uint256 v) external { uint256 h = b[msg.sender]; if (h < v) revert Few(); unchecked { b[msg.sender] = h - v; } b[to] += v; } }
