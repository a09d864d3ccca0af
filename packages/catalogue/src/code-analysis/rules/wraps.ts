/**
 * Looks at sums, products and differences that no compiler checks, in assembly and in `unchecked`, of numbers that the caller gives: where
 * the result is held against a bound, or kept, although it may have wrapped round.
 */
import type { Check, Known, Listener } from '../flow.ts';
import { type Frame, isKept, keptPart, meaning, returned, rootOf } from '../meaning.ts';
import {
  bare,
  type Contract,
  calledName,
  contains,
  type Expression,
  expressionsWithin,
  isBuiltin,
  type Program,
  type Routine,
  textOf,
  type Variable,
  within,
} from '../syntax/tree.ts';
import { argumentDecides, isZeroLiteral, literalOf } from './caller.ts';
import { type Finding, type Look, related, tell } from './finding.ts';

const INSTRUCTIONS: Readonly<Record<string, Sign>> = { add: '+', mul: '*', sub: '-' };
const COMPARES = new Set(['<', '>', '<=', '>=', '==', '!=']);
const ORDERS = new Set(['<', '>', '<=', '>=']);
/** Operators and instructions whose results are small on purpose, or places in memory. */
const NARROWS = /^(&|\||\^|>>|<<|%|\/)$/;
const PLACES =
  /^(mload|calldataload|calldatasize|returndatasize|shr|shl|sar|and|or|mod|byte|keccak256|msize|gas)$/;
const FULL_WIDTH = 256;
const MAX_DEPTH = 6;

type Sign = '+' | '-' | '*';

/** An operation that may wrap. */
interface Wrap {
  sign: Sign;
  at: Expression;
  left: Expression;
  right: Expression;
  known: Known;
  frame: Frame;
  /** The texts of both operands where they stand. */
  operands: readonly [string, string];
}

/** Operations of one entry that may wrap before something goes by their result. */
export function wraps(
  contract: Contract,
  entry: Routine,
  { minor, borrowed }: Pick<Program, 'minor' | 'borrowed'>,
  into: Finding[],
): Listener {
  const isView = entry.mutability === 'view' || entry.mutability === 'pure';
  if (isView || entry.role === 'constructor') return {};
  const look = { contract, entry, into };
  const found = new Map<Expression, Wrap>();
  /** Local names that hold a result. */
  const carriers = new Map<Variable, Wrap[]>();
  /** What the compiler saw to be no more than what it was taken from. */
  const taken = new Set<string>();
  const looked = new Set<Wrap>();
  const used: { wrap: Wrap; at: Expression; what: string }[] = [];
  const flowing = (value: Expression, frame: Frame) => [...wrapsIn(value, frame, found, carriers)];
  return {
    expression(expression, known, frame) {
      const { routine } = frame;
      const wrap = borrowed.has(routine.place.file) ? null : wrapOf(expression, known, frame, minor);
      if (wrap !== null && mayWrap(wrap, taken) && !wrapsOnPurpose(routine)) found.set(expression, wrap);
      else if (!known.unchecked && minor >= 8) noteTaken(expression, frame, taken);
      if (expression.kind === 'assignment') carry(expression.left, expression, frame);
      if (expression.kind !== 'binary' || !COMPARES.has(expression.operator)) return;
      for (const [side, other] of [
        [expression.left, expression.right],
        [expression.right, expression.left],
      ] as const) {
        for (const each of flowing(side, frame)) {
          if (looksAt(each, other, expression.operator, frame)) looked.add(each);
          else if (each.sign !== '-' && !isZeroLiteral(other, frame))
            used.push({ wrap: each, at: expression, what: 'compared' });
        }
      }
    },
    write({ target, operator, value }, _known, frame) {
      const part = keptPart(target, frame);
      const own = [...found.values()].filter(({ at }) => at.kind === 'assignment' && at.left === target);
      const flows = value === null || operator === '*=' ? own : [...own, ...flowing(value, frame)];
      for (const each of flows) {
        if (each.sign === '-') used.push({ wrap: each, at: target, what: 'kept' });
        if (each.sign === '+' && part !== null && isTime(contract, part))
          used.push({ wrap: each, at: target, what: 'kept as a time' });
      }
    },
    end() {
      for (const { wrap, at, what } of used) if (!looked.has(wrap)) report(look, wrap, at, what);
    },
  };

  /** Notes the local name that holds a result from here on. */
  function carry(target: Expression, value: Expression, frame: Frame): void {
    if (target.kind !== 'name' || target.target?.kind !== 'variable' || isKept(rootOf(target, frame))) return;
    const inside = [...within(value)].flatMap((part) => found.get(part) ?? []);
    if (value.kind === 'assignment') inside.push(...flowing(value.right, frame));
    if (inside.length > 0) carriers.set(target.target, [...(carriers.get(target.target) ?? []), ...inside]);
  }
}

