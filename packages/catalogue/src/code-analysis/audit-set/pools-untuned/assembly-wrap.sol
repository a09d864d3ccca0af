//// weak: a product in assembly before the payment is compared
contract Tickets { uint256 public price = 1 ether; mapping(address => uint256) public tickets; address payable immutable till = payable(msg.sender);
 function buy(uint256 n) external payable { uint256 p = price; uint256 cost; assembly { cost := mul(n, p) } // !
  require(msg.value >= cost, "pay"); tickets[msg.sender] += n; }
 function collect() external { till.transfer(address(this).balance); } }
//// weak: amounts summed in assembly, and the sum held against the balance
contract Batch { mapping(address => uint256) public balanceOf; constructor() { balanceOf[msg.sender] = 1e24; }
 function send(address[] calldata to, uint256[] calldata v) external { uint256 sum; for (uint256 i; i < v.length; ++i) { uint256 x = v[i]; assembly { sum := add(sum, x) } } // !
  require(balanceOf[msg.sender] >= sum); balanceOf[msg.sender] -= sum; for (uint256 i; i < to.length; ++i) balanceOf[to[i]] += v[i]; } }
//// weak: the sum is written in assembly after its cap
contract Sale { uint256 public sold; mapping(address => uint256) public bought;
 function reserve(uint256 n) external { assembly { let next := add(sload(sold.slot), n) // !
  if gt(next, 1000000) { revert(0, 0) } sstore(sold.slot, next) } bought[msg.sender] += n; } }
//// weak: the sum is made in a library of assembly
library Fast { function plus(uint256 a, uint256 b) internal pure returns (uint256 c) { assembly { c := add(a, b) } } } // !
contract Pool { using Fast for uint256; uint256 public total; uint256 immutable cap; mapping(address => uint256) public of_; constructor(uint256 c) { cap = c; }
 function enter(uint256 v) external { uint256 t = total.plus(v); require(t <= cap); total = t; of_[msg.sender] = v; } }
//// weak: an allowance is lowered in assembly
contract Tok { mapping(address => uint256) public balanceOf; mapping(address => mapping(address => uint256)) public allowance; constructor() { balanceOf[msg.sender] = 1e24; }
 function approve(address s, uint256 v) external { allowance[msg.sender][s] = v; }
 function transferFrom(address f, address t, uint256 v) external returns (bool) { uint256 a = allowance[f][msg.sender]; assembly { a := sub(a, v) } // !
  allowance[f][msg.sender] = a; balanceOf[f] -= v; balanceOf[t] += v; return true; } }
//// weak: a fee from a product that wraps
contract Fees { mapping(address => uint256) public held; uint256 public fees; receive() external payable { held[msg.sender] += msg.value; }
 function quote(uint256 amount, uint256 bps) internal pure returns (uint256 fee) { assembly { fee := div(mul(amount, bps), 10000) } } // !
 function out(uint256 amount, uint256 bps) external { uint256 fee = quote(amount, bps); require(fee >= 1000, "fee"); held[msg.sender] -= fee; fees += fee; } }
//// weak: a function of assembly adds
contract Yul { uint256 public minted; mapping(address => uint256) public mintedBy;
 function mint(uint256 n) external { uint256 m = minted; bool ok; assembly { function plus(x, y) -> z { z := add(x, y) } // !
   let s := plus(m, n) ok := iszero(gt(s, 10000)) m := s } require(ok); minted = m; mintedBy[msg.sender] = n; } }
//// weak: shares times price in unchecked decide what is pulled
contract Shares { IERC20 immutable usd; uint256 immutable price; mapping(address => uint256) public shares; constructor(IERC20 u, uint256 p) { usd = u; price = p; }
 function buy(uint256 n, uint256 most) external { uint256 cost; unchecked { cost = n * price; } // !
  require(cost <= most); require(usd.transferFrom(msg.sender, address(this), cost)); shares[msg.sender] += n; } }
//// clean: parts are compared before
contract Cap2 { uint256 public total; uint256 constant MAX = 1e24; mapping(address => uint256) public units; error Much();
 function take(uint256 a) external { uint256 t = total; if (a > MAX - t) revert Much(); assembly { t := add(t, a) } total = t; units[msg.sender] += a; } }
//// clean: the product is divided again
contract Mul { uint256 public price = 1e15; mapping(address => uint256) public n; address payable immutable till = payable(msg.sender);
 function buy(uint256 k) external payable { uint256 p = price; uint256 cost; assembly { cost := mul(k, p) if iszero(or(iszero(k), eq(div(cost, k), p))) { revert(0, 0) } } require(msg.value >= cost); n[msg.sender] += k; }
 function collect() external { till.transfer(address(this).balance); } }
//// clean: counted up in unchecked, and never for the caller
contract Count { mapping(address => uint256) public nonces; mapping(address => uint256) public seen; function touch(uint256[] calldata ids) external { for (uint256 i; i < ids.length;) { seen[msg.sender] = ids[i]; unchecked { ++i; } } unchecked { nonces[msg.sender]++; } } }
//// clean: few at a fixed price
contract Few { uint256 constant PRICE = 1 ether; mapping(address => uint256) public n; address payable immutable till = payable(msg.sender); error No();
 function buy(uint256 k) external payable { if (k > 20) revert No(); unchecked { if (msg.value < k * PRICE) revert No(); } n[msg.sender] += k; }
 function collect() external { till.transfer(address(this).balance); } }
//// clean: a hash that may wrap
contract Mix { mapping(uint256 => address) public slots; function claim(uint256 a, uint256 b) external { uint256 k; assembly { k := add(mul(a, 31), b) k := mod(k, 1024) } require(slots[k] == address(0)); slots[k] = msg.sender; } }
