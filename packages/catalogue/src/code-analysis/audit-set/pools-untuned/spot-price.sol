//// weak: shares of a deposit of two tokens go by slot0
interface Pool { function slot0() external view returns (uint160 sqrtPriceX96, int24 tick, uint16 a, uint16 b, uint16 c, uint8 d, bool e); }
library FullMath { function mulDiv(uint256 a, uint256 b, uint256 d) internal pure returns (uint256) { return a * b / d; } }
contract Vault { Pool immutable pool; IERC20 immutable t0; IERC20 immutable t1; mapping(address => uint256) public shares;
 constructor(Pool p, IERC20 a, IERC20 b) { pool = p; t0 = a; t1 = b; }
 function deposit(uint256 a0, uint256 a1) external returns (uint256 made) {
  (uint160 sqrtPrice, , , , , , ) = pool.slot0(); // !
  uint256 price = FullMath.mulDiv(uint256(sqrtPrice), uint256(sqrtPrice), 1 << 96);
  made = a1 + FullMath.mulDiv(a0, price, 1 << 96);
  require(t0.transferFrom(msg.sender, address(this), a0)); require(t1.transferFrom(msg.sender, address(this), a1));
  shares[msg.sender] += made; } }
//// weak: liquidation by the tick of the moment
interface CLPool { function slot0() external view returns (uint160, int24, uint16, uint16, uint16, uint8, bool); }
library Ticks { function priceAt(int24 tick) internal pure returns (uint256) { return uint256(1e18) + uint256(uint24(tick < 0 ? -tick : tick)) * 1e14; } }
contract Margin { CLPool immutable pool; mapping(address => uint256) public margin; mapping(address => uint256) public size;
 constructor(CLPool p) { pool = p; }
 function open(uint256 s) external payable { margin[msg.sender] += msg.value; size[msg.sender] += s; }
 function liquidate(address who) external {
  (, int24 tick, , , , , ) = pool.slot0(); // !
  uint256 price = Ticks.priceAt(tick);
  require(size[who] * price / 1e18 > margin[who] * 10, "healthy");
  uint256 prize = margin[who]; margin[who] = 0; size[who] = 0; payable(msg.sender).transfer(prize); } }
//// weak: the price is kept by one call and used by the next
interface Pair { function getReserves() external view returns (uint112, uint112, uint32); }
contract Kept { Pair immutable pair; uint256 public price; mapping(address => uint256) public points; constructor(Pair p) { pair = p; }
 function poke() external { (uint112 a, uint112 b, ) = pair.getReserves(); // !
  price = uint256(a) * 1e18 / b; }
 function buy() external payable { points[msg.sender] += msg.value * 1e18 / price; }
 function sell(uint256 n) external { points[msg.sender] -= n; payable(msg.sender).transfer(n * price / 1e18); } }
//// weak: a pool manager that is asked by pool id
interface Manager { function getSlot0(bytes32 id) external view returns (uint160 sqrtPriceX96, int24 tick, uint24 protocolFee, uint24 lpFee); }
contract Mints { Manager immutable manager; bytes32 immutable id; mapping(address => uint256) public balanceOf; uint256 public totalSupply;
 constructor(Manager m, bytes32 i) { manager = m; id = i; }
 function price() internal view returns (uint256) { (uint160 s, , , ) = manager.getSlot0(id); // !
  return (uint256(s) * uint256(s) >> 96) * 1e18 >> 96; }
 function mint() external payable { uint256 n = msg.value * price() / 1e18; balanceOf[msg.sender] += n; totalSupply += n; } }
//// weak: an old contract with SafeMath pays by reserves
pragma solidity ^0.6.0;
library SafeMath { function mul(uint256 a, uint256 b) internal pure returns (uint256) { if (a == 0) return 0; uint256 c = a * b; require(c / a == b); return c; } function div(uint256 a, uint256 b) internal pure returns (uint256) { require(b > 0); return a / b; } function sub(uint256 a, uint256 b) internal pure returns (uint256) { require(b <= a); return a - b; } }
interface P6 { function getReserves() external view returns (uint112 r0, uint112 r1, uint32 t); }
contract Redeemer { using SafeMath for uint256; P6 public pair; mapping(address => uint256) public held; constructor(P6 p) public { pair = p; }
 receive() external payable { held[msg.sender] = held[msg.sender] + msg.value; }
 function redeem(uint256 n) external { held[msg.sender] = held[msg.sender].sub(n);
  (uint112 r0, uint112 r1, ) = pair.getReserves(); // !
  msg.sender.transfer(n.mul(r1).div(r0)); } }
//// weak: an Algebra pool by its globalState, in a library
interface Alg { function globalState() external view returns (uint160 price, int24 tick, uint16 fee, uint16 t, uint8 c, bool u); }
library Spot { function of_(Alg pool) internal view returns (uint256) { (uint160 s, , , , , ) = pool.globalState(); // !
  return uint256(s) * uint256(s) / (1 << 128); } }
