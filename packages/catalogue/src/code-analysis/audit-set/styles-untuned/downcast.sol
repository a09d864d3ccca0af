//// weak: an amount cut in a helper
contract S2 {
    mapping(address => uint64) private debt;
    event Borrowed(address who, uint256 v);
    function _narrow(uint256 x) internal pure returns (uint64) { return uint64(x); } // !
    function borrow(uint256 v) external { debt[msg.sender] += _narrow(v); emit Borrowed(msg.sender, v); payable(msg.sender).transfer(v); } // !
    receive() external payable {}
}
//// weak: old compiler, price times amount cut before it is compared
pragma solidity ^0.5.0;
contract S4 {
    uint256 price = 1e15; mapping(address => uint256) public units;
    function buy(uint256 n) public payable {
        require(n < 2**128);
        uint64 cost = uint64(n * price); // !
        require(msg.value >= cost);
        units[msg.sender] += n;
    }
}
//// clean: bounded before
contract S7 { mapping(address => uint128) held; error Big(); function put(uint256 v) external payable { if (v > type(uint128).max) revert Big(); require(msg.value == v); held[msg.sender] += uint128(v); } }
