/** Finds what an expression of a contract means where it stands: what it stands for, whom it speaks of, and what it calls. */
import {
  bare,
  type Call,
  type Contract,
  calledName,
  contains,
  type Expression,
  expressionsWithin,
  isBuiltin,
  type Place,
  type Routine,
  type Statement,
  statementsWithin,
  type Variable,
} from './syntax/tree.ts';

/** Where an expression stands: whose names mean what, and by which calls it was reached. */
export interface Frame {
  /** The contract that is analysed: the most derived contract, which decides what an overridden function is. */
  contract: Contract;
  entry: Routine;
  routine: Routine;
  /** The meanings of parameters and local variables. */
  bindings: Map<Variable, Bound>;
  /** Where variables come from that were taken out of a tuple: a part of this, nobody knows which. */
  origins: Map<Variable, Bound>;
  /** The internal calls and modifiers on the way here, outermost first. */
  trail: Place[];
  depth: number;
}
export interface Bound {
  expression: Expression;
  frame: Frame;
}

export interface OutsideCall {
  call: Call;
  method: 'call' | 'send' | 'transfer' | 'delegatecall' | 'callcode' | 'staticcall' | 'function';
  /** The expression that it calls. */
  callee: Expression;
  /** False when the callee has too little gas to do anything. */
  hasGas: boolean;
  /** True when it cannot change anything by its own word (`view`, `pure`). */
  readsOnly: boolean;
  frame: Frame;
}

/** Finds what an expression stands for, through parameters and local variables. */
export function meaning(expression: Expression, frame: Frame): Bound {
  let at: Bound = { expression: bare(expression), frame };
  for (let i = 0; i < 12; i++) {
    const { expression: now } = at;
    if (now.kind !== 'name' || now.target?.kind !== 'variable' || now.target.scope === 'state') return at;
    const bound = at.frame.bindings.get(now.target);
    if (bound === undefined) return at;
    at = { expression: bare(bound.expression), frame: bound.frame };
  }
  return at;
}

/** The variable that an expression is a part of, through indexes, members and names of storage; null for none. */
export function rootOf(expression: Expression, frame: Frame): Variable | null {
  let at = bare(expression);
  let within = frame;
  for (let i = 0; i < 40; i++) {
    if (at.kind === 'index') at = bare(at.of);
    else if (at.kind === 'member') {
      if (at.target?.kind === 'variable' && at.target.scope === 'state') return at.target;
      at = bare(at.of);
    } else if (at.kind === 'name' && at.target?.kind === 'variable') {
      const { target } = at;
      if (target.scope === 'state' || target.location !== 'storage') return target;
      const bound = within.bindings.get(target);
      if (bound === undefined) return target;
      at = bare(bound.expression);
      within = bound.frame;
    } else if (at.kind === 'call' && at.form === 'call') {
      const pointer = storagePointer(at);
      if (pointer !== null) return pointer;
      return null;
    } else return null;
  }
  return null;
}

/** The storage that a function of the program gives out, as libraries of fixed slots do; null for other calls. */
function storagePointer(call: Call): Variable | null {
  const callee = bare(call.callee);
  const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
  if (target?.kind !== 'routine' || target.body === null || target.returns.length !== 1) return null;
  const [given] = target.returns;
  return given?.location === 'storage' ? given : null;
}

/** Whether a variable is kept by the contract: a state variable, or storage at a slot of its own. */
export function isKept(variable: Variable | null): variable is Variable {
  if (variable === null) return false;
  const { scope, location } = variable;
  return scope === 'state' || (scope !== 'parameter' && location === 'storage');
}

/**
 * The field of a struct that an expression is a part of, or else the state variable: what a contract keeps under a name of
 * its own. Null for what is not kept.
 */
export function keptPart(expression: Expression, frame: Frame): Variable | null {
  const root = rootOf(expression, frame);
  if (!isKept(root)) return null;
  let at = bare(expression);
  for (let i = 0; i < 40; i++) {
    if (at.kind === 'member' && at.target?.kind === 'variable' && at.target.scope !== 'state')
      return at.target;
    if (at.kind === 'index' || at.kind === 'member') at = bare(at.of);
    else break;
  }
  return root;
}

/** Functions that call functions are followed so far for what they give back. */
const MAX_RETURN_DEPTH = 8;

