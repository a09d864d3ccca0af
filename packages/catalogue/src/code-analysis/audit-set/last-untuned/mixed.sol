//// weak: owner through a role enum
contract A { enum R { None, User, Admin } mapping(address => R) public r; constructor() { r[msg.sender] = R.Admin; } function promote(address a) external { r[a] = R.Admin; } // !
 function out(address payable t) external { require(r[msg.sender] == R.Admin, "x"); t.transfer(address(this).balance); } receive() external payable {} }
//// weak: mint in a diamond storage library
library S { struct L { mapping(address => uint256) b; uint256 t; } function l() internal pure returns (L storage s) { bytes32 p = keccak256("s"); assembly { s.slot := p } } function add(address a, uint256 v) internal { L storage s = l(); s.b[a] += v; s.t += v; } // !
 function sub(address a, uint256 v) internal { L storage s = l(); s.b[a] -= v; } }
contract B { function mintTo(address a, uint256 v) external { S.add(a, v); } // !
 function transfer(address a, uint256 v) external { S.sub(msg.sender, v); S.add(a, v); } }
//// weak: beacon that anybody sets
contract C { address public beacon; constructor(address b) { beacon = b; } function setBeacon(address b) external { require(b.code.length > 0); beacon = b; } // !
 fallback() external payable { (bool ok, bytes memory r) = beacon.staticcall(abi.encodeWithSignature("implementation()")); require(ok); (ok, ) = abi.decode(r, (address)).delegatecall(msg.data); require(ok); } }
//// weak: zap pulls from the named user in solmate style
import {SafeTransferLib} from "solmate/utils/SafeTransferLib.sol";
import {ERC20} from "solmate/tokens/ERC20.sol";
contract D { using SafeTransferLib for ERC20; mapping(address => uint256) public d; function depositFor(ERC20 t, address user, uint256 v) external { t.safeTransferFrom(user, address(this), v); d[msg.sender] += v; } } // !
//// weak: sweep of a list of tokens
interface T { function transfer(address a, uint256 v) external returns (bool); function balanceOf(address a) external view returns (uint256); }
contract E { function sweep(T[] calldata ts) external { for (uint256 i; i < ts.length; ++i) { uint256 b = ts[i].balanceOf(address(this)); if (b > 0) require(ts[i].transfer(msg.sender, b)); } } } // !
//// weak: emergency exit of ether by try-call
contract F { error Fail(); function emergency(address payable to, uint256 amount) external { (bool ok, ) = to.call{value: amount}(hex""); if (!ok) revert Fail(); } receive() external payable {} } // !
//// weak: multi signer recovered without zero
contract G { mapping(address => bool) public isSigner; uint256 public nonce; constructor(address[] memory s) { for (uint256 i; i < s.length; i++) isSigner[s[i]] = true; } address[3] public own; function exec(address to, bytes calldata d, uint8[3] calldata v, bytes32[3] calldata r, bytes32[3] calldata s) external { bytes32 h = keccak256(abi.encode(address(this), block.chainid, nonce++, to, d)); for (uint256 i; i < 3; i++) { require(ecrecover(h, v[i], r[i], s[i]) == own[i], "sig"); } (bool ok, ) = to.call(d); require(ok); } } // !
//// weak: coupon by signature without use
import "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
contract H { address signer; constructor(address s) payable { signer = s; } function claim(address payable to, uint256 v, bytes calldata sig) external { require(SignatureChecker.isValidSignatureNow(signer, keccak256(abi.encode(address(this), block.chainid, to, v)), sig), "s"); // !
 to.transfer(v); } } // !
//// weak: vault by rate function
import {ERC20} from "solady/tokens/ERC20.sol";
interface T { function balanceOf(address a) external view returns (uint256); function transferFrom(address f, address t, uint256 v) external returns (bool); function transfer(address t, uint256 v) external returns (bool); }
contract I { T immutable t; uint256 public total; mapping(address => uint256) public s; constructor(T x) { t = x; } function rate() public view returns (uint256) { return total == 0 ? 1e18 : t.balanceOf(address(this)) * 1e18 / total; } // !
 function enter(uint256 v) external { uint256 n = v * 1e18 / rate(); total += n; s[msg.sender] += n; require(t.transferFrom(msg.sender, address(this), v)); } // !
 function leave(uint256 n) external { uint256 v = n * rate() / 1e18; total -= n; s[msg.sender] -= n; require(t.transfer(msg.sender, v)); } }
