//// weak: multicall by delegatecall into a payable deposit
contract W2 {
    mapping(address => uint256) public bal;
    function deposit() public payable { bal[msg.sender] += msg.value; } // !
    function multicall(bytes[] calldata d) external payable { for (uint256 i; i < d.length; ++i) { (bool ok, ) = address(this).delegatecall(d[i]); require(ok); } } // !
}
//// weak: a value kept in a variable in front of the loop
pragma solidity ^0.4.24;
contract W4 {
    mapping(address => uint) public paid;
    function pay(address[] who) public payable { uint v = msg.value; for (uint i = 0; i < who.length; i++) { paid[who[i]] += v; } } // !
}
//// clean: counted down
contract W6 { mapping(uint256 => address) public s; function buy(uint256[] calldata ids) external payable { require(msg.value == ids.length * 1 ether); for (uint256 i; i < ids.length; ++i) { require(s[ids[i]] == address(0)); s[ids[i]] = msg.sender; } } }
