//// weak: a stake cut to a word of its struct
contract S1 {
    struct Pos { uint128 amount; uint64 at; }
    mapping(address => Pos) public pos; 
    function stake(uint256 v) external payable { require(msg.value == v); pos[msg.sender] = Pos({amount: uint128(v), at: uint64(block.timestamp)}); } // !
    function stakeFor(address w) external payable { pos[w].amount += uint96(msg.value); }
}
//// weak: a signed amount made unsigned
interface IERC20 { function transferFrom(address f, address t, uint256 v) external returns (bool); }
contract S3 {
    IERC20 immutable t; mapping(address => uint256) public margin;
    constructor(IERC20 x) { t = x; }
    function adjust(int256 delta) external {
        uint256 v = uint256(delta); // !
        margin[msg.sender] += v;
        require(t.transferFrom(msg.sender, address(this), v));
    }
}
//// weak: unsigned to signed
contract S5 {
    mapping(address => int128) public flow;
    function push(uint256 amount) external { flow[msg.sender] += int128(int256(amount)); } // !
}
//// clean: SafeCast
import "@openzeppelin/contracts/utils/math/SafeCast.sol";
contract S6 { using SafeCast for uint256; mapping(address => uint128) held; function put() external payable { held[msg.sender] += msg.value.toUint128(); } }
//// clean: bits of a hash
contract S8 { function id(string calldata s) external pure returns (uint32) { return uint32(uint256(keccak256(bytes(s)))); } }
