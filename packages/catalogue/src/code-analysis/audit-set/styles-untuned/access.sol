//// weak: selfdestruct for anybody through a helper
pragma solidity ^0.8.4;
contract A2 { address payable sink; constructor() { sink = payable(msg.sender); } function _bye(address payable x) internal { selfdestruct(x); } // !
  function kill(address payable x) public { _bye(x); } receive() external payable {} } // !
//// weak: a constructor by another name
pragma solidity ^0.4.20;
contract Wallet { address owner; function wallet() public { owner = msg.sender; } // !
 function out(uint v) public { require(msg.sender == owner); owner.transfer(v); } function() public payable {} }
//// weak: anybody sets the price oracle
interface O { function price() external view returns (uint256); }
contract A6 { O public oracle; mapping(address => uint256) b; constructor(O x) { oracle = x; } function setOracle(O x) external { oracle = x; } // !
 function borrow(uint256 v) external { require(b[msg.sender] * oracle.price() >= v * 15e17); payable(msg.sender).transfer(v); b[msg.sender] = 0; } function put() external payable { b[msg.sender] += msg.value; } }
//// clean: solmate Auth
import {Owned} from "solmate/auth/Owned.sol";
contract A8 is Owned(msg.sender) { address public t; uint256 public f; function setFees(address x, uint256 y) external onlyOwner { t = x; f = y; } }
