//// weak: a token's answer dropped
interface IERC20 { function transfer(address t, uint256 v) external returns (bool); function transferFrom(address a, address b, uint256 v) external returns (bool); }
contract U1 { IERC20 immutable t; mapping(address => uint256) held; constructor(IERC20 x) { t = x; } function put(uint256 v) external { t.transferFrom(msg.sender, address(this), v); held[msg.sender] += v; } } // !
//// weak: send in an old contract
pragma solidity ^0.4.24;
contract U3 { mapping(address => uint) due; function put() public payable { due[msg.sender] += msg.value; } function get() public { uint v = due[msg.sender]; due[msg.sender] = 0; msg.sender.send(v); } } // !
//// clean: SafeERC20
import "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
contract U5 { using SafeERC20 for IERC20; IERC20 immutable t; mapping(address => uint256) held; constructor(IERC20 x) { t = x; } function put(uint256 v) external { t.safeTransferFrom(msg.sender, address(this), v); held[msg.sender] += v; } }
