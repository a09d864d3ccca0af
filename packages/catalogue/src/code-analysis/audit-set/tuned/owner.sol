//// weak: a setter in a base contract, inherited
abstract contract Managed {
  address internal boss;
  modifier bossOnly() { if (msg.sender != boss) revert(); _; }
  function appoint(address next) public virtual {
    boss = next; // !
  }
}
contract Shop is Managed {
  uint256 public price;
  constructor() { boss = msg.sender; }
  function setPrice(uint256 p) external bossOnly { price = p; }
}
//// weak: owner in a struct, changed by an internal function
contract Registry {
  struct Settings { address owner; uint64 fee; }
  Settings private settings;
  constructor() { settings.owner = msg.sender; }
  function _assign(address who) private {
    settings.owner = who; // !
  }
  function setFee(uint64 fee) external { require(msg.sender == settings.owner, "no"); settings.fee = fee; }
  function handOver(address who) external { require(who != address(0)); _assign(who); }
}
//// weak: the check compares the new with the old
contract Vault {
  address public owner = msg.sender;
  function setOwner(address newOwner) external {
    require(newOwner != owner, "same");
    owner = newOwner; // !
  }
  function sweep() external { require(msg.sender == owner); payable(owner).transfer(address(this).balance); }
}
//// weak: an initializer that can run again
contract Proxied {
  address private admin;
  uint256 public cap;
  function initialize(address admin_, uint256 cap_) external {
    admin = admin_; // !
    cap = cap_;
  }
  function setCap(uint256 c) external { _authorise(); cap = c; }
  function _authorise() internal view { require(msg.sender == admin, "denied"); }
}
//// clean: two steps, only the present owner offers
contract TwoStep {
  address public owner = msg.sender;
  address public pending;
  uint256 public n;
  modifier restricted() { _check(); _; }
  function _check() internal view { if (msg.sender != owner) revert(); }
  function offer(address next) external restricted { pending = next; }
  function accept() external { require(msg.sender == pending); owner = pending; delete pending; }
  function bump() external restricted { n++; }
}
//// clean: initialized once
contract Once {
  address private admin;
  function initialize(address admin_) external {
    require(admin == address(0), "done");
    admin = admin_;
  }
  function end() external view { require(msg.sender == admin); }
}
//// clean: owner in a struct, by the owner
contract Registry {
  struct Settings { address owner; uint64 fee; }
  Settings private settings;
  constructor() { settings.owner = msg.sender; }
  function _assign(address who) private { settings.owner = who; }
  function setFee(uint64 fee) external { require(msg.sender == settings.owner, "no"); settings.fee = fee; }
  function handOver(address who) external { if (settings.owner != msg.sender) revert(); _assign(who); }
}
//// weak: the receiver of fees is set by whoever calls
contract Fees {
  address public feeTo;
  IERC20 public immutable token;
  constructor(IERC20 t) { token = t; feeTo = msg.sender; }
  function setFeeTo(address f) external {
    feeTo = f; // !
  }
  function collect() external { require(token.transfer(feeTo, token.balanceOf(address(this)))); }
}
//// clean: the receiver of fees names the next
contract Fees {
  address public feeTo;
  IERC20 public immutable token;
  constructor(IERC20 t) { token = t; feeTo = msg.sender; }
  function setFeeTo(address f) external { require(msg.sender == feeTo); feeTo = f; }
  function collect() external { require(token.transfer(feeTo, token.balanceOf(address(this)))); }
}
