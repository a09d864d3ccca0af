/** The findings of rules, and the descriptions of the rules. */
import type { Contract, Place, Routine } from '../syntax/tree.ts';

export const SEVERITIES = ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW'] as const;
export type Severity = (typeof SEVERITIES)[number];
export type Confidence = 'high' | 'medium' | 'low';

export const FINDING_CLASSES = [
  'reentrancy',
  'unchecked-calls',
  'access-control',
  'arithmetic',
  'randomness',
  'time',
  'denial-of-service',
  'front-running',
  'storage',
  'upgrades',
  'token-flow',
  'payments',
  'signatures',
  'encoding',
  'callbacks',
  'slippage',
  'share-price',
  'oracles',
  'price-manipulation',
] as const;
export type FindingClass = (typeof FINDING_CLASSES)[number];

/** Classes whose rules need names and types that a compiler resolved. */
export const TYPED_CLASSES: ReadonlySet<FindingClass> = new Set([
  'upgrades',
  'token-flow',
  'encoding',
  'slippage',
  'share-price',
  'price-manipulation',
]);

/** Kinds of weakness that no rule looks for, each with what it is. */
export const UNEXAMINED_CLASSES = {
  'unusual-tokens': 'tokens that take a fee, change balances by themselves, or can be blocked',
  'read-only-reentrancy': 'another contract that reads a state which is about to change',
  'cross-chain': 'messages from other chains',
  governance: 'votes, quorums and delays',
  'trust-in-owners': 'what those in charge may do',
  'memory-in-assembly': 'memory that assembly overwrites',
  'upgrade-layout': 'storage that a new version lays out otherwise',
  'business-logic': 'whether it does what it is meant to do',
} as const;

export interface RuleFacts {
  class: FindingClass;
  title: string;
  /** Entry of the SWC registry, https://swcregistry.io; null without one. */
  swc: string | null;
  why: string;
  remedy: string;
}

