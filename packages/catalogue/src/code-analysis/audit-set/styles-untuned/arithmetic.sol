//// weak: product of count and amount
pragma solidity ^0.4.16;
contract M2 { mapping(address => uint256) b; function batch(address[] to, uint256 v) public returns (bool) { uint256 sum = uint256(to.length) * v; // !
  require(v > 0 && b[msg.sender] >= sum); b[msg.sender] -= sum; for (uint i = 0; i < to.length; i++) b[to[i]] += v; return true; } }
//// weak: assembly adds
contract M4 { mapping(address => uint256) public b; uint256 public total; function credit(uint256 v) external payable { uint256 t = total; uint256 n; assembly { n := add(t, v) } total = n; require(msg.value >= v); b[msg.sender] += v; } 
 function spend(uint256 v) external { uint256 h = b[msg.sender]; assembly { h := sub(h, v) } b[msg.sender] = h; payable(msg.sender).transfer(v); } } // !