contract Bonds { Alg immutable pool; IERC20 immutable token; mapping(address => uint256) public due; constructor(Alg p, IERC20 t) { pool = p; token = t; }
 function bond(uint256 v) external { require(token.transferFrom(msg.sender, address(this), v)); due[msg.sender] += v * Spot.of_(pool) / (1 << 64); }
 function claim() external { uint256 v = due[msg.sender]; due[msg.sender] = 0; require(token.transfer(msg.sender, v)); } }
//// weak: an algorithmic supply by the spot price
interface Pair { function getReserves() external view returns (uint112, uint112, uint32); }
contract Algo { Pair immutable pair; uint256 public totalSupply = 1e24; mapping(address => uint256) public shares; uint256 public perShare = 1e18; uint256 public last;
 constructor(Pair p) { pair = p; shares[msg.sender] = 1e24; }
 function rebase() external { require(block.timestamp > last + 1 days); last = block.timestamp;
  (uint112 a, uint112 b, ) = pair.getReserves(); // !
  perShare = perShare * uint256(b) / uint256(a); totalSupply = totalSupply * uint256(b) / uint256(a); }
 function balanceOf(address w) external view returns (uint256) { return shares[w] * perShare / 1e18; }
 function transfer(address to, uint256 v) external returns (bool) { uint256 s = v * 1e18 / perShare; shares[msg.sender] -= s; shares[to] += s; return true; } }
//// weak: a reward is paid by what the pool of a token says
interface Pool3 { function slot0() external view returns (uint160, int24, uint16, uint16, uint16, uint8, bool); }
contract Farm { struct User { uint128 staked; uint64 since; } Pool3 immutable pool; IERC20 immutable token; mapping(address => User) public users; constructor(Pool3 p, IERC20 t) { pool = p; token = t; }
 function stake(uint128 v) external { require(token.transferFrom(msg.sender, address(this), v)); users[msg.sender].staked += v; users[msg.sender].since = uint64(block.timestamp); }
 function harvest() external { User storage u = users[msg.sender]; uint256 usd = uint256(u.staked) * (block.timestamp - u.since) / 365 days; u.since = uint64(block.timestamp);
  (uint160 s, , , , , , ) = pool.slot0(); // !
  uint256 x = uint256(s) >> 48; require(token.transfer(msg.sender, usd * (1 << 96) / (x * x))); } }
//// clean: a lens that shows the spot price
interface Pair { function getReserves() external view returns (uint112, uint112, uint32); }
contract Lens { function priceOf(Pair p) external view returns (uint256) { (uint112 a, uint112 b, ) = p.getReserves(); return uint256(b) * 1e18 / a; } }
//// clean: a router that trades with the pair it reads
interface Pair { function getReserves() external view returns (uint112, uint112, uint32); function swap(uint256 a, uint256 b, address to, bytes calldata d) external; }
contract Swaps { Pair immutable pair; IERC20 immutable t0; error Short(); constructor(Pair p, IERC20 t) { pair = p; t0 = t; }
 function sell(uint256 amountIn, uint256 minOut) external returns (uint256 out) { (uint256 a, uint256 b, ) = pair.getReserves(); uint256 fee = amountIn * 997; out = fee * b / (a * 1000 + fee); if (out < minOut) revert Short();
  require(t0.transferFrom(msg.sender, address(pair), amountIn)); pair.swap(0, out, msg.sender, ""); } }
//// clean: a pair's own reserves
contract OwnPair { IERC20 immutable a; IERC20 immutable b; uint112 r0; uint112 r1; uint256 lock = 1; constructor(IERC20 x, IERC20 y) { a = x; b = y; }
 function getReserves() public view returns (uint112, uint112) { return (r0, r1); }
 function swap(uint112 v, uint256 minOut) external { require(lock == 1); lock = 2; (uint112 x, uint112 y) = getReserves(); uint256 out = uint256(v) * y / (uint256(x) + v); require(out >= minOut && out < y); r0 = x + v; r1 = y - uint112(out); require(a.transferFrom(msg.sender, address(this), v)); require(b.transfer(msg.sender, out)); lock = 1; } }
//// clean: what a token takes as fee, by the balance of the pair before and after
interface Pair { function sync() external; }
contract Feeder { IERC20 immutable token; address immutable pair; uint256 public given; constructor(IERC20 t, address p) { token = t; pair = p; }
 function feed(uint256 v) external { uint256 before = token.balanceOf(pair); require(token.transferFrom(msg.sender, pair, v)); given += token.balanceOf(pair) - before; Pair(pair).sync(); } }
//// clean: a price that the caller limits before their own trade
interface Pool { function slot0() external view returns (uint160, int24, uint16, uint16, uint16, uint8, bool); function swap(address to, bool dir, int256 amount, uint160 limit, bytes calldata d) external returns (int256, int256); }
contract Limit { Pool immutable pool; error Beyond(); constructor(Pool p) { pool = p; }
 function trade(int256 amount, uint160 limit) external { (uint160 s, , , , , , ) = pool.slot0(); if (s <= limit) revert Beyond(); pool.swap(msg.sender, true, amount, limit, abi.encode(msg.sender)); } }
