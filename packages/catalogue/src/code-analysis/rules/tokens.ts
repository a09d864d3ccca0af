/** Follows tokens in and out of a contract: whose they are, who gets them, and what the caller shows for it. */
import type { Known, Listener, Write } from '../flow.ts';
import {
  type Frame,
  isCaller,
  isKept,
  keptPart,
  meaning,
  type OutsideCall,
  outsideCall,
  rootOf,
} from '../meaning.ts';
import {
  bare,
  type Call,
  type Contract,
  calledName,
  contains,
  type Expression,
  expressionsWithin,
  isBuiltin,
  type Routine,
  textOf,
  type Variable,
} from '../syntax/tree.ts';
import {
  anybody,
  argumentDecides,
  asksForOwn,
  callerDecides,
  deeplyContains,
  isOwnBalance,
  isThis,
  literalOf,
} from './caller.ts';
import { type Finding, type Look, tell } from './finding.ts';

const PULLS = /^(try)?(safe)?transferFrom2?$/i;
const PUSHES = /^(safe)?transfer(All|Amount)?$/i;
const BURNS = /burn|destroy|wipe|confiscate/i;
const ALLOWS = /^(safe|force)?(approve|increaseAllowance)$|^(safe)?approveWithRetry$/i;

export interface TokenMove {
  kind: 'pull' | 'push' | 'allow';
  call: Call;
  known: Known;
  frame: Frame;
  /** The giver; null where it is the contract itself. */
  from: Expression | null;
  to: Expression;
  amount: Expression | null;
  /** The chain's own coins, and no token. */
  coins?: true;
}

/** Describes what a call does with a token of another contract; null for other calls. */
export function tokenMove(call: Call, known: Known, frame: Frame): TokenMove | null {
  if (call.form !== 'call') return null;
  const named = byName(call, frame) ?? bySelector(call, frame);
  if (named === null) return null;
  const { name, args } = named;
  const common = { call, known, frame };
  const [first, second, third = null] = args;
  if (first === undefined || second === undefined) return null;
  if (PULLS.test(name)) {
    if (third === null) return null;
    return isThis(first, frame)
      ? { ...common, kind: 'push', from: null, to: second, amount: third }
      : { ...common, kind: 'pull', from: first, to: second, amount: third };
  }
  if (ALLOWS.test(name)) return { ...common, kind: 'allow', from: null, to: first, amount: second };
  return PUSHES.test(name) ? { ...common, kind: 'push', from: null, to: first, amount: second } : null;
}

type NamedCall = { name: string; args: readonly Expression[] } | null;

function byName(call: Call, frame: Frame): NamedCall {
  const callee = bare(call.callee);
  if (callee.kind !== 'member') return null;
  const name = callee.member;
  if (!PULLS.test(name) && !PUSHES.test(name) && !ALLOWS.test(name)) return null;
  const { of, target } = callee;
  if (of.kind === 'name' && (of.name === 'super' || of.name === 'this')) return null;
  if (target?.kind === 'routine' && target.contract?.role === 'library') {
    // By the library's own name, the token is the first argument.
    const byLibrary = of.kind === 'name' && of.target?.kind === 'contract';
    return { name, args: byLibrary ? call.args.slice(1) : call.args };
  }
  return outsideCall(call, frame)?.method === 'function' ? { name, args: call.args } : null;
}

