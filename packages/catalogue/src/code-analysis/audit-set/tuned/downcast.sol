//// weak: an argument into a smaller field
contract Stakes {
  struct Stake { uint128 amount; uint64 since; }
  mapping(address => Stake) public stakes;
  IERC20 public immutable token;
  constructor(IERC20 t) { token = t; }
  function stake(uint256 amount) external {
    require(token.transferFrom(msg.sender, address(this), amount));
    stakes[msg.sender].amount += uint128(amount); // !
  }
}
//// weak: in an internal function
contract Ledger {
  mapping(address => uint96) public votes;
  function _narrow(uint256 x) internal pure returns (uint96) {
    return uint96(x); // !
  }
  function put() external payable { votes[msg.sender] = _narrow(msg.value * 1e6); }
  function lock(uint256 n) external { require(n > 0); votes[msg.sender] -= _narrow(n); }
}
//// clean: compared first
contract Stakes {
  mapping(address => uint128) public stakes;
  IERC20 public immutable token;
  constructor(IERC20 t) { token = t; }
  function stake(uint256 amount) external {
    require(amount <= type(uint128).max, "large");
    require(token.transferFrom(msg.sender, address(this), amount));
    stakes[msg.sender] += uint128(amount);
  }
}
//// clean: by the published library
import "@openzeppelin/contracts/utils/math/SafeCast.sol";
contract Stakes {
  using SafeCast for uint256;
  mapping(address => uint128) public stakes;
  mapping(address => uint64) public since;
  function stake() external payable { stakes[msg.sender] += msg.value.toUint128(); since[msg.sender] = uint64(block.timestamp); }
}