//// weak: price cut to uint32
contract J { struct L { address seller; uint32 price; } mapping(uint256 => L) public l; function list(uint256 id, uint256 price) external { l[id] = L(msg.sender, uint32(price)); } // !
 function buy(uint256 id) external payable { L memory x = l[id]; require(msg.value == x.price && x.seller != address(0)); delete l[id]; payable(x.seller).transfer(msg.value); } }
//// weak: pancake callback
interface T { function transfer(address t, uint256 v) external returns (bool); }
contract K { T immutable t; constructor(T x) { t = x; } function pancakeV3SwapCallback(int256 a, int256 b, bytes calldata) external { uint256 v = a > 0 ? uint256(a) : uint256(b); require(t.transfer(msg.sender, v)); } } // !
//// weak: v2 swap with uint zero by named function
interface R { function swapExactTokensForETH(uint256 amountIn, uint256 amountOutMin, address[] calldata path, address to, uint256 deadline) external returns (uint256[] memory amounts); }
contract L { R immutable r; address[] p; constructor(R x, address[] memory q) { r = x; p = q; } function _swap(uint256 v) private { r.swapExactTokensForETH(v, 0, p, address(this), block.timestamp); } // !
 function swapBack(uint256 v) external { _swap(v); } receive() external payable {} }
//// weak: packed uint arrays signed
contract M { mapping(bytes32 => bool) public ok; function commit(uint256[] calldata a, uint256[] calldata b) external { ok[sha256(abi.encodePacked(a, b))] = true; } } // !
//// weak: payable batch mint
import {ERC721} from "solmate/tokens/ERC721.sol";
contract N is ERC721("n", "n") { uint256 n; function tokenURI(uint256) public pure override returns (string memory) { return ""; } function _one() internal { require(msg.value >= 0.05 ether, "price"); _mint(msg.sender, ++n); } // !
 function batch(uint256 k) external payable { do { _one(); } while (--k > 0); } function out() external { payable(address(0xdEaD)).transfer(address(this).balance); } } // !
//// weak: fee divided first in a library
library F { function fee(uint256 a, uint256 bps) internal pure returns (uint256) { return a / 10000 * bps; } } // !
contract O { using F for uint256; mapping(address => uint256) public b; function put() external payable { b[msg.sender] += msg.value - msg.value.fee(25); } function get(uint256 v) external { b[msg.sender] -= v; payable(msg.sender).transfer(v); } }
//// weak: erc777 style hook before write
interface T { function transfer(address t, uint256 v) external returns (bool); }
contract P { mapping(address => uint256) b; function put() external payable { b[msg.sender] += msg.value; } function get(uint256 v, address payable to) external { require(b[msg.sender] >= v, "low"); (bool ok, bytes memory d) = to.call{value: v}(""); require(ok, string(d)); unchecked { b[msg.sender] -= v; } } } // !
//// weak: unchecked approve transferFrom of a token in an old contract
pragma solidity ^0.5.0;
interface T { function transferFrom(address f, address t, uint256 v) external returns (bool); function transfer(address t, uint256 v) external returns (bool); }
contract Q { T t; mapping(address => uint256) b; constructor(T x) public { t = x; } function get() external { uint256 v = b[msg.sender]; b[msg.sender] = 0; t.transfer(msg.sender, v); } function put(uint256 v) external { require(t.transferFrom(msg.sender, address(this), v)); b[msg.sender] += v; } } // !
//// weak: lottery by block number hash
pragma solidity ^0.6.0;
contract U { address payable[] p; function join() external payable { require(msg.value == 1 ether); p.push(msg.sender); if (p.length == 5) { uint256 w = uint256(keccak256(abi.encode(blockhash(block.number - 1), p))) % 5; p[w].transfer(address(this).balance); delete p; } } } // !
//// weak: tx.origin in a modifier
contract V { address o = msg.sender; modifier mine() { require(o == tx.origin); _; } function out(address payable t) external mine { t.transfer(address(this).balance); } receive() external payable {} } // !
//// weak: arbitrary call by a public helper
contract W { address immutable o = msg.sender; mapping(address => bool) ok; function swap(address target, bytes calldata data, address token) external payable { (bool s, ) = target.call{value: msg.value}(data); require(s); token; } } // !
//// weak: overflow of a multiplied price
pragma solidity 0.7.6;
contract X { uint256 constant PRICE = 1 ether; mapping(address => uint256) public b; function buy(uint256 n) external payable { require(msg.value == n * PRICE); b[msg.sender] += n; } // !
 function sell(uint256 n) external { require(b[msg.sender] >= n); b[msg.sender] -= n; msg.sender.transfer(n * PRICE); } }