/** Whether a comparison of two values that are written out comes out true or false; null where that is not certain. */
export function certainly(condition: Expression, frame: Frame): boolean | null {
  const decided = bare(condition);
  if (decided.kind === 'call' && decided.form === 'call') return constantAnswer(decided, frame);
  if (decided.kind !== 'binary' || (decided.operator !== '==' && decided.operator !== '!=')) return null;
  const left = meaning(decided.left, frame).expression;
  const right = meaning(decided.right, frame).expression;
  if (left.kind !== 'literal' || right.kind !== 'literal' || left.unit !== right.unit) return null;
  const number = (text: string) => (/^(0x[0-9a-f]+|\d+)$/i.test(text) ? BigInt(text) : null);
  const [a, b] = [number(left.value), number(right.value)];
  if (a === null || b === null) return null;
  return (a === b) === (decided.operator === '==');
}

/** What a function of the contract always answers, as a switch that the most derived contract sets; null for others. */
function constantAnswer(call: Call, frame: Frame): boolean | null {
  if (call.args.length > 0) return null;
  const answers = returned(call, frame).map(({ expression }) => bare(expression));
  const [only] = answers;
  if (answers.length !== 1 || only?.kind !== 'literal' || !/^(true|false)$/.test(only.value)) return null;
  return only.value === 'true';
}

/** The expressions that a call of an internal function gives back, where they stand; none for other calls. */
export function returned(call: Call, frame: Frame): Bound[] {
  const callee = bare(call.callee);
  const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
  const isSuper = callee.kind === 'member' && callee.of.kind === 'name' && callee.of.name === 'super';
  const named = target?.kind === 'routine' ? target : null;
  const routine = named === null || isSuper ? named : overriding(named, frame.contract);
  if (routine === null || routine.body === null || frame.depth > MAX_RETURN_DEPTH) return [];
  const on =
    callee.kind === 'member' && routine.parameters.length === call.args.length + 1 ? [callee.of] : [];
  const inner: Frame = {
    ...frame,
    routine,
    bindings: new Map(),
    origins: new Map(),
    trail: [...frame.trail, call.place],
    depth: frame.depth + 1,
  };
  [...on, ...call.args].forEach((arg, i) => {
    const parameter = routine.parameters[i];
    if (parameter !== undefined) inner.bindings.set(parameter, { expression: arg, frame });
  });
  const found: Bound[] = [];
  for (const statement of statementsWithin(routine.body)) {
    bindWithin(statement, inner);
    if (statement.kind === 'return' && statement.value !== null)
      found.push({ expression: statement.value, frame: inner });
    if (statement.kind === 'expression' && statement.expression.kind === 'assignment') {
      const { left, right } = statement.expression;
      const names =
        left.kind === 'name' && left.target?.kind === 'variable' && left.target.scope === 'return';
      if (names) found.push({ expression: right, frame: inner });
    }
  }
  return found;
}

/** A frame in which a routine is looked at by itself: its local names mean what they are declared with. */
export function frameWithin(contract: Contract, routine: Routine): Frame {
  const frame: Frame = {
    contract,
    entry: routine,
    routine,
    bindings: new Map(),
    origins: new Map(),
    trail: [],
    depth: 0,
  };
  for (const statement of statementsWithin(routine.body)) bindWithin(statement, frame);
  return frame;
}

/** Notes what a statement of a routine makes its local names stand for, or come from where they are parts of one value. */
function bindWithin(statement: Statement, frame: Frame): void {
  if (statement.kind === 'declaration' && statement.initial !== null) {
    const known = statement.variables.length === 1 ? frame.bindings : frame.origins;
    for (const each of statement.variables)
      if (each !== null) known.set(each, { expression: statement.initial, frame });
  }
  if (statement.kind === 'expression' && statement.expression.kind === 'assignment')
    bindParts(statement.expression, frame);
}

/** Notes where the names come from that a tuple is assigned to. */
export function bindParts(
  { left, right }: Pick<Extract<Expression, { kind: 'assignment' }>, 'left' | 'right'>,
  frame: Frame,
): void {
  if (left.kind !== 'tuple' || left.items.length < 2) return;
  for (const item of left.items)
    if (item?.kind === 'name' && item.target?.kind === 'variable' && item.target.scope !== 'state')
      frame.origins.set(item.target, { expression: right, frame });
}

