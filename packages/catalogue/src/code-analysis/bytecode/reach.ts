/** Finds what a contract's code can come to, walked from its first byte with the stack's constants known. */
import { type Disassembly, disassemble, type Instruction, OP } from './disassembly.ts';

/** Instructions that hand the contract's storage or existence to others, or tell who began the transaction. */
const NOTABLE = {
  [OP.DELEGATECALL]: 'DELEGATECALL',
  [OP.CALLCODE]: 'CALLCODE',
  [OP.SELFDESTRUCT]: 'SELFDESTRUCT',
  [OP.CREATE2]: 'CREATE2',
  [OP.ORIGIN]: 'ORIGIN',
} as const;
export type Notable = (typeof NOTABLE)[keyof typeof NOTABLE];

/** One notable instruction that some path leads to. */
export interface Sighting {
  instruction: Notable;
  pc: number;
  /** The function on whose paths it lies, `0x` and 8 digits; null: outside the functions, as in a fallback. */
  selector: string | null;
  /** A path leads to it on which no branch depends on who calls. */
  callerUnchecked: boolean;
  /** Where the address comes from that is called, or that gets the balance. Null where there is none. */
  target: 'constant' | 'self' | 'storage' | 'calldata' | 'caller' | 'unknown' | null;
}

export interface CodeReading {
  codeBytes: number;
  metadata: Disassembly['metadata'];
  /** The selectors of the dispatcher, `0x` and 8 digits, in the order of their first sighting. */
  selectors: string[];
  sightings: Sighting[];
  /** Notable instructions that stand in the code though no path that was walked leads there. */
  unreached: Notable[];
  /** False when the walk ended at its bound or at a jump whose target is not known: what was not found may be there. */
  complete: boolean;
}

/** Steps of one walk. Whole contracts at the limit of size (EIP-170) take fewer than a tenth. */
const MOST_STEPS = 1_500_000;
const MOST_STATES_PER_JUMP = 40;
const STACK_LIMIT = 1_024;
const WORD = (1n << 256n) - 1n;

/** A value on the stack, as far as it matters. */
interface Value {
  known?: bigint;
  /** The call's first word; its first four bytes; whether they are `known`, or differ from it. */
  is?: 'call' | 'selector' | 'equal' | 'different';
  fromCaller?: boolean;
  from?: 'storage' | 'calldata' | 'caller' | 'self';
}
const UNKNOWN: Value = {};
const FROM_STORAGE: Value = { from: 'storage' };
const FROM_CALLDATA: Value = { from: 'calldata' };
const SELF: Value = { from: 'self' };
const CALLER: Value = { fromCaller: true, from: 'caller' };

/** A place that is still to be walked. */
interface State {
  at: number;
  stack: Value[];
  selector: string | null;
  callerChecked: boolean;
  /** Something of the caller's was written to memory: a hash may be of it. */
  callerInMemory: boolean;
}

/** How many words each instruction takes and gives, where it is no PUSH, DUP or SWAP. */
const ARITY = arities();

