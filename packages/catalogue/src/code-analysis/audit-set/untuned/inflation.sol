//// weak: solmate's vault over a balance
import {ERC4626} from "solmate/src/tokens/ERC4626.sol";
import {ERC20} from "solmate/src/tokens/ERC20.sol";
contract Yield is ERC4626 { // !
  constructor(ERC20 a) ERC4626(a, "Yield", "Y") {}
  function totalAssets() public view override returns (uint256) { return asset.balanceOf(address(this)); }
}
//// weak: ether and a branch
contract Pot {
  mapping(address => uint256) public part;
  uint256 public parts;
  function join() external payable returns (uint256 mine) {
    if (parts == 0) { mine = msg.value; }
    else {
      mine = msg.value * parts / (address(this).balance - msg.value); // !
    }
    part[msg.sender] += mine;
    parts += mine;
  }
  function leave(uint256 n) external { part[msg.sender] -= n; uint256 v = address(this).balance * n / parts; parts -= n; payable(msg.sender).transfer(v); }
}
//// clean: the first shares are locked away
contract Vault {
  IERC20 public immutable asset;
  mapping(address => uint256) public sharesOf;
  uint256 public totalShares;
  uint256 public constant LOCKED = 1000;
  constructor(IERC20 a) { asset = a; }
  function deposit(uint256 amount) external {
    uint256 shares;
    if (totalShares == 0) { shares = amount - LOCKED; totalShares = LOCKED; sharesOf[address(0)] = LOCKED; }
    else shares = amount * totalShares / asset.balanceOf(address(this));
    require(shares > 0);
    totalShares += shares;
    sharesOf[msg.sender] += shares;
    require(asset.transferFrom(msg.sender, address(this), amount));
  }
}