/** Whether an expression is whoever called the contract. */
export function isCaller(expression: Expression, frame: Frame): boolean {
  const { expression: meant } = meaning(expression, frame);
  if (isBuiltin(meant, 'msg', 'sender') || isBuiltin(meant, 'tx', 'origin')) return true;
  if (meant.kind !== 'call' || meant.form !== 'call' || meant.args.length > 0) return false;
  const callee = bare(meant.callee);
  const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
  if (target?.kind !== 'routine') return calledName(meant) === '_msgSender';
  return (
    target.body?.kind === 'block' &&
    target.body.statements.length > 0 &&
    [...expressionsWithin(target)].some((part) => isBuiltin(part, 'msg', 'sender')) &&
    target.returns.length === 1 &&
    /^address/.test(target.returns[0]?.type ?? '')
  );
}

const AUTHORITY_NAME =
  /owner|admin|auth|role|allow|whitelist|minter|operator|govern|guardian|keeper|manager|controller|creator|trusted|permit|ward/i;
const QUESTION_NAME =
  /^_?(is|has|can|check|confirm|only|auth|require)|auth|owner|admin|role|allowed|whitelist/i;
const MOVES_VALUE = /transfer|send|pay|mint|burn|deposit|withdraw|^sub$|^add$|approve|call/i;

/**
 * Whether a condition tells who the caller is, and by which state variables; null when it does not.
 */
export function authorities(condition: Expression, holds: boolean, frame: Frame): Variable[] | null {
  const { expression, frame: within } = meaning(condition, frame);
  if (expression.kind === 'binary') {
    const { operator, left, right } = expression;
    if (operator === '==' || operator === '!=') {
      const asked = isCaller(left, within) ? right : isCaller(right, within) ? left : null;
      if (asked !== null) {
        if ((operator === '==') !== holds) return null;
        return knownParty(asked, within);
      }
    }
    const zero = isZero(right) ? left : isZero(left) ? right : null;
    const entry = zero === null ? null : byCaller(zero, within);
    if (entry !== null && (/=> (address|bool)/.test(entry.type) || AUTHORITY_NAME.test(entry.name))) {
      const nonZero = operator === '!=' || operator === '>' || operator === '>=' ? holds : !holds;
      return nonZero ? [entry] : null;
    }
    if (operator === '==' && holds) {
      const one = byCaller(left, within) ?? byCaller(right, within);
      if (one !== null && /=> (address|bool|enum )/.test(one.type)) return [one];
    }
    return null;
  }
  if (expression.kind === 'index' || expression.kind === 'member') {
    const entry = byCaller(expression, within);
    return entry !== null && holds ? [entry] : null;
  }
  if (expression.kind === 'call' && expression.form === 'call' && holds) {
    const name = calledName(expression);
    const callee = bare(expression.callee);
    const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
    const asks =
      expression.args.some((arg) => isCaller(arg, within)) ||
      (target?.kind === 'routine' &&
        [...expressionsWithin(target)].some((part) => isBuiltin(part, 'msg', 'sender')));
    if (!asks || (MOVES_VALUE.test(name) && !/^can[A-Z]/.test(name))) return null;
    if (outsideCall(expression, within) !== null && !QUESTION_NAME.test(name)) return null;
    return target?.kind === 'routine' ? keptWithin(target, within) : [];
  }
  return null;
}

/** Everything kept by the contract that a function reads. */
function keptWithin(routine: Routine, frame: Frame): Variable[] {
  const inner: Frame = { ...frame, routine, bindings: new Map(), origins: new Map(), depth: frame.depth + 1 };
  for (const statement of statementsWithin(routine.body)) {
    const [only] = statement.kind === 'declaration' ? statement.variables : [];
    if (statement.kind === 'declaration' && statement.initial !== null && only != null)
      inner.bindings.set(only, { expression: statement.initial, frame: inner });
  }
  return [...expressionsWithin(routine)].flatMap((part) => {
    if (part.kind === 'name' && part.target?.kind === 'variable' && part.target.scope === 'state')
      return [part.target];
    const kept = part.kind === 'member' ? keptPart(part, inner) : null;
    return kept === null ? [] : [kept];
  });
}

