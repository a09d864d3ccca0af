//// weak: the answer of transfer is dropped
contract Bank {
  IERC20 public immutable token;
  mapping(address => uint256) public held;
  constructor(IERC20 t) { token = t; }
  function put(uint256 v) external {
    held[msg.sender] += v;
    token.transferFrom(msg.sender, address(this), v); // !
  }
}
//// weak: the balance must be exact
contract Goal {
  uint256 public constant GOAL = 10 ether;
  bool public reached;
  function put() external payable { require(msg.value == 1 ether); }
  function finish() external {
    require(address(this).balance == GOAL, "not yet"); // !
    reached = true;
  }
}
//// weak: ether comes in and never goes out
contract Sink { // !
  uint256 public n;
  function count() external payable { n += 1; }
}
//// weak: a price that may be old
contract Loans {
  IFeed public immutable feed;
  mapping(address => uint256) public limit;
  constructor(IFeed f) { feed = f; }
  function update(uint256 amount) external {
    (, int256 price, , , ) = feed.latestRoundData(); // !
    limit[msg.sender] = amount * uint256(price);
  }
}
//// clean: all of it looked at
contract Loans {
  IFeed public immutable feed;
  mapping(address => uint256) public limit;
  constructor(IFeed f) { feed = f; }
  function update(uint256 amount) external {
    (, int256 price, , uint256 at, ) = feed.latestRoundData();
    require(price > 0 && block.timestamp - at < 1 hours, "old");
    limit[msg.sender] = amount * uint256(price);
  }
}
