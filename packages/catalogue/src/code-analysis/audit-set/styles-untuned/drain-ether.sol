//// weak: a withdrawal through a library of addresses
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
contract Till {
    uint256 public takings;
    function pay() external payable { takings += msg.value; }
    function flush(address payable to) external { _flush(to, takings); } // !
    function _flush(address payable to, uint256 v) internal { takings -= v; Address.sendValue(to, v); } // !
}
//// weak: destroyed by a check that is upside down
pragma solidity ^0.4.22;
contract Bank {
    address owner; mapping(address => uint) bal;
    constructor() public { owner = msg.sender; }
    function put() public payable { bal[msg.sender] += msg.value; }
    function close() public { require(msg.sender != owner); selfdestruct(msg.sender); } // !
}
//// clean: only the beneficiary receives
contract Trust {
    address payable immutable heir; uint256 immutable at;
    constructor(address payable h, uint256 t) payable { heir = h; at = t; }
    function release() external { require(block.timestamp >= at, "early"); heir.transfer(address(this).balance); }
}
