//// weak: inside an argument
contract Tax {
  uint256 public rate = 3;
  mapping(address => uint256) public paid;
  function _scale(uint256 x) internal pure returns (uint256) {
    return x * 100; // !
  }
  function pay() external payable { paid[msg.sender] += _scale(msg.value / rate); }
}
//// weak: with an assignment operator
contract Accrue {
  uint256 public index;
  uint256 public last;
  uint256 public total = 5;
  function poke(uint256 bonus) external {
    uint256 step = (block.timestamp - last) / total;
    step *= bonus; // !
    index += step;
    last = block.timestamp;
  }
}
//// clean: scaled up before
contract Tax {
  uint256 public rate = 3;
  mapping(address => uint256) public paid;
  function pay() external payable { uint256 scaled = msg.value * 1e18; paid[msg.sender] += scaled / rate; }
}
