/** Finds what the caller of an entry chooses, and what was asked of them before. */
import type { Known } from '../flow.ts';
import { type Bound, type Frame, isCaller, keptPart, meaning, returned } from '../meaning.ts';
import {
  bare,
  type Call,
  calledName,
  contains,
  type Expression,
  isBuiltin,
  type Literal,
  within,
} from '../syntax/tree.ts';

/** The most names and functions through which a value is followed. */
const MAX_STEPS = 12;

/** Whether an expression is of the caller's choice: an argument of the entry, or who they are. */
export function isOfCaller(part: Expression, frame: Frame): boolean {
  return (
    isBuiltin(part, 'msg', 'sender') || isBuiltin(part, 'tx', 'origin') || isCallers(part, frame, true, 0)
  );
}

/** Whether an expression is what the caller wrote into the call: an argument of the entry, or a part of one. */
function isArgument(part: Expression, frame: Frame): boolean {
  return isCallers(part, frame, false, 0);
}

function isCallers(part: Expression, frame: Frame, orCaller: boolean, depth: number): boolean {
  if (part.kind !== 'name' || part.target?.kind !== 'variable' || depth > MAX_STEPS) return false;
  const { expression, frame: at } = meaning(part, frame);
  if (orCaller && isCaller(expression, at)) return true;
  if (expression.kind === 'name' && expression.target?.kind === 'variable') {
    if (expression.target.scope === 'parameter' && at.depth === 0) return true;
    const origin = at.origins.get(expression.target);
    return (
      origin !== undefined &&
      contains(origin.expression, (one) => isCallers(one, origin.frame, orCaller, depth + 1))
    );
  }
  return (
    expression !== part &&
    contains(expression, (one) => one !== part && isCallers(one, at, orCaller, depth + 1))
  );
}

/** Whether the caller decides a value: by an argument, or by who they are. */
export function callerDecides(expression: Expression, frame: Frame): boolean {
  return contains(expression, (one) => isOfCaller(one, frame));
}

/** Whether an argument of the caller's goes into a value. */
export function argumentDecides(expression: Expression, frame: Frame): boolean {
  return contains(expression, (one) => isArgument(one, frame));
}

/** Whether nothing on the way asked who calls, nor for a secret or a signature. */
export function anybody(known: Known): boolean {
  return !known.callerKnown && !known.secretShown;
}

/** More parts of one expression are not looked at. */
const MAX_PARTS = 2_000;
const MAX_DEPTH = 4;

/** An expression and whatever it is made of, through names, and through the functions that give it. */
export function* deeply(
  expression: Expression,
  frame: Frame,
  depth = 0,
  left = { parts: MAX_PARTS },
  intoCalls = true,
): Generator<Bound> {
  const { expression: meant, frame: at } = meaning(expression, frame);
  for (const part of within(meant)) {
    if (left.parts-- <= 0) return;
    yield { expression: part, frame: at };
    if (depth >= MAX_DEPTH) continue;
    if (
      part !== meant &&
      part.kind === 'name' &&
      part.target?.kind === 'variable' &&
      part.target.scope !== 'state'
    ) {
      const of = meaning(part, at);
      if (of.expression !== part) yield* deeply(of.expression, of.frame, depth + 1, left, intoCalls);
    }
    if (intoCalls && part.kind === 'call' && part.form === 'call')
      for (const each of returned(part, at)) yield* deeply(each.expression, each.frame, depth + 1, left);
  }
}

/** Whether something that an expression is made of is what is looked for. */
export function deeplyContains(
  expression: Expression,
  frame: Frame,
  is: (part: Expression, at: Frame) => boolean,
): boolean {
  for (const { expression: part, frame: at } of deeply(expression, frame)) if (is(part, at)) return true;
  return false;
}

/** Whether an expression is what the contract holds: of coins, or of a token. */
export function isOwnBalance(part: Expression, frame: Frame): boolean {
  if (part.kind === 'member' && part.member === 'balance' && part.target === null)
    return isThis(part.of, frame);
  if (part.kind !== 'call' || !/^balanceOf$/.test(calledName(part))) return false;
  return part.args.some((arg) => isThis(arg, frame));
}

export function isThis(expression: Expression, frame: Frame): boolean {
  const { expression: meant } = meaning(expression, frame);
  return meant.kind === 'name' && meant.name === 'this';
}

/** A number or text that is written out, also where a constant names it; null for others. */
export function literalOf(expression: Expression, frame: Frame): Literal | null {
  const { expression: meant } = meaning(expression, frame);
  const named = meant.kind === 'name' && meant.target?.kind === 'variable' ? meant.target : null;
  const constant =
    named?.scope === 'state' && named.fixed && named.initial !== null ? bare(named.initial) : meant;
  return constant.kind === 'literal' ? constant : null;
}

export function isZeroLiteral(expression: Expression, frame: Frame): boolean {
  const literal = literalOf(expression, frame);
  return literal !== null && /^(0x)?0+$/.test(literal.value);
}

/** Everything that a call is given: what it is called on too, where a library is used for a type. */
export function givenTo(call: Call): Expression[] {
  const callee = bare(call.callee);
  const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
  const on =
    callee.kind === 'member' &&
    target?.kind === 'routine' &&
    target.parameters.length === call.args.length + 1
      ? [callee.of]
      : [];
  return [...on, ...call.args];
}

/** Whether a condition asks of an address only that it is not zero: somebody has it, and nothing says who. */
function isSomebody(condition: Expression, frame: Frame): boolean {
  const asked = bare(condition);
  if (asked.kind !== 'binary' || !/^[!=]=$/.test(asked.operator)) return false;
  const side = isZeroLiteral(asked.right, frame)
    ? asked.left
    : isZeroLiteral(asked.left, frame)
      ? asked.right
      : null;
  if (
    side === null ||
    contains(side, (one) => one.kind === 'index' && one.index !== null && isCaller(one.index, frame))
  )
    return false;
  return /^(address|contract )/.test(meaning(side, frame).expression.type);
}

/** Whether a condition of the path speaks of an entry of the caller's, or of what they asked for, in what is kept. */
export function asksForOwn(known: Known): boolean {
  return known.checks.some(({ condition, frame }) =>
    deeplyContains(condition, frame, (part, at) => {
      if (part.kind === 'index' && part.index !== null)
        return keptPart(part, at) !== null && callerDecides(part.index, at) && !isSomebody(condition, frame);
      if (part.kind === 'call' && part.form === 'call')
        return part.args.some((arg) => contains(arg, (one) => isCaller(one, at)));
      return isBuiltin(part, 'msg', 'value');
    }),
  );
}
