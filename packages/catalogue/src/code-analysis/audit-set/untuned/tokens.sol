//// weak: the answer is bound and never read
contract Payer {
  IERC20 public immutable token;
  mapping(address => uint256) public due;
  constructor(IERC20 t) { token = t; }
  function collect() external {
    uint256 v = due[msg.sender];
    due[msg.sender] = 0;
    bool sent = token.transfer(msg.sender, v); // !
  }
}
//// weak: an exact balance of a token decides
contract Lottery {
  IERC20 public immutable token;
  bool public full;
  constructor(IERC20 t) { token = t; }
  function close() external {
    if (token.balanceOf(address(this)) != 1e20) revert(); // !
    full = true;
  }
}
//// weak: an old feed without a date
contract Price {
  IFeed public immutable feed;
  uint256 public last;
  constructor(IFeed f) { feed = f; }
  function read() external { last = uint256(feed.latestAnswer()); } // !
}
//// clean: at least, and checked
contract Lottery {
  IERC20 public immutable token;
  bool public full;
  constructor(IERC20 t) { token = t; }
  function close() external {
    require(token.balanceOf(address(this)) >= 1e20);
    full = true;
  }
}
