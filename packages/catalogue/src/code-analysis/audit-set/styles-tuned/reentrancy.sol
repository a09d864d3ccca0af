//// weak: the classical one through OpenZeppelin's sendValue
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
contract R1 { using Address for address payable; mapping(address => uint256) public bal; function put() external payable { bal[msg.sender] += msg.value; } function get() external { uint256 v = bal[msg.sender]; payable(msg.sender).sendValue(v); bal[msg.sender] = 0; } } // !
//// weak: across functions, guarded only on one
contract R3 {
    mapping(address => uint256) public bal; uint256 private lock = 1;
    modifier guard() { require(lock == 1); lock = 2; _; lock = 1; }
    function put() external payable { bal[msg.sender] += msg.value; }
    function move(address to, uint256 v) external { bal[msg.sender] -= v; bal[to] += v; }
    function get() external guard { uint256 v = bal[msg.sender]; (bool ok, ) = msg.sender.call{value: v}(""); require(ok); bal[msg.sender] = 0; } // !
}
//// weak: assembly call
contract R5 { mapping(address => uint256) public b; function put() external payable { b[msg.sender] += msg.value; } function get() external { uint256 v = b[msg.sender]; bool ok; assembly { ok := call(gas(), caller(), v, 0, 0, 0, 0) } require(ok); delete b[msg.sender]; } } // !
//// clean: effects first
contract R6 { mapping(address => uint256) public b; function put() external payable { b[msg.sender] += msg.value; } function get() external { uint256 v = b[msg.sender]; b[msg.sender] = 0; (bool ok, ) = msg.sender.call{value: v}(""); require(ok); } }