/** `token.call(abi.encodeWithSelector(…))` and its like. */
function bySelector(call: Call, frame: Frame): NamedCall {
  const outside = outsideCall(call, frame);
  if (outside === null || (outside.method !== 'call' && outside.method !== 'function')) return null;
  const [data] = call.args;
  const encoded = data === undefined ? null : meaning(data, frame).expression;
  if (encoded?.kind !== 'call') return null;
  const [head, ...rest] = encoded.args;
  if (head === undefined) return null;
  const selector = bare(head);
  switch (calledName(encoded)) {
    case 'encodeWithSignature':
      return selector.kind === 'literal' ? { name: selector.value.replace(/\(.*$/, ''), args: rest } : null;
    case 'encodeWithSelector':
      return selector.kind === 'member' && selector.of.kind === 'member'
        ? { name: selector.of.member, args: rest }
        : selector.kind === 'literal' && /^0x23b872dd$/i.test(selector.value)
          ? { name: 'transferFrom', args: rest }
          : null;
    case 'encodeCall': {
      const given = rest[0] === undefined ? null : bare(rest[0]);
      const args = given?.kind === 'tuple' ? given.items.filter((item) => item !== null) : rest;
      return selector.kind === 'member' ? { name: selector.member, args } : null;
    }
    default:
      return null;
  }
}

/** Everything that an entry does with tokens, coins and credits. */
interface Seen {
  moves: TokenMove[];
  calls: { call: Call; known: Known; frame: Frame }[];
  writes: { write: Write; known: Known; frame: Frame }[];
  /** Calls of the contract's own functions that make or destroy what it issues. */
  supply: { call: Call; known: Known; frame: Frame }[];
  /** An allowance was used up. */
  spends: boolean;
}

/** Rules on tokens and credits that an entry moves for anybody. */
export function tokenFlow(contract: Contract, entry: Routine, into: Finding[]): Listener {
  if (entry.role === 'constructor' || entry.mutability === 'view' || entry.mutability === 'pure') return {};
  const look = { contract, entry, into };
  const seen: Seen = { moves: [], calls: [], writes: [], supply: [], spends: false };
  let takesValue = entry.mutability === 'payable';
  // Assembly may keep books at places that it works out: they are not followed.
  let keepsHiddenBooks = false;
  return {
    expression(expression, known, frame) {
      if (isBuiltin(expression, 'msg', 'value')) takesValue = true;
      if (expression.kind !== 'call') return;
      if (expression.inAssembly === true && calledName(expression) === 'sstore') keepsHiddenBooks = true;
      const move = tokenMove(expression, known, frame);
      if (/^_spendAllowance$/.test(calledName(expression))) seen.spends = true;
      if (move !== null) seen.moves.push(move);
      else if (isSupply(expression)) seen.supply.push({ call: expression, known, frame });
      else if (anybody(known) && outsideCall(expression, frame)?.method === 'call')
        seen.calls.push({ call: expression, known, frame });
    },
    outsideCall(call, known) {
      const payment = paymentOf(call, known);
      if (payment !== null) seen.moves.push(payment);
    },
    write(write, known, frame) {
      seen.writes.push({ write, known, frame });
    },
    end() {
      const { moves, calls, writes } = seen;
      const fromCaller = moves.some(
        ({ kind, from, frame }) => kind === 'pull' && from !== null && isCaller(from, frame),
      );
      if (!takesValue && !moves.some(({ kind }) => kind === 'pull'))
        for (const each of seen.supply) supplied(look, seen, each);
      const paidFor = takesValue || keepsHiddenBooks || fromCaller;
      for (const move of moves.filter(({ known }) => anybody(known))) {
        if (move.kind === 'pull') pulled(look, seen, move);
        else if (!paidFor) given(look, seen, move);
      }
      for (const each of calls) called(look, seen, each);
      if (paidFor || moves.some(({ kind }) => kind === 'pull')) return;
      for (const each of writes) {
        credited(look, seen, each);
        burnt(look, seen, each);
      }
    },
  };
}

/** A payment in the chain's own coins, as a move; null for other calls. */
function paymentOf({ call, callee, method, frame }: OutsideCall, known: Known): TokenMove | null {
  const bySend = method === 'send' || method === 'transfer';
  const amount = bySend ? (call.args[0] ?? null) : method === 'call' ? call.value : null;
  return amount === null
    ? null
    : { kind: 'push', call, known, frame, from: null, to: callee, amount, coins: true };
}

/** Tokens that are taken from an address of the caller's choice. */
function pulled(look: Look, { writes }: Seen, { call, known, frame, from }: TokenMove): void {
  if (from === null || isCaller(from, frame) || !callerDecides(from, frame)) return;
  if (known.checks.some(({ condition, frame: at }) => speaksOfBoth(condition, at, from, frame))) return;
  if (writes.some(({ write, frame: at }) => speaksOfBoth(write.target, at, from, frame))) return;
  tell(look, 'pull-from-anyone', call.place, frame, {
    confidence: 'medium',
    severity: 'CRITICAL',
    detail: `${nameOf(look.entry)} takes tokens from an address that the caller names.`,
  });
}

/** Tokens, coins or an approval for an address of the caller's choice. */
function given(look: Look, seen: Seen, { kind, call, known, frame, to, amount, coins }: TokenMove): void {
  if (!callerDecides(to, frame) || amount === null || owesIt(seen, known)) return;
  // What is kept for somebody goes to whom it is kept for.
  if (keptPart(to, frame) !== null || isKeptEntry(to, frame)) return;
  const takes =
    kind === 'allow' ||
    isTotal(amount, frame) ||
    argumentDecides(amount, frame) ||
    literalOf(amount, frame) !== null ||
    deeplyContains(amount, frame, isOwnBalance);
  if (!takes) return;
  const payout = coins === true ? 'unprotected-withdrawal' : 'unprotected-token-payout';
  tell(look, kind === 'allow' ? 'unprotected-approval' : payout, call.place, frame, {
    confidence: 'medium',
    severity: kind === 'allow' ? 'HIGH' : 'CRITICAL',
    detail:
      kind === 'allow'
        ? `${nameOf(look.entry)} lets an address that the caller names spend the contract’s tokens.`
        : `${nameOf(look.entry)} gives ${coins === true ? 'coins' : 'tokens'} to whoever calls or is named.`,
  });
}

/** An entry of what the contract keeps, through names. */
function isKeptEntry(expression: Expression, frame: Frame): boolean {
  const { expression: meant, frame: at } = meaning(expression, frame);
  return keptPart(meant, at) !== null;
}

/** A number that the contract keeps for all, and not for one caller. */
function isTotal(amount: Expression, frame: Frame): boolean {
  const { expression: meant, frame: at } = meaning(amount, frame);
  return meant.kind === 'name' && keptPart(meant, at) !== null;
}

/** A call whose target and data are both the caller's. */
function called(look: Look, seen: Seen, { call, known, frame }: Seen['calls'][number]): void {
  const callee = bare(call.callee);
  const [data] = call.args;
  if (callee.kind !== 'member' || data === undefined || owesIt(seen, known)) return;
  if (!argumentDecides(callee.of, frame) || !argumentDecides(data, frame)) return;
  const encoded = meaning(data, frame).expression;
  if (encoded.kind === 'call' && /^encode(WithSelector|WithSignature|Call)$/.test(calledName(encoded)))
    return;
  tell(look, 'arbitrary-call', call.place, frame, {
    confidence: 'medium',
    severity: 'HIGH',
    detail: `${nameOf(look.entry)} sends data of the caller’s choice to an address of the caller’s choice.`,
  });
}

/** A balance that is raised by what the caller says. */
function credited(look: Look, seen: Seen, { write, known, frame }: Seen['writes'][number]): void {
  const { target, operator, value } = write;
  const part = keptPart(target, frame);
  if (part === null || value === null || !raises(write) || !anybody(known)) return;
  if (bare(target).kind !== 'index' || !/=> u?int\d*\)+$/.test(part.type)) return;
  const added = operator === '+=' ? value : addedTo(value);
  if (added === null || (literalOf(added, frame) === null && !argumentDecides(added, frame))) return;
  if (seen.writes.some((other) => lowers(other.write) && keptPart(other.write.target, other.frame) === part))
    return;
  if (!isSpent(part, look.contract) || owesIt(seen, known)) return;
  // Whoever is paid in the same call owes it: a debt grows, and no credit.
  const ofCaller = contains(
    target,
    (one) => one.kind === 'index' && one.index !== null && isCaller(one.index, frame),
  );
  if (ofCaller && seen.moves.some(({ kind, to, frame: at }) => kind === 'push' && isCaller(to, at))) return;
  tell(look, 'unprotected-mint', target.place, frame, {
    confidence: 'medium',
    severity: 'CRITICAL',
    detail: `${part.name} is raised in ${nameOf(look.entry)} by what the caller says, and can be spent elsewhere.`,
  });
}