/** Reads code: which functions it has, and which notable instructions a call can come to. */
export function readCode(code: Uint8Array): CodeReading {
  const read = disassemble(code);
  const { instructions, jumpDestinations } = read;
  const indexOf = new Map(instructions.map(({ pc }, index) => [pc, index]));
  const selectors = new Set<string>();
  const sightings = new Map<string, Sighting>();
  const visited = new Map<string, number>();
  const seen = new Set<string>();
  let complete = true;
  let steps = 0;
  const waiting: State[] = [
    { at: 0, stack: [], selector: null, callerChecked: false, callerInMemory: false },
  ];

  const go = (state: State, target: Value | undefined) => {
    if (target?.known === undefined) {
      complete = false;
      return;
    }
    const pc = Number(target.known);
    const at = indexOf.get(pc);
    // A jump to anywhere else fails.
    if (at === undefined || !jumpDestinations.has(pc)) return;
    waiting.push({ ...state, at, stack: [...state.stack] });
  };
  const enter = (state: State, condition: Value): State => {
    const selector = `0x${(condition.known ?? 0n).toString(16).padStart(8, '0')}`;
    selectors.add(selector);
    return { ...state, selector };
  };
  const sight = (state: State, { pc, opcode }: Instruction, target: Sighting['target']) => {
    const instruction = NOTABLE[opcode as keyof typeof NOTABLE];
    const key = `${pc} ${state.selector}`;
    const earlier = sightings.get(key);
    if (earlier === undefined) {
      const { selector, callerChecked } = state;
      sightings.set(key, { instruction, pc, selector, callerUnchecked: !callerChecked, target });
      return;
    }
    earlier.callerUnchecked ||= !state.callerChecked;
    if (earlier.target !== target) earlier.target = gravest(earlier.target, target);
  };

  for (let state = waiting.pop(); state !== undefined; state = waiting.pop()) {
    const place = `${state.at} ${state.selector} ${state.callerChecked}`;
    const key = `${place} ${state.callerInMemory} ${shapeOf(state.stack, jumpDestinations)}`;
    if (seen.has(key)) continue;
    const count = (visited.get(place) ?? 0) + 1;
    if (count > MOST_STATES_PER_JUMP) {
      complete = false;
      continue;
    }
    seen.add(key);
    steps += state.stack.length;
    visited.set(place, count);
    state.stack = state.stack.map((value) => widened(value, jumpDestinations));
    if (steps > MOST_STEPS) {
      complete = false;
      break;
    }
    walk(state);
  }

  const reached = new Set([...sightings.values()].map(({ pc }) => pc));
  const unreached = instructions.flatMap(({ pc, opcode }) =>
    opcode in NOTABLE && !reached.has(pc) ? [NOTABLE[opcode as keyof typeof NOTABLE]] : [],
  );
  return {
    codeBytes: read.codeBytes,
    metadata: read.metadata,
    selectors: [...selectors],
    sightings: [...sightings.values()].sort((a, b) => a.pc - b.pc),
    unreached: [...new Set(unreached)],
    complete,
  };

  /** Straight on until the path ends or splits. */
  function walk(state: State): void {
    const { stack } = state;
    for (let at = state.at; at < instructions.length; at++) {
      const instruction = instructions[at];
      if (instruction === undefined) return;
      const { opcode, pushed } = instruction;
      steps++;
      if (pushed !== null) {
        stack.push({ known: pushed });
      } else if (opcode >= 0x80 && opcode <= 0x8f) {
        const copied = stack.at(-(opcode - 0x7f));
        if (copied === undefined) return;
        stack.push(copied);
      } else if (opcode >= 0x90 && opcode <= 0x9f) {
        const other = stack.length - 1 - (opcode - 0x8f);
        const [top, deep] = [stack.at(-1), stack[other]];
        if (top === undefined || deep === undefined) return;
        stack[stack.length - 1] = deep;
        stack[other] = top;
      } else if (opcode === OP.JUMP) {
        go(state, stack.pop());
        return;
      } else if (opcode === OP.JUMPI) {
        const [target, condition] = [stack.pop(), stack.pop()];
        if (target === undefined || condition === undefined) return;
        const next: State = condition.fromCaller ? { ...state, callerChecked: true } : state;
        // A function begins where the selector is equal: at the jump's target, or right behind the jump.
        const isEntry = state.selector === null && condition.known !== undefined;
        const decided = condition.is === undefined ? condition.known : undefined;
        if (decided !== 0n) go(isEntry && condition.is === 'equal' ? enter(next, condition) : next, target);
        if (decided !== undefined && decided !== 0n) return;
        const behind = isEntry && condition.is === 'different' ? enter(next, condition) : next;
        waiting.push({ ...behind, at: at + 1, stack: [...stack] });
        return;
      } else {
        const arity = ARITY.get(opcode);
        if (arity === undefined || stack.length < arity.takes) return;
        const taken = arity.takes === 0 ? [] : stack.splice(-arity.takes).reverse();
        if (opcode in NOTABLE) sight(state, instruction, targetOf(opcode, taken));
        if (opcode === OP.MSTORE && taken[1]?.fromCaller) state.callerInMemory = true;
        if (arity.ends) return;
        if (arity.gives) stack.push(resultOf(opcode, taken, state));
      }
      if (stack.length > STACK_LIMIT) return;
    }
  }
}

/** The part that two states must share to go on alike: the jump targets and truth values on the stack, and where the rest is from. */
function shapeOf(stack: readonly Value[], jumpDestinations: ReadonlySet<number>): string {
  const words = stack.map((value) => {
    const { known, is, fromCaller, from } = widened(value, jumpDestinations);
    return `${is ?? ''}${known ?? ''}${fromCaller ? '!' : ''}${from ?? ''}`;
  });
  return `${stack.length} ${words.join()}`;
}

/**
 * A value as it is carried over a jump. Numbers that are no jump target and no truth value are forgotten: a loop that
 * counts would never come to the same state again.
 */
function widened(value: Value, jumpDestinations: ReadonlySet<number>): Value {
  const { known, is } = value;
  if (known === undefined || is !== undefined || known <= 1n) return value;
  return known < 65_536n && jumpDestinations.has(Number(known)) ? value : UNKNOWN;
}

function resultOf(opcode: number, taken: readonly Value[], state: State): Value {
  const [a = UNKNOWN, b = UNKNOWN] = taken;
  switch (opcode) {
    case OP.CALLER:
      return CALLER;
    case OP.ADDRESS:
      return SELF;
    case OP.CALLDATALOAD:
      return a.known === 0n ? { is: 'call', from: 'calldata' } : FROM_CALLDATA;
    case OP.SLOAD:
      return a.fromCaller ? { from: 'storage', fromCaller: true } : FROM_STORAGE;
    case 0x20: // SHA3
      return state.callerInMemory ? { fromCaller: true } : UNKNOWN;
    case 0x1c: // SHR
      return a.known === 224n && b.is === 'call' ? { is: 'selector' } : computed(opcode, taken);
    case 0x04: // DIV
      return a.is === 'call' && b.known === 1n << 224n ? { is: 'selector' } : computed(opcode, taken);
    case 0x14: // EQ
    case 0x03: // SUB
    case 0x18: {
      // XOR
      const constant = a.is === 'selector' ? b.known : b.is === 'selector' ? a.known : undefined;
      if (constant === undefined || constant > 0xffffffffn) return computed(opcode, taken);
      return { is: opcode === 0x14 ? 'equal' : 'different', known: constant };
    }
    case 0x15: // ISZERO
      if (a.is === 'equal' || a.is === 'different')
        return { is: a.is === 'equal' ? 'different' : 'equal', known: a.known ?? 0n };
      if (a.is === 'selector') return { is: 'equal', known: 0n };
      return computed(opcode, taken);
    case 0x16: // AND
      if (a.is === 'selector' || b.is === 'selector') return { is: 'selector' };
      if (a.is === 'call' || b.is === 'call') return FROM_CALLDATA;
      return computed(opcode, taken);
    default:
      return computed(opcode, taken);
  }
}

