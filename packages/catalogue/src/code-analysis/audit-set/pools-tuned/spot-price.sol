//// weak: what may be borrowed goes by the pair's reserves
interface Pair { function getReserves() external view returns (uint112, uint112, uint32); }
contract Loans { Pair immutable pair; IERC20 immutable usd; mapping(address => uint256) public collateral; mapping(address => uint256) public owed;
 constructor(Pair p, IERC20 u) { pair = p; usd = u; }
 function deposit() external payable { collateral[msg.sender] += msg.value; }
 function borrow(uint256 amount) external {
  (uint112 r0, uint112 r1, ) = pair.getReserves(); // !
  uint256 worth = collateral[msg.sender] * uint256(r1) / uint256(r0);
  require(owed[msg.sender] + amount <= worth * 3 / 4, "too much");
  owed[msg.sender] += amount; require(usd.transfer(msg.sender, amount)); } }
//// weak: the price is the ratio of what the pair holds
contract Seller { IERC20 immutable gold; IERC20 immutable usd; address immutable pair; mapping(address => uint256) public stake;
 constructor(IERC20 g, IERC20 u, address p) { gold = g; usd = u; pair = p; }
 function stakeGold(uint256 v) external { require(gold.transferFrom(msg.sender, address(this), v)); stake[msg.sender] += v; }
 function cashOut() external { uint256 v = stake[msg.sender]; stake[msg.sender] = 0;
  uint256 usdPerGold = usd.balanceOf(pair) * 1e18 / gold.balanceOf(pair); // !
  require(usd.transfer(msg.sender, v * usdPerGold / 1e18)); } }
//// weak: another contract of the sources asks the pair, behind an interface
interface Pair { function getReserves() external view returns (uint112 a, uint112 b, uint32 t); }
interface IPrices { function priceOf(address token) external view returns (uint256); }
contract PairPrices is IPrices { mapping(address => Pair) public pairs; constructor(address t, Pair p) { pairs[t] = p; }
 function priceOf(address token) external view override returns (uint256) { (uint112 a, uint112 b, ) = pairs[token].getReserves(); // !
  return uint256(b) * 1e18 / a; } }
contract Lender { IPrices immutable prices; IERC20 immutable usd; mapping(address => mapping(address => uint256)) public held; mapping(address => uint256) public owed;
 constructor(IPrices p, IERC20 u) { prices = p; usd = u; }
 function put(address t, uint256 v) external { require(IERC20(t).transferFrom(msg.sender, address(this), v)); held[msg.sender][t] += v; }
 function borrow(address t, uint256 v) external { owed[msg.sender] += v; require(held[msg.sender][t] * prices.priceOf(t) / 1e18 >= owed[msg.sender] * 2); require(usd.transfer(msg.sender, v)); } }
//// weak: what a router would give now is what the collateral is worth
contract Router2 { IRouter immutable router; IERC20 immutable usd; IERC20 immutable coin; mapping(address => uint256) public held; mapping(address => uint256) public owed;
 constructor(IRouter r, IERC20 u, IERC20 c) { router = r; usd = u; coin = c; }
 function put(uint256 v) external { require(coin.transferFrom(msg.sender, address(this), v)); held[msg.sender] += v; }
 function worth(address who) public view returns (uint256) { address[] memory path = new address[](2); path[0] = address(coin); path[1] = address(usd);
  return router.getAmountsOut(held[who], path)[1]; } // !
 function borrow(uint256 v) external { owed[msg.sender] += v; require(worth(msg.sender) >= owed[msg.sender] * 3 / 2); require(usd.transfer(msg.sender, v)); } }