/** Somebody whom the contract knows, and not somebody whom the caller names. */
function knownParty(expression: Expression, frame: Frame): Variable[] | null {
  const { expression: meant, frame: within } = meaning(expression, frame);
  const root = rootOf(meant, within);
  if (root !== null) {
    const part = keptPart(meant, within);
    if (part !== null) return [part];
    // A part of what a function of the program gives is as known as what it reads.
    const origin = within.origins.get(root);
    const call = origin === undefined ? null : bare(origin.expression);
    const callee = call?.kind === 'call' ? bare(call.callee) : null;
    const target = callee?.kind === 'name' || callee?.kind === 'member' ? callee.target : null;
    if (origin === undefined || target?.kind !== 'routine') return null;
    const kept = keptWithin(target, origin.frame);
    return kept.length === 0 ? null : kept;
  }
  if (meant.kind === 'call') {
    const callee = bare(meant.callee);
    const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
    return target?.kind === 'routine' ? keptWithin(target, within) : [];
  }
  if (meant.kind === 'name' && (meant.name === 'this' || meant.name === 'address')) return [];
  return meant.kind === 'literal' || meant.kind === 'member' ? [] : null;
}

/** The state variable of which an expression is the caller's entry; null for others. */
function byCaller(expression: Expression, frame: Frame): Variable | null {
  const { expression: meant, frame: within } = meaning(expression, frame);
  const ofCaller = contains(
    meant,
    (part) => part.kind === 'index' && part.index !== null && isCaller(part.index, within),
  );
  if (!ofCaller) return null;
  return keptPart(meant, within);
}

/** The caller knows the preimage of a stored hash, or has a signature. */
export function showsSecret(condition: Expression, holds: boolean, frame: Frame): boolean {
  const { expression } = meaning(condition, frame);
  if (expression.kind === 'call')
    return holds && /verify|isValidSignature|checkSignature/i.test(calledName(expression));
  if (expression.kind !== 'binary' || (expression.operator === '==') !== holds) return false;
  return [expression.left, expression.right].some((side) => {
    const { expression: meant } = meaning(side, frame);
    return contains(
      meant,
      (part) =>
        part.kind === 'call' &&
        /^(sha3|keccak256|sha256|ecrecover|recover|tryRecover)$/.test(calledName(part)),
    );
  });
}

function isZero(expression: Expression): boolean {
  const meant = bare(expression);
  return meant.kind === 'literal' && /^(0x)?0*$/.test(meant.value);
}

/** Assembly that calls without paying: mostly a token, asked by its selector. */
const CALL_WITHOUT_VALUE = 'callWithoutValue';
const LOW_LEVEL = new Set(['call', 'send', 'transfer', 'delegatecall', 'callcode', 'staticcall']);
/** A callee with less than this can do nothing that matters. */
const GAS_TO_ACT = 10_000;

/** Describes a call that leaves the contract; null for calls within it. */
export function outsideCall(call: Call, frame: Frame): OutsideCall | null {
  if (call.form !== 'call') return null;
  const callee = bare(call.callee);
  if (callee.kind !== 'member') return null;
  const { member, of, target } = callee;
  if (call.inAssembly === true && member === CALL_WITHOUT_VALUE)
    return { call, method: 'function', callee: of, hasGas: true, readsOnly: false, frame };
  const gas = call.gas === null ? null : bare(call.gas);
  const hasGas = gas === null || gas.kind !== 'literal' || Number(gas.value) >= GAS_TO_ACT;
  if (LOW_LEVEL.has(member) && target === null && (of.type === '' || /^address|^contract/.test(of.type))) {
    const method = member as OutsideCall['method'];
    const paysOnly = method === 'send' || method === 'transfer';
    if (paysOnly && call.args.length !== 1) return null;
    return {
      call,
      method,
      callee: of,
      hasGas: hasGas && !paysOnly,
      readsOnly: method === 'staticcall',
      frame,
    };
  }
  if (of.kind === 'name' && (of.name === 'super' || of.name === 'this' || of.name === 'abi')) return null;
  if (!/^contract /.test(of.type)) return null;
  if (target?.kind === 'routine' && target.contract?.role === 'library') return null;
  const mutability = target?.kind === 'routine' ? target.mutability : callee.type;
  return {
    call,
    method: 'function',
    callee: of,
    hasGas,
    readsOnly: /\b(view|pure)\b/.test(mutability),
    frame,
  };
}

/** The most derived version of a function or modifier. */
export function overriding(routine: Routine, contract: Contract): Routine {
  if (routine.contract === null || !contract.lineage.includes(routine.contract)) return routine;
  for (const base of contract.lineage) {
    const found = base.routines.find(
      (each) =>
        each.name === routine.name &&
        each.role === routine.role &&
        each.parameters.length === routine.parameters.length &&
        each.parameters.every(({ type }, i) => type === routine.parameters[i]?.type),
    );
    if (found !== undefined && found.body !== null) return found;
  }
  return routine;
}
