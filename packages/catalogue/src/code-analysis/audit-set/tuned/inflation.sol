//// weak: shares by the balance
contract Vault {
  IERC20 public immutable asset;
  mapping(address => uint256) public sharesOf;
  uint256 public totalShares;
  constructor(IERC20 a) { asset = a; }
  function deposit(uint256 amount) external {
    uint256 pool = asset.balanceOf(address(this));
    uint256 shares = totalShares == 0 ? amount : amount * totalShares / pool; // !
    require(asset.transferFrom(msg.sender, address(this), amount));
    totalShares += shares;
    sharesOf[msg.sender] += shares;
  }
  function withdraw(uint256 shares) external {
    sharesOf[msg.sender] -= shares;
    uint256 v = shares * asset.balanceOf(address(this)) / totalShares;
    totalShares -= shares;
    require(asset.transfer(msg.sender, v));
  }
}
//// weak: through view functions
contract Pot {
  IERC20 public immutable asset;
  mapping(address => uint256) internal part;
  uint256 internal parts;
  constructor(IERC20 a) { asset = a; }
  function totalAssets() public view virtual returns (uint256) { return asset.balanceOf(address(this)); }
  function convert(uint256 v) public view returns (uint256) {
    if (parts == 0) return v;
    return (v * parts) / totalAssets(); // !
  }
  function enter(uint256 v) external {
    uint256 got = convert(v);
    parts += got;
    part[msg.sender] += got;
    require(asset.transferFrom(msg.sender, address(this), v));
  }
}
//// clean: with virtual shares
contract Vault {
  IERC20 public immutable asset;
  mapping(address => uint256) public sharesOf;
  uint256 public totalShares;
  constructor(IERC20 a) { asset = a; }
  function deposit(uint256 amount) external {
    uint256 shares = amount * (totalShares + 1e3) / (asset.balanceOf(address(this)) + 1);
    require(asset.transferFrom(msg.sender, address(this), amount));
    totalShares += shares;
    sharesOf[msg.sender] += shares;
  }
}
//// clean: assets are counted inside
contract Vault {
  IERC20 public immutable asset;
  mapping(address => uint256) public sharesOf;
  uint256 public totalShares;
  uint256 public held;
  constructor(IERC20 a) { asset = a; }
  function deposit(uint256 amount) external {
    uint256 shares = totalShares == 0 ? amount : amount * totalShares / held;
    held += amount;
    totalShares += shares;
    sharesOf[msg.sender] += shares;
    require(asset.transferFrom(msg.sender, address(this), amount));
  }
}