//// weak: shares of a pair are valued by its reserves and two feeds
interface LP { function getReserves() external view returns (uint112, uint112, uint32); function totalSupply() external view returns (uint256); }
interface Feed { function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80); }
contract LpBank { LP immutable lp; Feed immutable f0; Feed immutable f1; IERC20 immutable usd; mapping(address => uint256) public lps; mapping(address => uint256) public owed;
 constructor(LP l, Feed a, Feed b, IERC20 u) { lp = l; f0 = a; f1 = b; usd = u; }
 function fresh(Feed f) internal view returns (uint256) { (, int256 p, , uint256 t, ) = f.latestRoundData(); require(p > 0 && block.timestamp - t < 1 hours); return uint256(p); }
 function lpPrice() public view returns (uint256) { (uint112 r0, uint112 r1, ) = lp.getReserves(); // !
  return (r0 * fresh(f0) + r1 * fresh(f1)) / lp.totalSupply(); }
 function borrow(uint256 v) external { uint256 most = lps[msg.sender] * lpPrice() / 1e8; owed[msg.sender] += v; require(owed[msg.sender] <= most); require(usd.transfer(msg.sender, v)); } }
//// weak: an NFT costs dollars, in coins by the pool's price
interface Pair { function getReserves() external view returns (uint112 reserve0, uint112 reserve1, uint32 last); }
contract Tickets { Pair immutable pair; mapping(uint256 => address) public ownerOf; uint256 next; address immutable till;
 error TooLittle(uint256 wanted); constructor(Pair p, address t) { pair = p; till = t; }
 function cost() public view returns (uint256) { (uint256 eth, uint256 usd, ) = pair.getReserves(); return 100e6 * eth / usd; } // !
 function buy() external payable { if (msg.value < cost()) revert TooLittle(cost()); ownerOf[next++] = msg.sender; }
 function collect() external { payable(till).transfer(address(this).balance); } }
//// weak: a Balancer pool by its balances
interface BVault { function getPoolTokens(bytes32 id) external view returns (address[] memory tokens, uint256[] memory balances, uint256 last); }
contract Stable { BVault immutable vault; bytes32 immutable id; mapping(address => uint256) public coll; mapping(address => uint256) public debt; constructor(BVault v, bytes32 i) { vault = v; id = i; }
 function lock() external payable { coll[msg.sender] += msg.value; }
 function _price() private view returns (uint256) { (, uint256[] memory b, ) = vault.getPoolTokens(id); // !
  return b[1] * 1e18 / b[0]; }
 function draw(uint256 v) external { debt[msg.sender] += v; require(coll[msg.sender] * _price() / 1e18 > debt[msg.sender] * 2, "low"); } }
//// weak: inherited, with the price in a base
interface Pair { function getReserves() external view returns (uint112, uint112, uint32); }
abstract contract Prices { Pair internal immutable pair; constructor(Pair p) { pair = p; }
 function _quote(uint256 amount) internal view virtual returns (uint256) { (uint256 x, uint256 y, ) = pair.getReserves(); // !
  return amount * y / x; } }
contract Pawn is Prices { IERC20 immutable thing; mapping(address => uint256) public pawned; constructor(Pair p, IERC20 t) Prices(p) { thing = t; }
 receive() external payable {}
 function pawn(uint256 v) external { require(thing.transferFrom(msg.sender, address(this), v)); pawned[msg.sender] += v; (bool ok, ) = msg.sender.call{value: _quote(v) / 2}(""); require(ok); } }
//// clean: the mean over half an hour by observe
interface Obs { function observe(uint32[] calldata ago) external view returns (int56[] memory ticks, uint160[] memory s); }
library Ticks { function priceAt(int24 tick) internal pure returns (uint256) { return uint256(1e18) + uint256(uint24(tick < 0 ? -tick : tick)) * 1e14; } }
contract Timed { Obs immutable pool; mapping(address => uint256) public coll; mapping(address => uint256) public debt; constructor(Obs p) { pool = p; }
 function lock() external payable { coll[msg.sender] += msg.value; }
 function price() public view returns (uint256) { uint32[] memory ago = new uint32[](2); ago[0] = 1800; (int56[] memory t, ) = pool.observe(ago); return Ticks.priceAt(int24((t[1] - t[0]) / 1800)); }
 function draw(uint256 v) external { debt[msg.sender] += v; require(coll[msg.sender] * price() / 1e18 >= debt[msg.sender] * 2); } }
