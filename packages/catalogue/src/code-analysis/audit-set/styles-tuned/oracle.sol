//// weak: latestRoundData without its time
interface F { function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80); }
contract Q1 { F immutable f; constructor(F x) { f = x; } function price() public view returns (uint256) { (, int256 p, , , ) = f.latestRoundData(); require(p > 0); return uint256(p); } // !
 function mintable(uint256 c) external view returns (uint256) { return c * price() / 1e8; } }
//// weak: latestAnswer
pragma solidity ^0.7.0;
interface G { function latestAnswer() external view returns (int256); }
contract Q3 { G g; constructor(G x) { g = x; } function usd(uint256 v) external view returns (uint256) { return v * uint256(g.latestAnswer()) / 1e8; } } // !
//// clean: the time is looked at
interface F { function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80); }
contract Q5 { F immutable f; error Stale(); constructor(F x) { f = x; } function price() public view returns (uint256) { (, int256 p, , uint256 t, ) = f.latestRoundData(); if (p <= 0 || block.timestamp - t > 1 hours) revert Stale(); return uint256(p); } }
