//// weak: a reward by hours
contract D1 { uint256 public rate; constructor(uint256 r) { rate = r; } function due(uint256 staked, uint256 sec) public view returns (uint256) { return staked / 1 days * sec * rate; } } // !
//// weak: SafeMath in an old contract
pragma solidity ^0.5.0;
library SafeMath { function mul(uint a, uint b) internal pure returns (uint c) { if (a == 0) return 0; c = a * b; require(c / a == b); } function div(uint a, uint b) internal pure returns (uint) { require(b > 0); return a / b; } }
contract D3 { using SafeMath for uint256; uint256 public feeBps = 30; function fee(uint256 v) public view returns (uint256) { return v.div(10000).mul(feeBps); } } // !
//// weak: in assembly-like unchecked blocks
contract D5 { function bonus(uint256 amount, uint256 weight, uint256 sum) external pure returns (uint256 r) { unchecked { r = (amount / sum) * weight; } } } // !
//// clean: multiply first
contract D6 { function fee(uint256 v) public pure returns (uint256) { return v * 30 / 10_000; } }
