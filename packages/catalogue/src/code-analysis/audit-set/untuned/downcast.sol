//// weak: a sum of arguments into a struct
contract Orders {
  struct Order { uint112 price; uint112 size; uint32 at; }
  Order[] public orders;
  function place(uint256 price, uint256 size) external payable {
    uint256 cost = price * size;
    require(cost == msg.value);
    orders.push(Order(uint112(price), uint112(size), uint32(block.timestamp))); // !
  }
}
//// weak: to a signed number and back
contract Margin {
  mapping(address => int128) public position;
  mapping(address => uint256) public cash;
  function put() external payable { cash[msg.sender] += msg.value; }
  function long(uint256 size) external {
    cash[msg.sender] -= size / 10;
    position[msg.sender] += int128(int256(size)); // !
  }
}
//// weak: a fee in a smaller type
contract Fees {
  uint64 public collected;
  uint256 public immutable rate;
  constructor(uint256 r) { rate = r; }
  function take(uint256 amount) external payable {
    uint256 fee = amount * rate / 1e4;
    require(msg.value >= fee);
    collected += uint64(fee); // !
  }
}
//// clean: masked on purpose, and a checked helper
contract Pack {
  mapping(address => uint256) public packed;
  error Large();
  function _u96(uint256 x) internal pure returns (uint96) { if (x > type(uint96).max) revert Large(); return uint96(x); }
  function set(uint256 a, address b) external { packed[msg.sender] = uint256(_u96(a)) << 160 | uint160(b); }
  function low(address who) external view returns (address) { return address(uint160(packed[who])); }
  function high(address who) external view returns (uint96) { return uint96(packed[who] >> 160); }
}