function report(look: Look, wrap: Wrap, at: Expression, what: string): void {
  const told: Finding[] = [];
  const where = wrap.at.kind === 'call' ? 'assembly' : 'unchecked';
  tell({ ...look, into: told }, 'overflow', wrap.at.place, wrap.frame, {
    severity: wrap.known.ownerCalls ? 'LOW' : 'MEDIUM',
    confidence: 'medium',
    detail: `${textOf(wrap.at).slice(0, 120)} can wrap round: it stands in ${where}, and the result is ${what}.`,
  });
  for (const each of told)
    look.into.push({ ...each, related: [...each.related, related(at.place, `where it is ${what}`)] });
}

/** A product of two words, of which the lower half is worked out by wrapping. */
function wrapsOnPurpose(routine: Routine): boolean {
  return [...expressionsWithin(routine)].some(
    (part) => part.kind === 'call' && calledName(part) === 'mulmod',
  );
}

/** An operation that no compiler checks; null for others. */
function wrapOf(expression: Expression, known: Known, frame: Frame, minor: number): Wrap | null {
  const made = (sign: Sign, left: Expression, right: Expression): Wrap => ({
    sign,
    at: expression,
    left,
    right,
    known,
    frame,
    operands: [deepText(left, frame), deepText(right, frame)],
  });
  if (expression.kind === 'call' && expression.inAssembly === true) {
    const sign = INSTRUCTIONS[calledName(expression)];
    const [left, right] = expression.args;
    return sign === undefined || left === undefined || right === undefined ? null : made(sign, left, right);
  }
  // Before 0.8 another rule looks at what is no assembly.
  if (!known.unchecked || minor < 8) return null;
  if (expression.kind !== 'binary' && expression.kind !== 'assignment') return null;
  const sign = /^([-+*])=?$/.exec(expression.operator)?.[1] as Sign | undefined;
  if (sign === undefined || !/^uint/.test(expression.type)) return null;
  return made(sign, expression.left, expression.right);
}

/** Whether the caller can make it wrap: by a number as wide as the result, which nothing bounded before. */
function mayWrap({ sign, left, right, known, frame }: Wrap, taken: ReadonlySet<string>): boolean {
  if (isPlace(left, frame) || isPlace(right, frame)) return false;
  const givers = sign === '-' ? [right] : [left, right];
  const given = givers.filter((side) => isGiven(side, frame));
  if (given.length === 0) return false;
  if (sign === '-' && isTaken(left, right, frame, taken)) return false;
  if (sign !== '-' && [left, right].every((side) => literalOf(side, frame) !== null || !isWide(side, frame)))
    return false;
  return given.some((side) => !known.checks.some((check) => boundsAbove(check, side, frame)));
}

/** Whether the caller chooses a number of full width. */
function isGiven(side: Expression, frame: Frame): boolean {
  const { expression, frame: at } = meaning(side, frame);
  if (expression.kind === 'call' && expression.form === 'call') return false;
  if (contains(expression, (part) => part.kind === 'binary' && NARROWS.test(part.operator))) return false;
  if (contains(expression, (part) => part.kind === 'conditional')) return false;
  return isWide(side, frame) && argumentDecides(expression, at) && !isKept(rootOf(expression, at));
}

/** Whether a number may be as large as the word. */
function isWide(side: Expression, frame: Frame): boolean {
  const types = [side, bare(side), meaning(side, frame).expression].map((each) =>
    each.kind === 'name' && each.target?.kind === 'variable' && each.type === ''
      ? each.target.type
      : each.type,
  );
  return types.every((type) => {
    const width = /^u?int(\d+)$/.exec(type)?.[1];
    return width === undefined
      ? !/^(address|contract|bytes|bool|enum)/.test(type)
      : Number(width) === FULL_WIDTH;
  });
}

/** A place in memory or in the call, or what is left of a word that was cut: no amount. */
function isPlace(side: Expression, frame: Frame, depth = 0): boolean {
  const { expression, frame: at } = meaning(side, frame);
  if (expression.kind === 'name')
    return expression.target?.kind === 'variable' && /memory|calldata/.test(expression.target.location);
  if (contains(expression, (part) => part.kind === 'member' && /^(offset|length|slot)$/.test(part.member)))
    return true;
  return [...within(expression)].some((part) => {
    if (part.kind !== 'call' || part.inAssembly !== true) return false;
    if (PLACES.test(calledName(part))) return true;
    return depth < MAX_DEPTH && part.args.some((arg) => isPlace(arg, at, depth + 1));
  });
}

