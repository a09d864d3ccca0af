//// weak: in one expression
contract Fees {
  uint256 public rate = 30;
  mapping(address => uint256) public due;
  function charge(uint256 amount) external {
    due[msg.sender] += amount / 10_000 * rate; // !
  }
}
//// weak: through a local variable
contract Rewards {
  uint256 public total = 1e18;
  uint256 public pool = 1e20;
  function earned(uint256 stake, uint256 time) external view returns (uint256) {
    uint256 perShare = pool / total;
    uint256 weight = stake;
    return perShare * weight * time; // !
  }
}
//// weak: through a function
contract Pricing {
  uint256 public reserve = 7;
  uint256 public supply = 3;
  function price() public view returns (uint256) { return reserve / supply; }
  mapping(address => uint256) public debt;
  function buy(uint256 n) external {
    uint256 cost = price() * n; // !
    debt[msg.sender] += cost;
  }
}
//// clean: multiplied first, and rounding down to a step
contract Fees {
  uint256 public rate = 30;
  mapping(address => uint256) public due;
  function charge(uint256 amount) external { due[msg.sender] += amount * rate / 10_000; }
  function week(uint256 t) external pure returns (uint256) { return t / 1 weeks * 1 weeks; }
}
