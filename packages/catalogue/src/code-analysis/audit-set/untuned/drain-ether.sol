//// weak: the whole balance, by a helper library
library Pay { function send(address to, uint256 v) internal { (bool ok, ) = to.call{value: v}(""); require(ok, "pay"); } }
contract Jar {
  using Pay for address;
  event Out(address to);
  receive() external payable {}
  function smash() external {
    emit Out(msg.sender);
    msg.sender.send(address(this).balance); // !
  }
}
//// weak: anybody names himself the receiver
contract Auction {
  address payable public beneficiary;
  uint256 public ends;
  constructor(uint256 e) { ends = e; beneficiary = payable(msg.sender); }
  function bid() external payable {}
  function setBeneficiary(address payable b) external {
    beneficiary = b; // !
  }
  function close() external { require(block.timestamp > ends); beneficiary.transfer(address(this).balance); }
}
//// weak: half of it each time
contract Fund {
  uint256 public constant PART = 2;
  receive() external payable {}
  function half(address payable to) external returns (uint256 v) {
    v = address(this).balance / PART;
    if (v == 0) return 0;
    to.transfer(v); // !
  }
}
//// clean: a pull of the loser's own bid
contract Auction {
  mapping(address => uint256) public refunds;
  address public best;
  uint256 public price;
  function bid() external payable {
    require(msg.value > price);
    if (best != address(0)) refunds[best] += price;
    best = msg.sender;
    price = msg.value;
  }
  function refund() external {
    uint256 v = refunds[msg.sender];
    require(v > 0);
    refunds[msg.sender] = 0;
    (bool ok, ) = msg.sender.call{value: v}("");
    require(ok);
  }
}