const MAKES = /^_(safe)?mint$/i;
const DESTROYS = /^_burn$/i;

function isSupply(call: Call): boolean {
  const callee = bare(call.callee);
  if (callee.kind !== 'name' || callee.target?.kind !== 'routine') return false;
  return MAKES.test(callee.name) || DESTROYS.test(callee.name);
}

/** What a contract issues, made for an address of the caller's choice or destroyed at one, by the functions of a published token. */
function supplied(look: Look, seen: Seen, { call, known, frame }: Seen['supply'][number]): void {
  const [party, amount] = call.args;
  if (party === undefined || !anybody(known) || asksForOwn(known) || !/^address/.test(party.type)) return;
  if (DESTROYS.test(calledName(call))) {
    if (isCaller(party, frame) || !argumentDecides(party, frame)) return;
    if (known.checks.some(({ condition, frame: at }) => speaksOfBoth(condition, at, party, frame))) return;
    if (seen.writes.some(({ write, frame: at }) => speaksOfBoth(write.target, at, party, frame))) return;
    // An allowance may be kept where only assembly finds it.
    if (seen.spends) return;
    tell(look, 'unprotected-burn', call.place, frame, {
      severity: 'HIGH',
      confidence: 'medium',
      detail: `${nameOf(look.entry)} destroys what an address holds that the caller names.`,
    });
    return;
  }
  if (amount === undefined || !callerDecides(party, frame) || !argumentDecides(amount, frame)) return;
  if (owesIt(seen, known)) return;
  tell(look, 'unprotected-mint', call.place, frame, {
    severity: 'CRITICAL',
    confidence: 'medium',
    detail: `${nameOf(look.entry)} issues what the caller says to whoever calls or is named.`,
  });
}

