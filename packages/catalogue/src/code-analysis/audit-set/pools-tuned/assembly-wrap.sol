//// weak: a sum in assembly before its cap
contract Cap { uint256 public total; uint256 public constant MAX = 1e24; mapping(address => uint256) public units; address immutable owner = msg.sender;
 function take(uint256 a, uint256 b) external { uint256 sum; assembly { sum := add(a, b) } // !
  require(sum <= MAX, "cap"); units[msg.sender] += a / 2; total = sum; } }
//// weak: a product in unchecked before the payment is compared
contract Items { uint256 public immutable price; mapping(address => uint256) public items; address payable immutable till; error Pay(); constructor(uint256 p) { price = p; till = payable(msg.sender); }
 function buy(uint256 n) external payable { unchecked { uint256 cost = n * price; // !
  if (msg.value < cost) revert Pay(); } items[msg.sender] += n; }
 function collect() external { till.transfer(address(this).balance); } }
//// weak: amounts summed in unchecked
contract Drop { mapping(address => uint256) public held; error Few(); constructor() { held[msg.sender] = 1e24; }
 function drop(address[] calldata to, uint256[] calldata v) external { uint256 sum; unchecked { for (uint256 i; i < v.length; ++i) sum += v[i]; } // !
  if (held[msg.sender] < sum) revert Few(); held[msg.sender] -= sum; for (uint256 i; i < to.length; ++i) held[to[i]] += v[i]; } }
//// weak: less the caller's amount in assembly, and no comparison
contract Purse { mapping(address => uint256) public purse; receive() external payable { purse[msg.sender] += msg.value; }
 function spend(uint256 v) external { uint256 had = purse[msg.sender]; uint256 left; assembly { left := sub(had, v) } // !
  purse[msg.sender] = left; payable(msg.sender).transfer(v); } }
//// weak: a lock until a time that wraps
contract Vesting { mapping(address => uint256) public amount; mapping(address => uint256) public until; function put() external payable { amount[msg.sender] += msg.value; until[msg.sender] = block.timestamp + 365 days; }
 function extend(uint256 by) external { unchecked { until[msg.sender] += by; } } // !
 function take() external { require(block.timestamp >= until[msg.sender]); uint256 v = amount[msg.sender]; amount[msg.sender] = 0; payable(msg.sender).transfer(v); } }
//// weak: an end that wraps before it is held against the length
contract Slices { mapping(uint256 => uint256) public words; uint256 public length = 100; mapping(address => uint256) public paid;
 function read(uint256 from, uint256 count) external returns (uint256 first) { unchecked { require(from + count <= length, "range"); } // !
  first = words[from]; paid[msg.sender] += count; words[from] = count; } }
//// weak: a credit of two parts in unchecked, held against a limit
contract Credit { mapping(address => uint256) public limit; mapping(address => uint256) public used; IERC20 immutable usd; constructor(IERC20 u) { usd = u; }
 function draw(uint256 v, uint256 tip) external { uint256 need; unchecked { need = v + tip; } // !
  require(used[msg.sender] + need <= limit[msg.sender]); used[msg.sender] += need; require(usd.transfer(msg.sender, v)); } }
//// weak: difference in unchecked after another comparison
contract Acc { struct A { uint256 free; uint256 locked; } mapping(address => A) public accounts; receive() external payable { accounts[msg.sender].free += msg.value; }
 function lock(uint256 v) external { A storage a = accounts[msg.sender]; a.free -= v; a.locked += v; }
 function pay(uint256 v) external { A storage a = accounts[msg.sender]; require(a.locked < 1 ether); unchecked { a.free -= v; } payable(msg.sender).transfer(v); } } // !
//// clean: the sum is compared with a part of it
contract Cap { uint256 public total; mapping(address => uint256) public units;
 function take(uint256 a) external { uint256 t = total; uint256 sum; assembly { sum := add(t, a) if lt(sum, t) { revert(0, 0) } } require(sum <= 1e24); total = sum; units[msg.sender] += a; } }
//// clean: parts of half the width cannot wrap
contract Small { uint256 public total; mapping(address => uint256) public units;
 function take(uint128 a, uint128 b) external { uint256 sum; unchecked { sum = uint256(a) + uint256(b); } require(sum <= 1e24); total = sum; units[msg.sender] += a; } }
//// clean: places in memory
contract Mem { mapping(bytes32 => address) public by; function note(bytes calldata d, uint256 skip) external { bytes32 h; require(skip < d.length); assembly { let p := mload(0x40) calldatacopy(p, d.offset, d.length) let end := add(p, d.length) mstore(0x40, add(end, 0x20)) h := keccak256(add(p, skip), sub(d.length, skip)) } require(by[h] == address(0)); by[h] = msg.sender; } }
//// clean: less after a comparison in assembly
contract Purse { mapping(address => uint256) public purse; receive() external payable { purse[msg.sender] += msg.value; }
 function spend(uint256 v) external { uint256 had = purse[msg.sender]; assembly { if lt(had, v) { revert(0, 0) } had := sub(had, v) } purse[msg.sender] = had; payable(msg.sender).transfer(v); } }
//// clean: coins that came in are added in assembly
contract Jar { uint256 public total; mapping(address => uint256) public of_; function put() external payable { uint256 t = total; assembly { t := add(t, callvalue()) } require(t < 1e26); total = t; of_[msg.sender] += msg.value; } function out() external { uint256 v = of_[msg.sender]; of_[msg.sender] = 0; total -= v; payable(msg.sender).transfer(v); } }
