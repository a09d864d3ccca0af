//// weak: mint without a question
contract Token {
  mapping(address => uint256) public balanceOf;
  uint256 public totalSupply;
  function transfer(address to, uint256 amount) external returns (bool) {
    balanceOf[msg.sender] -= amount;
    balanceOf[to] += amount;
    return true;
  }
  function mint(address to, uint256 amount) external {
    totalSupply += amount;
    balanceOf[to] += amount; // !
  }
}
//// weak: internal mint of a base, opened by another name
abstract contract Base {
  mapping(address => uint256) internal holdings;
  uint256 internal supply;
  function send(address to, uint256 v) external { require(holdings[msg.sender] >= v); holdings[msg.sender] -= v; holdings[to] += v; }
  function _create(address to, uint256 v) internal {
    supply = supply + v;
    holdings[to] = holdings[to] + v; // !
  }
}
contract Points is Base {
  bool public paused;
  function reward(address to, uint256 v) external {
    require(!paused, "paused");
    _create(to, v);
  }
}
//// weak: through the published token
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract Coin is ERC20 {
  constructor() ERC20("Coin", "C") {}
  function issue(uint256 amount) external {
    _mint(msg.sender, amount); // !
  }
}
//// clean: minted by a role
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import "@openzeppelin/contracts/access/AccessControl.sol";
contract Coin is ERC20, AccessControl {
  bytes32 public constant ISSUER = keccak256("ISSUER");
  constructor() ERC20("Coin", "C") { _grantRole(DEFAULT_ADMIN_ROLE, msg.sender); }
  function issue(address to, uint256 amount) external onlyRole(ISSUER) { _mint(to, amount); }
}
//// clean: minted for what was paid
contract Wrapped {
  mapping(address => uint256) public balanceOf;
  uint256 public totalSupply;
  function deposit() external payable { balanceOf[msg.sender] += msg.value; totalSupply += msg.value; }
  function withdraw(uint256 v) external { balanceOf[msg.sender] -= v; totalSupply -= v; payable(msg.sender).transfer(v); }
}
//// clean: minted for tokens that came in
contract Shares {
  IERC20 public immutable asset;
  mapping(address => uint256) public shares;
  constructor(IERC20 a) { asset = a; }
  function put(uint256 v) external { require(asset.transferFrom(msg.sender, address(this), v)); shares[msg.sender] += v; }
  function take(uint256 v) external { shares[msg.sender] -= v; require(asset.transfer(msg.sender, v)); }
}
//// weak: anybody burns what others have
contract Token {
  mapping(address => uint256) public balanceOf;
  function transfer(address to, uint256 v) external { balanceOf[msg.sender] -= v; balanceOf[to] += v; }
  function burn(address from, uint256 v) external {
    balanceOf[from] -= v; // !
  }
}
//// clean: burnt by an allowance
contract Token {
  mapping(address => uint256) public balanceOf;
  mapping(address => mapping(address => uint256)) public allowance;
  function approve(address s, uint256 v) external { allowance[msg.sender][s] = v; }
  function burnFrom(address from, uint256 v) external { allowance[from][msg.sender] -= v; balanceOf[from] -= v; }
  function burn(uint256 v) external { balanceOf[msg.sender] -= v; }
}