/** A balance that is lowered for an address of the caller's choice. */
function burnt(look: Look, { writes }: Seen, { write, known, frame }: Seen['writes'][number]): void {
  const target = bare(write.target);
  if (
    !(BURNS.test(look.entry.name) || BURNS.test(frame.routine.name)) ||
    !lowers(write) ||
    !anybody(known) ||
    target.kind !== 'index'
  )
    return;
  const { index } = target;
  const part = keptPart(target, frame);
  if (index === null || part === null || !/^mapping\(address => u?int/.test(part.type)) return;
  if (isCaller(index, frame) || !argumentDecides(index, frame)) return;
  if (known.checks.some(({ condition, frame: at }) => speaksOfBoth(condition, at, index, frame))) return;
  if (writes.some(({ write: other, frame: at }) => speaksOfBoth(other.target, at, index, frame))) return;
  tell(look, 'unprotected-burn', target.place, frame, {
    severity: 'HIGH',
    confidence: 'medium',
    detail: `${nameOf(look.entry)} lowers ${part.name} of an address that the caller names.`,
  });
}

/** Whether the path shows that something is the caller's: it asks for an entry of theirs, or uses one up. */
function owesIt({ writes }: Seen, known: Known): boolean {
  return (
    asksForOwn(known) ||
    writes.some(({ write, frame }) => usesUp(write, frame, known) && !isLock(write, writes))
  );
}

/** Set and set back in the same call, as a lock is. */
function isLock({ root, target, value }: Write, writes: Seen['writes']): boolean {
  if (bare(target).kind !== 'name' || value === null) return false;
  return writes.some(
    ({ write }) => write.root === root && write.value !== null && textOf(write.value) !== textOf(value),
  );
}

function nameOf(entry: Routine): string {
  return entry.name || entry.role;
}

/** A write that lowers an entry of the caller's choice, or marks something of theirs as used. */
function usesUp(write: Write, frame: Frame, known: Known): boolean {
  // Whose it was is forgotten: that says nothing of who asks.
  if (bare(write.target).kind === 'index' && /^address/.test(write.target.type)) return false;
  if (isEntryOfCaller(write.target, frame))
    return lowers(write) || (write.operator === '=' && !raises(write));
  if (write.operator !== '=') return false;
  const part = keptPart(write.target, frame);
  return (
    part !== null &&
    known.checks.some(({ condition, frame: at }) =>
      deeplyContains(condition, at, (one, where) => one.kind === 'name' && keptPart(one, where) === part),
    )
  );
}

/** Whether a target lies below an index that the caller decides, through pointers into storage. */
function isEntryOfCaller(target: Expression, frame: Frame): boolean {
  let at = bare(target);
  let where = frame;
  for (let i = 0; i < 20; i++) {
    if (at.kind === 'index') {
      if (at.index !== null && callerDecides(at.index, where)) return true;
      at = bare(at.of);
    } else if (at.kind === 'member') at = bare(at.of);
    else if (at.kind === 'name' && at.target?.kind === 'variable' && at.target.scope !== 'state') {
      const of = meaning(at, where);
      if (of.expression === at) return false;
      at = of.expression;
      where = of.frame;
    } else return false;
  }
  return false;
}

function lowers({ operator, value, target }: Write): boolean {
  if (operator === '-=' || operator === '--' || operator === 'delete' || operator === 'pop') return true;
  if (operator !== '=' || value === null) return false;
  const meant = bare(value);
  if (meant.kind === 'literal') return /^(0|false)$/.test(meant.value) && target.kind !== 'name';
  if (meant.kind === 'binary') return meant.operator === '-';
  return meant.kind === 'call' && /^(sub|zeroFloorSub|saturatingSub)$/.test(calledName(meant));
}

function raises({ operator, value }: Write): boolean {
  return (
    operator === '+=' || operator === '++' || (operator === '=' && value !== null && addedTo(value) !== null)
  );
}

/** The part that `a = a + b` adds; null for other values. */
function addedTo(value: Expression): Expression | null {
  const meant = bare(value);
  if (meant.kind === 'binary' && meant.operator === '+') return meant.right;
  if (meant.kind === 'call' && calledName(meant) === 'add') return meant.args.at(-1) ?? null;
  return null;
}

/** Whether something lowers it anywhere: a credit that nobody can spend is a count. */
function isSpent(part: Variable, contract: Contract): boolean {
  for (const routine of routinesOf(contract)) {
    for (const each of expressionsWithin(routine)) {
      const target = each.kind === 'assignment' ? each.left : each.kind === 'unary' ? each.operand : null;
      if (target === null || !mentions(target, part)) continue;
      if (each.kind === 'unary' && (each.operator === '--' || each.operator === 'delete')) return true;
      if (each.kind !== 'assignment') continue;
      const right = bare(each.right);
      if (each.operator === '-=' || (right.kind === 'binary' && right.operator === '-')) return true;
      if (right.kind === 'call' && calledName(right) === 'sub') return true;
    }
  }
  return false;
}

/** The functions of a contract and of the libraries that they call. */
function routinesOf(contract: Contract): Set<Routine> {
  const found = new Set(contract.lineage.flatMap(({ routines }) => routines));
  for (const routine of found) {
    for (const part of expressionsWithin(routine)) {
      if (part.kind !== 'call') continue;
      const callee = bare(part.callee);
      const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
      if (target?.kind === 'routine' && target.contract?.role === 'library' && found.size < 2_000)
        found.add(target);
    }
  }
  return found;
}

function mentions(target: Expression, part: Variable): boolean {
  let at = bare(target);
  for (let i = 0; i < 20; i++) {
    if ((at.kind === 'name' || at.kind === 'member') && at.target === part) return true;
    if (at.kind === 'index' || at.kind === 'member') at = bare(at.of);
    else return false;
  }
  return false;
}

/** Whether an expression speaks of both the caller and another party. */
function speaksOfBoth(expression: Expression, frame: Frame, party: Expression, ofParty: Frame): boolean {
  const asked = meaning(party, ofParty).expression;
  const root = rootOf(party, ofParty);
  let caller = false;
  let other = false;
  deeplyContains(expression, frame, (part, at) => {
    if (isCaller(part, at)) caller = true;
    const meant = meaning(part, at).expression;
    if (meant === asked || (meant.kind === 'name' && asked.kind === 'name' && meant.target === asked.target))
      other = true;
    if (root !== null && !isKept(root) && part.kind === 'name' && part.target === root) other = true;
    return caller && other;
  });
  return caller && other;
}