/** The value where it follows from constants, and where it comes from. */
function computed(opcode: number, taken: readonly Value[]): Value {
  const [a, b] = [taken[0]?.known, taken[1]?.known];
  const plain = taken.every(({ is }) => is === undefined);
  if (plain && a !== undefined && b !== undefined && taken.length === 2) {
    const known = calculated(opcode, a, b);
    if (known !== undefined) return { known };
  }
  if (plain && opcode === 0x15 && a !== undefined) return { known: a === 0n ? 1n : 0n };
  if (plain && opcode === 0x19 && a !== undefined) return { known: WORD ^ a };
  // Of a call's result, or of a word of memory, no more is known.
  if (opcode >= 0xf0 || opcode === OP.MLOAD) return UNKNOWN;
  const fromCaller = taken.some((value) => value.fromCaller);
  const from = taken.find((value) => value.from !== undefined)?.from;
  return {
    ...(fromCaller ? { fromCaller } : {}),
    ...(from === undefined ? {} : { from }),
  };
}

function calculated(opcode: number, a: bigint, b: bigint): bigint | undefined {
  switch (opcode) {
    case 0x01:
      return (a + b) & WORD;
    case 0x02:
      return (a * b) & WORD;
    case 0x03:
      return (a - b) & WORD;
    case 0x04:
      return b === 0n ? 0n : a / b;
    case 0x16:
      return a & b;
    case 0x17:
      return a | b;
    case 0x18:
      return a ^ b;
    case 0x1b:
      return a > 255n ? 0n : (b << a) & WORD;
    case 0x1c:
      return a > 255n ? 0n : b >> a;
    case 0x14:
      return a === b ? 1n : 0n;
    case 0x10:
      return a < b ? 1n : 0n;
    case 0x11:
      return a > b ? 1n : 0n;
    default:
      return undefined;
  }
}

function targetOf(opcode: number, taken: readonly Value[]): Sighting['target'] {
  if (opcode === OP.ORIGIN || opcode === OP.CREATE2) return null;
  const target = opcode === OP.SELFDESTRUCT ? taken[0] : taken[1];
  if (target?.known !== undefined && target.is === undefined) return 'constant';
  return target?.from ?? 'unknown';
}

function gravest(a: Sighting['target'], b: Sighting['target']): Sighting['target'] {
  const order = ['calldata', 'caller', 'unknown', 'storage', 'constant', 'self'] as const;
  return order.find((each) => each === a || each === b) ?? null;
}

function arities(): Map<number, { takes: number; gives: boolean; ends: boolean }> {
  const table = new Map<number, { takes: number; gives: boolean; ends: boolean }>();
  const add = (takes: number, gives: boolean, opcodes: readonly number[], ends = false) => {
    for (const opcode of opcodes) table.set(opcode, { takes, gives, ends });
  };
  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
  add(2, true, [...range(0x01, 0x07), 0x0a, 0x0b, ...range(0x10, 0x14), ...range(0x16, 0x18)]);
  add(2, true, [0x1a, 0x1b, 0x1c, 0x1d, 0x20]);
  add(3, true, [0x08, 0x09]);
  add(1, true, [0x15, 0x19, 0x1e, 0x31, 0x35, 0x3b, 0x3f, 0x40, 0x49, 0x51, 0x54, 0x5c]);
  add(0, true, [0x30, 0x32, 0x33, 0x34, 0x36, 0x38, 0x3a, 0x3d, ...range(0x41, 0x48), 0x4a]);
  add(0, true, [0x58, 0x59, 0x5a]);
  add(0, false, [0x5b]);
  add(3, false, [0x37, 0x39, 0x3e, 0x5e]);
  add(4, false, [0x3c]);
  add(1, false, [0x50]);
  add(2, false, [0x52, 0x53, 0x55, 0x5d]);
  for (let topics = 0; topics <= 4; topics++) add(topics + 2, false, [0xa0 + topics]);
  add(3, true, [0xf0]);
  add(4, true, [0xf5]);
  add(7, true, [0xf1, 0xf2]);
  add(6, true, [0xf4, 0xfa]);
  add(0, false, [0x00], true);
  add(2, false, [0xf3, 0xfd], true);
  add(1, false, [0xff], true);
  return table;
}