export const RULES = {
  reentrancy: {
    class: 'reentrancy',
    title: 'State changes after a call to somebody else’s code',
    swc: 'SWC-107',
    why: 'Whoever is called can call back before the change, while the contract still believes the old state.',
    remedy: 'Change the state before the call, or keep callers out with a lock for the length of the call.',
  },
  'reentrancy-token': {
    class: 'reentrancy',
    title: 'State changes after a call to another contract',
    swc: 'SWC-107',
    why: 'A token with hooks, or a contract of somebody’s choice, can call back before the change.',
    remedy: 'Change the state before the call, or use a lock; call only contracts whose code is known.',
  },
  'reentrancy-transfer': {
    class: 'reentrancy',
    title: 'State changes after a payment',
    swc: 'SWC-107',
    why: 'transfer and send give the receiver 2,300 gas, too little to call back at today’s prices; the protection is the price list’s and not the contract’s.',
    remedy: 'Change the state before the payment.',
  },
  'unchecked-call': {
    class: 'unchecked-calls',
    title: 'The result of a low-level call is not looked at',
    swc: 'SWC-104',
    why: 'send, call, delegatecall and callcode answer false when they fail and do not revert: the contract goes on as if it had worked.',
    remedy: 'Put the result into require, or act on it.',
  },
  'tx-origin': {
    class: 'access-control',
    title: 'Authorization by tx.origin',
    swc: 'SWC-115',
    why: 'A contract that the owner calls can call this one in the owner’s name.',
    remedy: 'Compare msg.sender.',
  },
  'unprotected-selfdestruct': {
    class: 'access-control',
    title: 'Anybody can destroy the contract',
    swc: 'SWC-106',
    why: 'The path to selfdestruct asks nobody who they are.',
    remedy: 'Let only a known party get there, or remove it.',
  },
  'unprotected-authority': {
    class: 'access-control',
    title: 'Anybody can change who is in charge',
    swc: 'SWC-105',
    why: 'The variable decides elsewhere who may do what, and here it is set for whoever calls.',
    remedy: 'Let only the present holder set it, or set it once in the constructor.',
  },
  'wrong-constructor': {
    class: 'access-control',
    title: 'A function that looks like a constructor',
    swc: 'SWC-118',
    why: 'Before 0.5 a constructor was a function with exactly the contract’s name; this one is not, so anybody can call it at any time.',
    remedy: 'Write constructor(…).',
  },
  'untrusted-delegatecall': {
    class: 'access-control',
    title: 'Somebody else’s code runs with this contract’s storage',
    swc: 'SWC-112',
    why: 'delegatecall to an address that the caller names, or with whatever the caller sends, can change everything here.',
    remedy: 'Call only a fixed address, and only functions that are meant.',
  },
  'delegatecall-to-variable': {
    class: 'access-control',
    title: 'delegatecall to an address that can be set',
    swc: 'SWC-112',
    why: 'Whoever sets the address decides what this contract does, and its storage layout must fit.',
    remedy: 'Make the address immutable, or say who may set it and after which delay.',
  },
  'array-length': {
    class: 'access-control',
    title: 'The length of a stored array is set by hand',
    swc: 'SWC-124',
    why: 'A length that runs below zero or to a caller’s number makes every storage slot an element of the array.',
    remedy: 'Use push and pop, and check the index against the true length.',
  },
  'unprotected-withdrawal': {
    class: 'access-control',
    title: 'Anybody can take what the contract holds',
    swc: 'SWC-105',
    why: 'The payment goes to whoever calls or names a receiver, and nothing on the way asks who that is or what is theirs.',
    remedy: 'Ask who calls, and pay no more than what is theirs.',
  },
  'balance-not-lowered': {
    class: 'access-control',
    title: 'A balance is paid out and not lowered',
    swc: 'SWC-105',
    why: 'The same balance can be paid out again and again.',
    remedy: 'Set it to zero before the payment.',
  },
  'inverted-check': {
    class: 'access-control',
    title: 'A check before a payment points the wrong way',
    swc: 'SWC-105',
    why: 'It asks that the caller has less than what is paid, not at least as much.',
    remedy: 'Turn the comparison round.',
  },
  overflow: {
    class: 'arithmetic',
    title: 'Arithmetic that can run over',
    swc: 'SWC-101',
    why: 'Before 0.8, and inside unchecked, a result that does not fit wraps round without a word.',
    remedy: 'Compare the operands first, use a checked library, or compile with 0.8.',
  },
  'weak-randomness': {
    class: 'randomness',
    title: 'Chance from what a block says',
    swc: 'SWC-120',
    why: 'Whoever makes the block knows these values, and another contract can read them in the same transaction.',
    remedy: 'Use a verifiable random function, or commit and reveal.',
  },
  'timestamp-decides': {
    class: 'time',
    title: 'The time of the block decides',
    swc: 'SWC-116',
    why: 'Whoever makes the block may move its time by some seconds.',
    remedy: 'Let nothing depend on seconds; where it is a wide window, this is no danger.',
  },
  'call-in-loop': {
    class: 'denial-of-service',
    title: 'One receiver can stop the payments of all',
    swc: 'SWC-113',
    why: 'In a loop, one receiver that refuses makes the whole transaction fail.',
    remedy: 'Let each receiver fetch their own.',
  },
  'forced-payment': {
    class: 'denial-of-service',
    title: 'A stored receiver can stop the contract',
    swc: 'SWC-113',
    why: 'The state goes on only if a payment to somebody of the past succeeds; a contract that refuses stops it for ever.',
    remedy: 'Note what is owed and let the receiver fetch it.',
  },
  'unbounded-loop': {
    class: 'denial-of-service',
    title: 'Work that grows without bound',
    swc: 'SWC-128',
    why: 'When what is gone through has grown enough, one transaction cannot hold the gas any more.',
    remedy: 'Bound it, or spread it over several transactions.',
  },
  'approve-race': {
    class: 'front-running',
    title: 'An allowance can be spent twice while it is changed',
    swc: 'SWC-114',
    why: 'Between two values the spender can take the old one and then the new one.',
    remedy: 'Offer to increase and decrease, or set it to zero first.',
  },
  'secret-in-the-open': {
    class: 'front-running',
    title: 'The answer is paid to whoever sends it first',
    swc: 'SWC-114',
    why: 'Everybody sees the answer in the pending transaction and can send it themselves with a higher fee.',
    remedy: 'Commit to the answer first, with who it is from, and reveal it later.',
  },
  'price-changes-first': {
    class: 'front-running',
    title: 'What is paid can change before it is paid',
    swc: 'SWC-114',
    why: 'Another transaction may set the amount between the sending and the running of this one.',
    remedy: 'Let the caller say the least that they accept.',
  },
  'uninitialised-pointer': {
    class: 'storage',
    title: 'A storage pointer that points to the first slot',
    swc: 'SWC-109',
    why: 'Before 0.5 a local struct without memory is a name for storage; without a value it is slot 0, so writing to it overwrites state.',
    remedy: 'Write memory, or give it a value.',
  },
  'short-address': {
    class: 'storage',
    title: 'Call data is not checked for its length',
    swc: null,
    why: 'Compilers before 0.5 fill missing bytes with zeros: an address that was cut short multiplies the amount.',
    remedy: 'Require msg.data.length, or compile with 0.5 or newer.',
  },
  'shadowed-state': {
    class: 'storage',
    title: 'Two state variables of one name',
    swc: 'SWC-119',
    why: 'Before 0.6 a derived contract could declare the name again: functions of the base go on using the other one.',
    remedy: 'Give them different names.',
  },
  'unprotected-upgrade': {
    class: 'upgrades',
    title: 'Anybody can replace the code',
    swc: 'SWC-112',
    why: 'Whoever sets the code that runs with this contract’s storage can take all that it holds.',
    remedy: 'Let only a known party get there, best after a delay.',
  },
  'unprotected-slot': {
    class: 'upgrades',
    title: 'Anybody can write a storage slot',
    swc: 'SWC-124',
    why: 'Assembly writes what the caller gives to a fixed place of the storage, and nothing asks who that is.',
    remedy: 'Let only a known party get there.',
  },
  'unprotected-mint': {
    class: 'token-flow',
    title: 'Anybody can raise a balance',
    swc: 'SWC-105',
    why: 'What can be spent elsewhere is credited here, for nothing, to whoever calls or is named.',
    remedy: 'Let only a known party credit, or take something of equal worth in first.',
  },
  'pull-from-anyone': {
    class: 'token-flow',
    title: 'Tokens of others are moved for whoever calls',
    swc: null,
    why: 'Everybody who has approved this contract can lose what they approved: the caller names from whom it is taken.',
    remedy: 'Take from msg.sender, or ask for a right that the owner of the tokens has given the caller.',
  },
  'unprotected-token-payout': {
    class: 'token-flow',
    title: 'Anybody can take tokens that the contract holds',
    swc: 'SWC-105',
    why: 'The tokens go to whoever calls or is named, and nothing on the way asks who that is or what is theirs.',
    remedy: 'Ask who calls, and give no more than what is theirs.',
  },
  'unprotected-approval': {
    class: 'token-flow',
    title: 'Anybody can have the contract’s tokens spent',
    swc: 'SWC-105',
    why: 'An approval for an address that the caller names lets that address take the tokens later.',
    remedy: 'Approve only fixed addresses, or ask who calls.',
  },
  'arbitrary-call': {
    class: 'access-control',
    title: 'The contract calls what the caller says',
    swc: null,
    why: 'Target and data are the caller’s: in this contract’s name they can move its tokens and what was approved to it.',
    remedy: 'Fix the target or the function, or ask who calls.',
  },
  'unprotected-setting': {
    class: 'access-control',
    title: 'Anybody can change whom the contract relies on',
    swc: 'SWC-105',
    why: 'Whoever names the receiver of its payments, or the contract that it asks, has its money or its answers.',
    remedy: 'Let only a known party set it.',
  },
  'unprotected-burn': {
    class: 'token-flow',
    title: 'Anybody can destroy the balance of others',
    swc: 'SWC-105',
    why: 'The balance is lowered of an address that the caller names, and nothing asks for its consent.',
    remedy: 'Burn of msg.sender alone, or ask for an allowance.',
  },
  'unchecked-transfer': {
    class: 'token-flow',
    title: 'The answer of a token is not looked at',
    swc: null,
    why: 'Some tokens answer false and do not revert: the contract goes on as if they had moved.',
    remedy: 'Use a library that checks the answer, such as SafeERC20, or put it into require.',
  },
  'value-in-loop': {
    class: 'payments',
    title: 'The same payment counts several times',
    swc: null,
    why: 'msg.value stays the same in each round of a loop: one payment is credited or accepted for each.',
    remedy: 'Add up what the rounds need and compare the sum with msg.value once.',
  },
  'exact-balance': {
    class: 'payments',
    title: 'A balance must be exact',
    swc: 'SWC-132',
    why: 'Anybody can send a little and make the comparison come out as they want, for ever.',
    remedy: 'Ask for at least, or count what came in.',
  },
  'locked-ether': {
    class: 'payments',
    title: 'Coins come in and never go out',
    swc: null,
    why: 'The contract takes payments, and nothing in it can pay.',
    remedy: 'Take none, or add a way out.',
  },
  'zero-signer': {
    class: 'signatures',
    title: 'A signature that is none passes as that of address zero',
    swc: 'SWC-117',
    why: 'ecrecover answers zero for a signature that it cannot read, and whatever is unset is zero too.',
    remedy: 'Refuse zero, or use a library that does.',
  },
  'signature-replay': {
    class: 'signatures',
    title: 'A signature can be used again',
    swc: 'SWC-121',
    why: 'Nothing is kept of its use, so that the same signature does the same again.',
    remedy: 'Sign a nonce and count it up, or mark the digest as used.',
  },
  'packed-collision': {
    class: 'encoding',
    title: 'Two inputs with one hash',
    swc: 'SWC-133',
    why: 'abi.encodePacked writes values of any length without their length: what ends one can begin the next.',
    remedy: 'Use abi.encode.',
  },
  'unprotected-callback': {
    class: 'callbacks',
    title: 'A callback does not ask who calls',
    swc: null,
    why: 'It is meant for one contract, and acts for whoever calls it, with numbers of their choice.',
    remedy: 'Compare msg.sender with the contract that is meant to call.',
  },
  'no-slippage-limit': {
    class: 'slippage',
    title: 'A trade at any price',
    swc: null,
    why: 'Whoever sees it first moves the price, lets it run, and moves the price back.',
    remedy: 'Let the caller say the least that they accept.',
  },
  'inflated-share': {
    class: 'share-price',
    title: 'The first depositor can take the next deposits',
    swc: null,
    why: 'The price of a share is what the contract holds: with one share out, a gift makes the next deposit round down to none.',
    remedy: 'Count with virtual shares and assets, lock the first shares away, or count assets inside.',
  },
  'unsafe-downcast': {
    class: 'arithmetic',
    title: 'A number is cut to a smaller type',
    swc: null,
    why: 'A conversion drops the upper bits without a word, also from 0.8 on.',
    remedy: 'Compare with the largest value of the type first, or use a checked conversion.',
  },
  'divide-before-multiply': {
    class: 'arithmetic',
    title: 'Divided before it is multiplied',
    swc: null,
    why: 'A division drops the rest, and the multiplication makes the loss larger.',
    remedy: 'Multiply first.',
  },
  'power-by-xor': {
    class: 'arithmetic',
    title: 'An exclusive or where a power is meant',
    swc: null,
    why: '10 ^ 18 is 24: ^ is no power.',
    remedy: 'Write 10 ** 18.',
  },
  'stale-price': {
    class: 'oracles',
    title: 'A price whose age nobody looks at',
    swc: null,
    why: 'A feed that has stopped goes on to answer its last price.',
    remedy: 'Compare the time of the answer with the present, and refuse what is old or not above zero.',
  },
  'spot-price': {
    class: 'price-manipulation',
    title: 'A price that a trade in the same transaction moves',
    swc: null,
    why: 'Whoever trades or borrows enough moves the market, calls this, and moves it back, all in one transaction.',
    remedy:
      'Use a mean over time of a deep market or a feed, or refuse where the present price is far from it.',
  },
} as const satisfies Record<string, RuleFacts>;
export type RuleId = keyof typeof RULES;

