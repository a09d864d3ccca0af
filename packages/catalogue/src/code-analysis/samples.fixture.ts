import type { RuleId } from './rules/finding.ts';

/** A weak contract and its harmless twin, which differs in what makes it harmless and in nothing else. */
export interface Pair {
  rule: RuleId;
  what: string;
  /** Around both bodies; `0.8` unless another minor is named. */
  minor?: '0.4' | '0.5' | '0.6' | '0.7' | '0.8';
  weak: string;
  harmless: string;
}

const BANK =
  'mapping(address => uint256) owed; function put() public payable { owed[msg.sender] += msg.value; }';

/** Written for these tests: thirty pairs. */
export const PAIRS: readonly Pair[] = [
  {
    rule: 'reentrancy',
    what: 'the balance falls after the call',
    weak: `${BANK} function take() public { uint256 a = owed[msg.sender]; (bool ok,) = msg.sender.call{value: a}(""); require(ok); owed[msg.sender] = 0; }`,
    harmless: `${BANK} function take() public { uint256 a = owed[msg.sender]; owed[msg.sender] = 0; (bool ok,) = msg.sender.call{value: a}(""); require(ok); }`,
  },
  {
    rule: 'reentrancy',
    what: 'the call stands in an internal function',
    weak: `${BANK} function pay(address to, uint256 a) internal { (bool ok,) = to.call{value: a}(""); require(ok); } function take() public { pay(msg.sender, owed[msg.sender]); owed[msg.sender] = 0; }`,
    harmless: `${BANK} function pay(address to, uint256 a) internal { (bool ok,) = to.call{value: a}(""); require(ok); } function take() public { uint256 a = owed[msg.sender]; delete owed[msg.sender]; pay(msg.sender, a); }`,
  },
  {
    rule: 'reentrancy',
    what: 'a lock is held over the call',
    weak: `${BANK} bool seen; modifier once() { require(!seen); _; } function take() public once { (bool ok,) = msg.sender.call{value: owed[msg.sender]}(""); require(ok); owed[msg.sender] = 0; }`,
    harmless: `${BANK} bool locked; modifier guarded() { require(!locked); locked = true; _; locked = false; } function take() public guarded { (bool ok,) = msg.sender.call{value: owed[msg.sender]}(""); require(ok); owed[msg.sender] = 0; }`,
  },
  {
    rule: 'reentrancy',
    what: 'through a pointer into storage',
    minor: '0.4',
    weak: 'struct Account { uint256 sum; } mapping(address => Account) accounts; function take(uint256 a) public { var mine = accounts[msg.sender]; if (mine.sum >= a) { if (msg.sender.call.value(a)()) { mine.sum -= a; } } }',
    harmless:
      'struct Account { uint256 sum; } mapping(address => Account) accounts; function take(uint256 a) public { var mine = accounts[msg.sender]; if (mine.sum >= a) { mine.sum -= a; require(msg.sender.call.value(a)()); } }',
  },
  {
    rule: 'reentrancy-token',
    what: 'the other contract can call back',
    weak: 'mapping(address => uint256) owed; function take(T t) public { uint256 a = owed[msg.sender]; t.give(msg.sender, a); owed[msg.sender] = 0; } } interface T { function give(address to, uint256 a) external;',
    harmless:
      'mapping(address => uint256) owed; function look(T t) public { uint256 a = t.price(); owed[msg.sender] = a + owed[msg.sender]; } } interface T { function price() external view returns (uint256);',
  },
  {
    rule: 'unchecked-call',
    what: 'send is dropped',
    minor: '0.4',
    weak: 'address to; function pay(uint256 a) public { to.send(a); }',
    harmless: 'address to; function pay(uint256 a) public { require(to.send(a)); }',
  },
  {
    rule: 'unchecked-call',
    what: 'the result is kept and never read',
    weak: 'address to; function pay() public { (bool ok, ) = to.call{value: 1}(""); }',
    harmless: 'address to; function pay() public { (bool ok, ) = to.call{value: 1}(""); if (!ok) revert(); }',
  },
  {
    rule: 'unchecked-call',
    what: 'transfer of a token that reverts is no low-level call',
    minor: '0.5',
    weak: 'address payable to; function pay() public { to.call.value(1)(""); }',
    harmless: 'address payable to; function pay() public { to.transfer(1); }',
  },
  {
    rule: 'tx-origin',
    what: 'who started the transaction',
    weak: 'address owner = msg.sender; uint256 x; function set(uint256 y) public { require(tx.origin == owner); x = y; }',
    harmless:
      'address owner = msg.sender; uint256 x; function set(uint256 y) public { require(msg.sender == owner); x = y; }',
  },
  {
    rule: 'tx-origin',
    what: 'a check that the caller is no contract is no authorization',
    weak: 'address owner; function who() public view returns (bool) { return tx.origin == owner; }',
    harmless: 'uint256 n; function count() public { require(tx.origin == msg.sender); n += 1; }',
  },
  {
    rule: 'unprotected-selfdestruct',
    what: 'anybody ends it',
    weak: 'function end() public { selfdestruct(payable(msg.sender)); }',
    harmless:
      'address owner = msg.sender; modifier onlyOwner() { require(msg.sender == owner); _; } function end() public onlyOwner { selfdestruct(payable(owner)); }',
  },
  {
    rule: 'unprotected-authority',
    what: 'a setter without a question',
    weak: 'address owner; uint256 x; function hand(address to) public { owner = to; } function set(uint256 y) public { require(msg.sender == owner); x = y; }',
    harmless:
      'address owner; uint256 x; function hand(address to) public { require(msg.sender == owner); owner = to; } function set(uint256 y) public { require(msg.sender == owner); x = y; }',
  },
  {
    rule: 'unprotected-authority',
    what: 'an initializer that runs once',
    weak: 'address owner; bool ready; uint256 x; function init(address to) public { owner = to; ready = true; } function set(uint256 y) public { require(msg.sender == owner); x = y; }',
    harmless:
      'address owner; bool initialized; uint256 x; function init(address to) public { require(!initialized); initialized = true; owner = to; } function set(uint256 y) public { require(msg.sender == owner); x = y; }',
  },
  {
    rule: 'unprotected-authority',
    what: 'a mapping of owners; an approval of one’s own is none',
    weak: 'mapping(address => bool) isOwner; uint256 x; function add(address who) public { isOwner[who] = true; } function set(uint256 y) public { require(isOwner[msg.sender]); x = y; }',
    harmless:
      'mapping(address => mapping(address => bool)) approved; mapping(address => uint256) at; function approve(address who, bool yes) public { approved[msg.sender][who] = yes; } function move(address from, uint256 y) public { require(approved[from][msg.sender]); at[from] = y; }',
  },
  {
    rule: 'wrong-constructor',
    what: 'the name differs by a letter’s case',
    minor: '0.4',
    weak: 'address owner; function c() public { owner = msg.sender; } function end() public { require(msg.sender == owner); selfdestruct(owner); }',
    harmless:
      'address owner; function C() public { owner = msg.sender; } function end() public { require(msg.sender == owner); selfdestruct(owner); }',
  },
  {
    rule: 'untrusted-delegatecall',
    what: 'the caller names the code',
    weak: 'function run(address code, bytes memory data) public { (bool ok,) = code.delegatecall(data); require(ok); }',
    harmless:
      'address immutable code = address(1); function run(bytes memory data) public { (bool ok,) = code.delegatecall(data); require(ok); }',
  },
  {
    rule: 'delegatecall-to-variable',
    what: 'the code can be changed',
    weak: 'address lib; function go() public { (bool ok,) = lib.delegatecall(abi.encodeWithSignature("f()")); require(ok); } function set(address l) public { lib = l; }',
    harmless:
      'address constant lib = address(7); function go() public { (bool ok,) = lib.delegatecall(abi.encodeWithSignature("f()")); require(ok); }',
  },
  {
    rule: 'array-length',
    what: 'a length that can fall below zero',
    minor: '0.4',
    weak: 'uint256[] all; function drop() public { all.length--; }',
    harmless: 'uint256[] all; function drop() public { require(all.length > 0); all.length--; }',
  },
  {
    rule: 'unprotected-withdrawal',
    what: 'the whole balance for whoever calls',
    weak: 'function take() public { payable(msg.sender).transfer(address(this).balance); }',
    harmless:
      'address owner = msg.sender; function take() public { require(msg.sender == owner); payable(msg.sender).transfer(address(this).balance); }',
  },
  {
    rule: 'balance-not-lowered',
    what: 'a refund again and again',
    weak: `${BANK} function refund() public { payable(msg.sender).transfer(owed[msg.sender]); }`,
    harmless: `${BANK} function refund() public { uint256 a = owed[msg.sender]; owed[msg.sender] = 0; payable(msg.sender).transfer(a); }`,
  },
  {
    rule: 'inverted-check',
    what: 'at least instead of at most',
    minor: '0.7',
    weak: `${BANK} function take(uint256 a) public { require(a >= owed[msg.sender]); msg.sender.transfer(a); owed[msg.sender] -= a; }`,
    harmless: `${BANK} function take(uint256 a) public { require(a <= owed[msg.sender]); owed[msg.sender] -= a; msg.sender.transfer(a); }`,
  },
  {
    rule: 'overflow',
    what: 'a product before 0.8',
    minor: '0.6',
    weak: 'mapping(address => uint256) has; function many(uint256 n, uint256 each) public { uint256 a = n * each; require(has[msg.sender] >= a); has[msg.sender] -= a; }',
    harmless:
      'mapping(address => uint256) has; function mul(uint256 a, uint256 b) internal pure returns (uint256) { uint256 c = a * b; require(a == 0 || c / a == b); return c; } function many(uint256 n, uint256 each) public { uint256 a = mul(n, each); require(has[msg.sender] >= a); has[msg.sender] -= a; }',
  },
  {
    rule: 'overflow',
    what: 'unchecked in 0.8',
    weak: 'uint256 total; function add(uint256 n) public { unchecked { total = total - n; } }',
    harmless: 'uint256 total; function add(uint256 n) public { total = total - n; }',
  },
  {
    rule: 'weak-randomness',
    what: 'a hash of the block’s values',
    weak: 'function draw() public { if (uint256(keccak256(abi.encodePacked(block.timestamp, block.number))) & 1 == 0) payable(msg.sender).transfer(1); }',
    harmless:
      'mapping(address => bytes32) said; function say(bytes32 h) public { said[msg.sender] = h; } function idOf(uint256 n) public view returns (bytes32) { return keccak256(abi.encode(address(this), n, said[msg.sender])); }',
  },
  {
    rule: 'weak-randomness',
    what: 'a remainder; that of days is a calendar',
    weak: 'function win() public view returns (bool) { uint256 n = block.number; return n % 7 == 3; }',
    harmless:
      'function dayStart() public view returns (uint256) { return block.timestamp - block.timestamp % 1 days; }',
  },
  {
    rule: 'timestamp-decides',
    what: 'the second decides who is paid; a deadline that the caller sets does not',
    weak: 'uint256 last; function play() public payable { require(block.timestamp != last); last = block.timestamp; payable(msg.sender).transfer(1); }',
    harmless:
      'uint256 n; function swap(uint256 deadline) public payable { require(deadline >= block.timestamp); n += 1; payable(msg.sender).transfer(1); }',
  },
  {
    rule: 'call-in-loop',
    what: 'one that refuses stops all',
    weak: 'address payable[] all; function pay() public { for (uint256 i = 0; i < all.length; i++) all[i].transfer(1); }',
    harmless:
      'mapping(address => uint256) owed; address[] all; function pay() public { for (uint256 i = 0; i < 10; i++) owed[all[i]] += 1; }',
  },
  {
    rule: 'forced-payment',
    what: 'the one before must take his money',
    weak: 'address payable leader; uint256 bid; function lead() public payable { require(msg.value > bid); leader.transfer(bid); leader = payable(msg.sender); bid = msg.value; }',
    harmless:
      'address payable leader; uint256 bid; mapping(address => uint256) owed; function lead() public payable { require(msg.value > bid); owed[leader] += bid; leader = payable(msg.sender); bid = msg.value; }',
  },
  {
    rule: 'secret-in-the-open',
    what: 'the answer is seen before it is paid',
    weak: 'bytes32 hash; function solve(string memory s) public { require(keccak256(abi.encodePacked(s)) == hash); payable(msg.sender).transfer(1 ether); }',
    harmless:
      'bytes32 hash; function solve(string memory s) public { require(keccak256(abi.encodePacked(s, msg.sender)) == hash); payable(msg.sender).transfer(1 ether); }',
  },
  {
    rule: 'uninitialised-pointer',
    what: 'a struct without memory',
    minor: '0.4',
    weak: 'address owner; struct Entry { address who; } function put() public { Entry e; e.who = msg.sender; }',
    harmless:
      'address owner; struct Entry { address who; } function put() public { Entry memory e; e.who = msg.sender; }',
  },
];

/** The source of one sample; the contract is named C. */
export function sampleSource(pair: Pair, body: string): string {
  return `pragma solidity ^${pair.minor ?? '0.8'}.0;\ncontract C {\n${body}\n}\n`;
}