//// clean: cumulative prices, with the reserves up to now
interface Pair { function getReserves() external view returns (uint112, uint112, uint32); function price0CumulativeLast() external view returns (uint256); }
contract Twap { Pair immutable pair; uint256 public cumulative; uint32 public at; uint256 public average; mapping(address => uint256) public coll; mapping(address => uint256) public debt;
 constructor(Pair p) { pair = p; }
 function current() internal view returns (uint256 c, uint32 t) { t = uint32(block.timestamp); c = pair.price0CumulativeLast(); (uint112 a, uint112 b, uint32 last) = pair.getReserves(); unchecked { if (last != t) c += (uint256(b) << 112) / a * (t - last); } }
 function update() external { (uint256 c, uint32 t) = current(); unchecked { uint32 e = t - at; require(e >= 1 hours); average = (c - cumulative) / e; } cumulative = c; at = t; }
 function lock() external payable { coll[msg.sender] += msg.value; }
 function draw(uint256 v) external { debt[msg.sender] += v; require((coll[msg.sender] * average >> 112) >= debt[msg.sender] * 2); } }
//// clean: spot is only held against the mean
interface Pool { function slot0() external view returns (uint160, int24, uint16, uint16, uint16, uint8, bool); function observe(uint32[] calldata ago) external view returns (int56[] memory, uint160[] memory); }
contract Careful { Pool immutable pool; mapping(address => uint256) public units; error Moved(); constructor(Pool p) { pool = p; }
 function mean() internal view returns (int24) { uint32[] memory ago = new uint32[](2); ago[0] = 600; (int56[] memory t, ) = pool.observe(ago); return int24((t[1] - t[0]) / 600); }
 function buy() external payable { (, int24 tick, , , , , ) = pool.slot0(); int24 m = mean(); int24 d = tick > m ? tick - m : m - tick; if (d > 200) revert Moved(); units[msg.sender] += msg.value * uint256(uint24(m < 0 ? -m : m)) / 1e4; } }
//// clean: liquidity for the pool's present price goes to the pool
interface Pool { function slot0() external view returns (uint160, int24, uint16, uint16, uint16, uint8, bool); function mint(address to, int24 lo, int24 hi, uint128 liquidity, bytes calldata d) external returns (uint256, uint256); }
contract Positions { Pool immutable pool; mapping(address => uint128) public liquidityOf; constructor(Pool p) { pool = p; }
 function add(int24 lo, int24 hi, uint128 want, uint256 most0, uint256 most1) external { (uint160 s, , , , , , ) = pool.slot0(); require(s > 0); uint128 liquidity = uint128(uint256(want) * (1 << 96) / uint256(s)); require(liquidity <= type(uint128).max); (uint256 x, uint256 y) = pool.mint(address(this), lo, hi, liquidity, abi.encode(msg.sender)); require(x <= most0 && y <= most1); liquidityOf[msg.sender] += liquidity; } }
//// clean: a feed with its time, and the pair's reserves for an event alone
interface Pair { function getReserves() external view returns (uint112, uint112, uint32); }
interface Feed { function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80); }
contract Watcher { Pair immutable pair; Feed immutable feed; mapping(address => uint256) public coll; mapping(address => uint256) public debt; event Spot(uint256 price); constructor(Pair p, Feed f) { pair = p; feed = f; }
 function lock() external payable { coll[msg.sender] += msg.value; }
 function draw(uint256 v) external { (, int256 p, , uint256 t, ) = feed.latestRoundData(); require(p > 0 && block.timestamp - t < 3600); debt[msg.sender] += v; require(coll[msg.sender] * uint256(p) / 1e8 >= debt[msg.sender] * 2); (uint112 a, uint112 b, ) = pair.getReserves(); emit Spot(uint256(b) * 1e18 / a); } }