/** Whether a condition that holds says that a number is no more than another, which is not zero. */
function boundsAbove({ condition, holds, frame: at }: Check, side: Expression, frame: Frame): boolean {
  const text = deepText(side, frame);
  const visit = (part: Expression, positive: boolean): boolean => {
    const meant = bare(part);
    if (meant.kind === 'unary' && meant.operator === '!') return visit(meant.operand, !positive);
    if (meant.kind !== 'binary') return false;
    if (meant.operator === '&&' || meant.operator === '||')
      return visit(meant.left, positive) || visit(meant.right, positive);
    if (!ORDERS.has(meant.operator))
      return meant.operator === '==' && positive && textsOf(meant, at).includes(text);
    const leftIsLess = meant.operator.startsWith('<') === positive;
    const [less, more] = leftIsLess ? [meant.left, meant.right] : [meant.right, meant.left];
    return deepText(less, at) === text && !isZeroLiteral(more, at);
  };
  return visit(condition, holds);
}

function textsOf({ left, right }: Extract<Expression, { kind: 'binary' }>, frame: Frame): readonly string[] {
  return [deepText(left, frame), deepText(right, frame)];
}

/** A comparison that finds out whether the result wrapped: against an operand, or after undoing the operation. */
function looksAt({ operands, sign, at }: Wrap, other: Expression, operator: string, frame: Frame): boolean {
  if (sign === '*') return operator === '==' || operator === '!=';
  return at !== other && operands.includes(deepText(other, frame));
}

/** Notes what the compiler checked: a difference bounds what was taken, and a sum what it was added to. */
export function noteTaken(expression: Expression, frame: Frame, taken: Set<string>): void {
  if (expression.kind !== 'binary' && expression.kind !== 'assignment') return;
  const { left, right, operator } = expression;
  if (operator === '-' || operator === '-=') taken.add(deepText(right, frame));
  if (operator === '+=') taken.add(added(left, right, frame));
}

/** Whether a difference that the compiler checked, or a sum of the same two, has shown before that it does not wrap. */
export function isTaken(
  left: Expression,
  right: Expression,
  frame: Frame,
  taken: ReadonlySet<string>,
): boolean {
  return taken.has(deepText(right, frame)) || taken.has(added(left, right, frame));
}

function added(to: Expression, amount: Expression, frame: Frame): string {
  return `${deepText(to, frame)}+=${deepText(amount, frame)}`;
}

/** The results that may have wrapped and go into a value. */
function* wrapsIn(
  value: Expression,
  frame: Frame,
  found: ReadonlyMap<Expression, Wrap>,
  carriers: ReadonlyMap<Variable, readonly Wrap[]>,
  depth = 0,
): Generator<Wrap> {
  if (depth > MAX_DEPTH || found.size === 0) return;
  const { expression, frame: at } = meaning(value, frame);
  for (const root of new Set([bare(value), expression])) {
    for (const part of within(root)) {
      const wrap = found.get(part);
      if (wrap !== undefined) yield wrap;
      if (part.kind === 'name' && part.target?.kind === 'variable') {
        yield* carriers.get(part.target) ?? [];
        const of = meaning(part, root === expression ? at : frame);
        if (part !== root && of.expression !== part)
          yield* wrapsIn(of.expression, of.frame, found, carriers, depth + 1);
      }
      if (part.kind === 'call' && part.form === 'call')
        for (const each of returned(part, at))
          yield* wrapsIn(each.expression, each.frame, found, carriers, depth + 1);
    }
  }
}

/** Whether something kept is held against the time of the block anywhere in the contract. */
function isTime(contract: Contract, kept: Variable): boolean {
  const routines = contract.lineage.flatMap(({ routines }) => routines);
  return routines.some((routine) =>
    [...expressionsWithin(routine)].some(
      (part) =>
        part.kind === 'binary' &&
        ORDERS.has(part.operator) &&
        contains(part, (one) => isBuiltin(one, 'block', 'timestamp')) &&
        contains(part, (one) => (one.kind === 'name' || one.kind === 'member') && one.target === kept),
    ),
  );
}

function deepText(expression: Expression, frame: Frame): string {
  return textOf(meaning(expression, frame).expression);
}