//// weak: auction refund must succeed
contract Y { address leader; uint256 top; function bid() external payable { require(msg.value > top); (bool ok, ) = payable(leader).call{value: top}(""); require(ok || leader == address(0), "refund"); leader = msg.sender; top = msg.value; } } // !
//// weak: initializer on a clone without a flag
contract Z { address public owner; address public token; function init(address o, address t) public { owner = o; token = t; } // !
 modifier own() { require(owner == msg.sender, "own"); _; } function exec(address to, bytes calldata d) external own { (bool ok, ) = to.call(d); require(ok); } }
//// clean: clone initialised once by OpenZeppelin
import "@openzeppelin/contracts/proxy/utils/Initializable.sol";
contract Z2 is Initializable { address public owner; constructor() { _disableInitializers(); } function init(address o) external initializer { owner = o; } function exec(address to, bytes calldata d) external { require(msg.sender == owner); (bool ok, ) = to.call(d); require(ok); } }
//// clean: timelocked admin
contract T1 { address public admin; address public pending; uint256 public eta; error No(); constructor() { admin = msg.sender; } function propose(address p) external { if (msg.sender != admin) revert No(); pending = p; eta = block.timestamp + 2 days; } function accept() external { if (msg.sender != pending || block.timestamp < eta) revert No(); admin = pending; pending = address(0); } }
//// clean: staking with rewards per share
import "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import "@openzeppelin/contracts/access/Ownable.sol";
contract St is Ownable { using SafeERC20 for IERC20; IERC20 immutable s; IERC20 immutable r; uint256 public rate; uint256 public last; uint256 public acc; uint256 public total; mapping(address => uint256) public bal; mapping(address => uint256) public paid; mapping(address => uint256) public owed; constructor(IERC20 a, IERC20 b) Ownable(msg.sender) { s = a; r = b; last = block.timestamp; } function _sync(address u) internal { if (total > 0) acc += (block.timestamp - last) * rate * 1e18 / total; last = block.timestamp; owed[u] += bal[u] * (acc - paid[u]) / 1e18; paid[u] = acc; } function setRate(uint256 x) external onlyOwner { _sync(address(0)); rate = x; } function stake(uint256 v) external { _sync(msg.sender); total += v; bal[msg.sender] += v; s.safeTransferFrom(msg.sender, address(this), v); } function exit(uint256 v) external { _sync(msg.sender); total -= v; bal[msg.sender] -= v; s.safeTransfer(msg.sender, v); } function claim() external { _sync(msg.sender); uint256 v = owed[msg.sender]; owed[msg.sender] = 0; r.safeTransfer(msg.sender, v); } }
//// clean: english auction with pull refunds
contract Au { address payable immutable seller; uint256 immutable end; address public top; uint256 public bid; bool done; mapping(address => uint256) public refunds; error Low(); error Early(); constructor(uint256 d) { seller = payable(msg.sender); end = block.timestamp + d; } function place() external payable { if (block.timestamp >= end) revert Early(); if (msg.value <= bid) revert Low(); refunds[top] += bid; top = msg.sender; bid = msg.value; } function withdraw() external { uint256 v = refunds[msg.sender]; refunds[msg.sender] = 0; (bool ok, ) = msg.sender.call{value: v}(""); require(ok); } function settle() external { if (block.timestamp < end || done) revert Early(); done = true; (bool ok, ) = seller.call{value: bid}(""); require(ok); } }
//// clean: multisig
contract Ms { mapping(address => bool) public isOwner; uint256 immutable need; struct Tx { address to; uint256 value; bytes data; uint256 ok; bool done; } Tx[] public txs; mapping(uint256 => mapping(address => bool)) public voted; modifier owners() { require(isOwner[msg.sender]); _; } constructor(address[] memory o, uint256 n) { for (uint256 i; i < o.length; i++) isOwner[o[i]] = true; need = n; } function submit(address to, uint256 v, bytes calldata d) external owners { txs.push(Tx(to, v, d, 0, false)); } function confirm(uint256 i) external owners { require(!voted[i][msg.sender]); voted[i][msg.sender] = true; txs[i].ok++; } function execute(uint256 i) external owners { Tx storage t = txs[i]; require(t.ok >= need && !t.done); t.done = true; (bool ok, ) = t.to.call{value: t.value}(t.data); require(ok); } receive() external payable {} }
//// clean: escrow with arbiter
pragma solidity ^0.7.0;
contract Es { address payable immutable buyer; address payable immutable seller; address immutable arbiter; bool released; constructor(address payable s, address a) payable { buyer = msg.sender; seller = s; arbiter = a; } function release() external { require(msg.sender == buyer || msg.sender == arbiter, "who"); require(!released); released = true; seller.transfer(address(this).balance); } function refund() external { require(msg.sender == seller || msg.sender == arbiter, "who"); require(!released); released = true; buyer.transfer(address(this).balance); } }
//// clean: v3 router use with quoted minimum given
interface R3 { struct P { address tokenIn; address tokenOut; uint24 fee; address recipient; uint256 amountIn; uint256 amountOutMinimum; uint160 sqrtPriceLimitX96; } function exactInputSingle(P calldata p) external payable returns (uint256); }
contract Sw { R3 immutable r; constructor(R3 x) { r = x; } function go(address a, address b, uint256 v, uint256 least) external returns (uint256) { R3.P memory p; p.tokenIn = a; p.tokenOut = b; p.fee = 500; p.recipient = msg.sender; p.amountIn = v; p.amountOutMinimum = least; return r.exactInputSingle(p); } }
//// clean: counter and greeter
contract Gr { string public greeting; uint256 public count; mapping(address => string) public said; function set(string calldata g) external { greeting = g; said[msg.sender] = g; count++; } }
//// clean: NFT with whitelist and supply
import "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import "@openzeppelin/contracts/access/Ownable.sol";
contract Nf is ERC721, Ownable { uint256 public next; uint256 public constant MAX = 100; uint256 public price = 0.05 ether; bool public open; constructor() ERC721("n", "n") Ownable(msg.sender) {} function setOpen(bool o) external onlyOwner { open = o; } function mint(uint256 k) external payable { require(open && msg.value == k * price && next + k <= MAX); for (uint256 i; i < k; ++i) _mint(msg.sender, ++next); } function out() external onlyOwner { (bool ok, ) = owner().call{value: address(this).balance}(""); require(ok); } }
//// clean: lending with checked oracle
interface Fd { function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80); }
contract Le { Fd immutable f; mapping(address => uint256) public col; mapping(address => uint256) public debt; uint256 public cash; constructor(Fd x) { f = x; } function price() public view returns (uint256) { (, int256 p, , uint256 at, ) = f.latestRoundData(); require(p > 0 && at + 1 hours >= block.timestamp, "stale"); return uint256(p); } function put() external payable { col[msg.sender] += msg.value; } function borrow(uint256 v) external { debt[msg.sender] += v; require(col[msg.sender] * price() / 1e8 >= debt[msg.sender] * 3 / 2, "ltv"); cash -= v; payable(msg.sender).transfer(v); } function fund() external payable { cash += msg.value; } function repay() external payable { debt[msg.sender] -= msg.value; cash += msg.value; } }
//// clean: old token with SafeMath
pragma solidity ^0.4.24;
library SafeMath { function add(uint a, uint b) internal pure returns (uint c) { c = a + b; require(c >= a); } function sub(uint a, uint b) internal pure returns (uint) { require(b <= a); return a - b; } }
contract Ot { using SafeMath for uint; mapping(address => uint) public balanceOf; mapping(address => mapping(address => uint)) public allowance; uint public totalSupply; constructor() public { totalSupply = 1e24; balanceOf[msg.sender] = 1e24; } function transfer(address to, uint v) public returns (bool) { balanceOf[msg.sender] = balanceOf[msg.sender].sub(v); balanceOf[to] = balanceOf[to].add(v); return true; } function transferFrom(address f, address t, uint v) public returns (bool) { allowance[f][msg.sender] = allowance[f][msg.sender].sub(v); balanceOf[f] = balanceOf[f].sub(v); balanceOf[t] = balanceOf[t].add(v); return true; } function increaseAllowance(address s, uint v) public { allowance[msg.sender][s] = allowance[msg.sender][s].add(v); } function decreaseAllowance(address s, uint v) public { allowance[msg.sender][s] = allowance[msg.sender][s].sub(v); } }
