/** Looks at numbers that lose something: cut to a smaller type, divided too early, or joined by the wrong sign. */
import type { Check, Known, Listener } from '../flow.ts';
import { type Frame, meaning, returned } from '../meaning.ts';
import {
  bare,
  type Contract,
  calledName,
  contains,
  type Expression,
  isBuiltin,
  type Routine,
  textOf,
  type Variable,
  within,
} from '../syntax/tree.ts';
import { argumentDecides, deeply, givenTo, isZeroLiteral } from './caller.ts';
import { type Finding, type Look, tell } from './finding.ts';

const ORDERS = new Set(['<', '>', '<=', '>=']);

/** Names of numbers that are no amounts. */
const KEY_NAME = /id$|key$|nonce|salt|index$/i;

/** Numbers of one entry. */
export function numbers(contract: Contract, entry: Routine, into: Finding[]): Listener {
  if (entry.role === 'constructor') return {};
  const look = { contract, entry, into };
  const isView = entry.mutability === 'view' || entry.mutability === 'pure';
  return {
    expression(expression, known, frame, statement) {
      if (frame.routine.contract?.role === 'library' && /math|cast/i.test(frame.routine.contract.name))
        return;
      if (expression.kind === 'call' && expression.form === 'conversion' && !isView)
        cut(look, expression, known, frame);
      if (expression.kind === 'call' && expression.form === 'conversion' && !isView)
        signLost(look, expression, known, frame);
      const factors =
        libraryOperands(expression, 'mul') ??
        (expression.kind === 'binary' && expression.operator === '*'
          ? ([expression.left, expression.right] as const)
          : expression.kind === 'assignment' && expression.operator === '*='
            ? ([expression.left, expression.right] as const)
            : null);
      // A comparison loses nothing by the order.
      if (factors !== null && statement?.kind !== 'if') multiplied(look, expression, factors, frame);
      if (expression.kind === 'binary' && expression.operator === '^')
        joined(look, expression, [expression.left, expression.right], frame);
    },
  };
}

/** The two operands of a checked operation of a library, such as `a.mul(b)`; null for other expressions. */
function libraryOperands(
  expression: Expression,
  name: 'mul' | 'div',
): readonly [Expression, Expression] | null {
  if (expression.kind !== 'call' || expression.form !== 'call' || calledName(expression) !== name)
    return null;
  const callee = bare(expression.callee);
  if (callee.kind !== 'member' || callee.target?.kind !== 'routine') return null;
  if (callee.target.contract?.role !== 'library') return null;
  const [first, second] = givenTo(expression);
  return first === undefined || second === undefined ? null : [first, second];
}

/** A number of the caller's that may be below zero, read as one that may not. */
function signLost(
  look: Look,
  conversion: Extract<Expression, { kind: 'call' }>,
  known: Known,
  frame: Frame,
): void {
  const [operand] = conversion.args;
  if (operand === undefined || !/^uint\d+$/.test(conversion.type) || !/^int\d+$/.test(operand.type)) return;
  const { expression, frame: at } = meaning(operand, frame);
  const named =
    expression.kind === 'name' && expression.target?.kind === 'variable' ? expression.target : null;
  if (named === null || named.scope !== 'parameter' || at.depth !== 0 || known.callerKnown) return;
  const compared = known.checks.some(({ condition, frame: where }) =>
    contains(condition, (part) => isNamed(meaning(part, where).expression, named)),
  );
  if (compared) return;
  tell(look, 'unsafe-downcast', conversion.place, frame, {
    severity: 'MEDIUM',
    confidence: 'medium',
    detail: `${textOf(operand).slice(0, 80)} may be below zero, and is read as ${conversion.type}: it becomes a huge number.`,
  });
}

function isNamed(part: Expression, variable: Variable): boolean {
  return part.kind === 'name' && part.target === variable;
}

/** A conversion to a smaller type. */
function cut(
  look: Look,
  conversion: Extract<Expression, { kind: 'call' }>,
  known: Known,
  frame: Frame,
): void {
  const [operand] = conversion.args;
  if (operand === undefined) return;
  const to = widthOf(conversion.type);
  const from = widthOf(operand.type);
  if (to === null || from === null || to.bits >= from.bits || to.bits === 160) return;
  if (!argumentDecides(operand, frame) || isCutOnPurpose(operand, frame)) return;
  // A key that is cut names another entry, and no other amount.
  if (KEY_NAME.test(textOf(operand))) return;
  if (isBounded(operand, frame, known, to.bits)) return;
  tell(look, 'unsafe-downcast', conversion.place, frame, {
    severity: known.callerKnown ? 'LOW' : 'MEDIUM',
    confidence: 'medium',
    detail: `${textOf(operand).slice(0, 80)} of ${operand.type} is cut to ${conversion.type}, and nothing says that it fits.`,
  });
}

/** A factor that was divided. */
function multiplied(
  look: Look,
  whole: Expression,
  [left, right]: readonly [Expression, Expression],
  frame: Frame,
): void {
  for (const [side, other] of [
    [left, right],
    [right, left],
  ] as const) {
    const divisor = divisorOf(side, frame, 0);
    if (divisor === null || literalsAlone(side)) continue;
    // Down to a whole step on purpose.
    if (
      textOf(meaning(divisor.expression, divisor.frame).expression) ===
      textOf(meaning(other, frame).expression)
    )
      continue;
    tell(look, 'divide-before-multiply', whole.place, frame, {
      severity: 'MEDIUM',
      confidence: 'medium',
      detail: `${textOf(side).slice(0, 80)} was divided before it is multiplied by ${textOf(other).slice(0, 80)}.`,
    });
    return;
  }
}

