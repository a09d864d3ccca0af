//// weak: a share kept in a variable
contract D2 { mapping(address => uint256) public owed; uint256 pool; uint256 all; function settle(uint256 mine) external { uint256 part = mine / all; uint256 gain = part * pool; owed[msg.sender] = gain; } } // !
//// weak: the quotient comes out of a helper
contract D4 { uint256 total; uint256 public price; constructor(uint256 t, uint256 p) { total = t; price = p; } function _ratio(uint256 x) internal view returns (uint256) { return x / total; } function value(uint256 x) external view returns (uint256) { return _ratio(x) * price; } } // !
//// clean: rounded to a step on purpose
contract D7 { function floor(uint256 t) public pure returns (uint256) { return t / 7 days * 7 days; } }
