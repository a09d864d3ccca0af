//// weak: do while with a modifier
contract Games {
  mapping(address => uint256) public plays;
  modifier paid() { require(msg.value >= 0.1 ether, "pay"); _; } // !
  function _play() internal paid { plays[msg.sender]++; }
  function play(uint256 n) external payable { do { _play(); n--; } while (n > 0); }
}
//// weak: bound to a local name before
contract Airdrop {
  mapping(address => uint256) public owed;
  function give(address[] calldata who) external payable {
    uint256 each = msg.value;
    for (uint256 i; i < who.length; ++i) owed[who[i]] += each; // !
  }
}
//// clean: divided first
contract Airdrop {
  mapping(address => uint256) public owed;
  function give(address[] calldata who) external payable {
    uint256 each = msg.value / who.length;
    for (uint256 i; i < who.length; ++i) owed[who[i]] += each;
  }
}