export interface RelatedLine {
  file: string;
  line: number;
  /** A description of what stands there. */
  what: string;
}

/** A finding of one rule at one place. */
export interface Finding {
  rule: RuleId;
  severity: Severity;
  confidence: Confidence;
  file: string;
  line: number;
  endLine: number;
  contract: string | null;
  routine: string | null;
  /** The finding in a sentence. */
  detail: string;
  related: RelatedLine[];
}

/** The word of related lines for the calls that lead from the entry to a finding. */
export const ON_THE_WAY = 'on the way there';

/** @param where the contract and function that it stands in */
export function finding(
  rule: RuleId,
  place: Place,
  where: { contract: Contract | null; routine: Routine | null },
  said: { severity: Severity; confidence: Confidence; detail: string; related?: RelatedLine[] },
): Finding {
  return {
    rule,
    severity: said.severity,
    confidence: said.confidence,
    file: place.file,
    line: place.line,
    endLine: place.endLine,
    contract: (where.routine?.contract ?? where.contract)?.name ?? null,
    routine: where.routine === null ? null : where.routine.name || where.routine.role,
    detail: said.detail,
    related: said.related ?? [],
  };
}

/** The entry that a rule looks at, and where its findings go. */
export interface Look {
  contract: Contract;
  entry: Routine;
  into: Finding[];
}

