//// weak: one payment for each of many tickets
contract W1 { mapping(uint256 => address) public seat; function buy(uint256[] calldata ids) external payable { for (uint256 i; i < ids.length; ++i) { require(msg.value >= 1 ether, "price"); seat[ids[i]] = msg.sender; } } } // !
//// weak: a helper called from a while loop
pragma solidity ^0.7.0;
contract W3 {
    mapping(address => uint256) public credit;
    function _credit(address a) internal { credit[a] += msg.value; } // !
    function many(address[] calldata who) external payable { uint256 i = 0; while (i < who.length) { _credit(who[i]); i++; } } // !
}
//// clean: divided
contract W5 { mapping(address => uint256) public c; function many(address[] calldata w) external payable { uint256 each = msg.value / w.length; for (uint256 i; i < w.length; ++i) c[w[i]] += each; } }