/** `10 ^ 18`. */
function joined(
  look: Look,
  whole: Expression,
  [left, right]: readonly [Expression, Expression],
  frame: Frame,
): void {
  const [base, power] = [bare(left), bare(right)];
  if (
    base.kind !== 'literal' ||
    power.kind !== 'literal' ||
    !/^(2|10)$/.test(base.value) ||
    !/^\d+$/.test(power.value)
  )
    return;
  tell(look, 'power-by-xor', whole.place, frame, {
    severity: 'HIGH',
    confidence: 'high',
    detail: `${textOf(whole)} is no power.`,
  });
}

function widthOf(type: string): { bits: number } | null {
  const match = /^u?int(\d+)$/.exec(type);
  return match === null ? null : { bits: Number(match[1]) };
}

/** Masked, shifted, or the rest of a division: what is dropped is meant to be dropped. */
function isCutOnPurpose(operand: Expression, frame: Frame): boolean {
  for (const { expression: part } of deeply(operand, frame)) {
    if (part.kind === 'binary' && /^(%|>>|<<|&|\|)$/.test(part.operator)) return true;
    if (isBuiltin(part, 'block', 'timestamp') || isBuiltin(part, 'block', 'number')) return true;
    if (part.kind === 'call' && part.form === 'call' && part.inAssembly === true) return true;
  }
  return false;
}

/** Whether what goes into it was compared before with anything but zero, or is of a smaller type itself. */
function isBounded(operand: Expression, frame: Frame, known: Known, bits: number): boolean {
  const names = wideNames(operand, frame, bits, 0);
  if (names.size === 0) return true;
  const { expression: meant } = meaning(operand, frame);
  // That a factor is small says nothing of the product.
  const isProduct = meant.kind === 'binary' && meant.operator === '*';
  const bound = [...names].filter((name) => known.checks.some((check) => bounds(check, name, bits)));
  return isProduct ? bound.length === names.size : bound.length > 0;
}

/** Whether a condition holds a variable against anything but zero, or a number that a type of so many bits cannot hold. */
function bounds({ condition, frame: at }: Check, name: Variable, bits: number): boolean {
  return contains(condition, (part) => {
    if (part.kind !== 'binary' || !ORDERS.has(part.operator)) return false;
    return [part.left, part.right].some((side, i) => {
      const other = bare(i === 0 ? part.right : part.left);
      if (isZeroLiteral(other, at) || isWider(other, bits)) return false;
      if (isNamed(bare(side), name)) return true;
      for (const { expression: one } of namesIn(side, at))
        if (one.kind === 'name' && one.target === name) return true;
      return false;
    });
  });
}

/** `2 ** n` that goes beyond a type. */
function isWider(expression: Expression, bits: number): boolean {
  if (expression.kind !== 'binary' || expression.operator !== '**') return false;
  const [base, power] = [bare(expression.left), bare(expression.right)];
  return (
    base.kind === 'literal' && base.value === '2' && power.kind === 'literal' && Number(power.value) > bits
  );
}

/** The variables that go into a value and may hold more than a type of so many bits. */
function wideNames(expression: Expression, frame: Frame, bits: number, depth: number): Set<Variable> {
  const found = new Set<Variable>();
  if (depth > 4) return found;
  for (const part of within(expression)) {
    if (part.kind !== 'name' || part.target?.kind !== 'variable') continue;
    const width = widthOf(part.target.type);
    if (width === null ? part.target.type !== '' : width.bits <= bits) continue;
    found.add(part.target);
    const { expression: meant, frame: at } = meaning(part, frame);
    if (meant !== part) for (const each of wideNames(meant, at, bits, depth + 1)) found.add(each);
  }
  return found;
}

/** The parts of an expression, without what functions make of it. */
function namesIn(expression: Expression, frame: Frame): Iterable<{ expression: Expression }> {
  return deeply(expression, frame, 0, { parts: 500 }, false);
}

/** The divisor of a factor, through names and functions; null where it was not. */
function divisorOf(
  expression: Expression,
  frame: Frame,
  depth: number,
): { expression: Expression; frame: Frame } | null {
  const { expression: meant, frame: at } = meaning(expression, frame);
  if (depth > 3) return null;
  // A numerator that was shifted left carries its fraction.
  if (meant.kind === 'binary' && meant.operator === '/')
    return isShifted(meant.left, at) ? null : { expression: meant.right, frame: at };
  const divided = libraryOperands(meant, 'div');
  if (divided !== null) return { expression: divided[1], frame: at };
  if (meant.kind === 'binary' && meant.operator === '*')
    return divisorOf(meant.left, at, depth + 1) ?? divisorOf(meant.right, at, depth + 1);
  if (meant.kind !== 'call' || meant.form !== 'call' || meant.inAssembly === true) return null;
  const callee = bare(meant.callee);
  const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
  if (target?.kind !== 'routine' || target.contract?.role === 'library') return null;
  for (const each of returned(meant, at)) {
    const found = divisorOf(each.expression, each.frame, depth + 1);
    if (found !== null) return found;
  }
  return null;
}

function isShifted(numerator: Expression, frame: Frame): boolean {
  const { expression } = meaning(numerator, frame);
  return expression.kind === 'binary' && expression.operator === '<<';
}

function literalsAlone(expression: Expression): boolean {
  return !contains(expression, (part) => part.kind === 'name' || part.kind === 'member');
}