/** Notes a finding with the way that leads to it from the entry. */
export function tell(
  { contract, entry, into }: Look,
  rule: RuleId,
  place: Place,
  { routine, trail }: { routine: Routine; trail: readonly Place[] },
  said: { severity: Severity; confidence: Confidence; detail: string },
): void {
  const way =
    trail.length === 0
      ? []
      : [...trail.map((at) => related(at, ON_THE_WAY)), related(entry.head, 'the entry')];
  into.push(finding(rule, place, { contract, routine }, { ...said, related: way }));
}

/** Modifiers that by their name ask who calls, or keep a second call out. */
const GUARD_NAME = /only|auth|owner|admin|role|guard|reentran|lock|initiali[sz]|permission|restricted|paus/i;
/** Functions that by their name do. */
const GUARD_CALL = /^_?(check|require|enforce)[A-Z_]/;

/**
 * A finding behind modifiers whose source is not there: they may prevent it, so it is never sure, and no graver than MEDIUM;
 * LOW where one of them is named as what prevents it.
 *
 * @param unseen the names of those modifiers and guards; with none the finding is as it was
 */
export function behindUnseen(found: Finding, unseen: ReadonlySet<string>): Finding {
  if (unseen.size === 0) return found;
  const names = [...unseen].slice(0, 5).join(', ');
  const most: Severity = [...unseen].some((name) => GUARD_NAME.test(name) || GUARD_CALL.test(name))
    ? 'LOW'
    : 'MEDIUM';
  return {
    ...found,
    severity: SEVERITIES.indexOf(found.severity) < SEVERITIES.indexOf(most) ? most : found.severity,
    confidence: 'low',
    detail: `${found.detail} The source of ${names} was not sent, and may prevent it.`,
  };
}

export function related(place: Place, what: string): RelatedLine {
  return { file: place.file, line: place.line, what };
}

/** Findings of one rule at one place become one; the gravest of them stands. */
export function merged(findings: readonly Finding[]): Finding[] {
  const byPlace = new Map<string, Finding>();
  for (const each of findings) {
    const key = `${each.rule} ${each.file} ${each.line}`;
    const before = byPlace.get(key);
    if (before === undefined) {
      byPlace.set(key, each);
      continue;
    }
    const graver = SEVERITIES.indexOf(each.severity) < SEVERITIES.indexOf(before.severity) ? each : before;
    const lines = [...before.related, ...each.related];
    byPlace.set(key, {
      ...graver,
      related: lines.filter(
        (one, i) => lines.findIndex((other) => other.line === one.line && other.file === one.file) === i,
      ),
    });
  }
  return [...byPlace.values()];
}
