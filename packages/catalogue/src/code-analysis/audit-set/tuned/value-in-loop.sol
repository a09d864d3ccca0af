//// weak: the same value counts each round
contract Sale {
  mapping(address => uint256) public credit;
  function buy(address[] calldata who) external payable {
    for (uint256 i = 0; i < who.length; i++) {
      credit[who[i]] += msg.value; // !
    }
  }
}
//// weak: in a function that the loop calls
contract Tickets {
  mapping(uint256 => address) public seat;
  function buyMany(uint256[] calldata ids) external payable {
    uint256 i;
    while (i < ids.length) { _buy(ids[i]); ++i; }
  }
  function _buy(uint256 id) internal {
    require(msg.value == 1 ether, "price"); // !
    require(seat[id] == address(0));
    seat[id] = msg.sender;
  }
}
//// weak: a payable multicall
contract Multi {
  mapping(address => uint256) public credit;
  function put() external payable { credit[msg.sender] += msg.value; }
  function multicall(bytes[] calldata calls) external payable {
    for (uint256 i; i < calls.length; ++i) {
      (bool ok, ) = address(this).delegatecall(calls[i]); // !
      require(ok);
    }
  }
}
//// clean: the sum is compared after the loop
contract Sale {
  mapping(address => uint256) public credit;
  function buy(address[] calldata who, uint256[] calldata v) external payable {
    uint256 sum;
    for (uint256 i = 0; i < who.length; i++) { credit[who[i]] += v[i]; sum += v[i]; }
    require(sum == msg.value, "sum");
  }
}
