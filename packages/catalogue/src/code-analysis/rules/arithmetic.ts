import type { Check, Known, Listener } from '../flow.ts';
import { type Frame, meaning, rootOf } from '../meaning.ts';
import {
  bare,
  type Contract,
  contains,
  type Expression,
  expressionsWithin,
  isBuiltin,
  type Routine,
  type Statement,
  statementsWithin,
  textOf,
} from '../syntax/tree.ts';
import { type Finding, finding } from './finding.ts';
import { isTaken, noteTaken } from './wraps.ts';

const WRAPS = new Set(['+', '-', '*', '**', '+=', '-=', '*=']);
const COMPARES = new Set(['<', '>', '<=', '>=', '==', '!=']);

/**
 * SWC-101: a sum, difference or product with a number of the caller's, where results wrap round. Silent where an operand
 * was compared before and where the function itself looks at the result.
 */
export function arithmetic(contract: Contract, entry: Routine, minor: number, into: Finding[]): Listener {
  if (entry.role === 'constructor') return {};
  const taken = new Set<string>();
  return {
    expression(expression, known, frame, statement) {
      if (expression.kind !== 'binary' && expression.kind !== 'assignment') return;
      if (minor >= 8 && !known.unchecked) noteTaken(expression, frame, taken);
      if (!WRAPS.has(expression.operator) || (minor >= 8 && !known.unchecked)) return;
      if (!isInteger(expression) || frame.routine.contract?.role === 'library' || known.callerKnown) return;
      const { left, right } = expression;
      const operator = expression.operator.charAt(0);
      const given = [left, right].filter((side) => isGiven(side, frame));
      const movesState = expression.kind === 'assignment' && rootOf(left, frame)?.scope === 'state';
      if (given.length === 0 && !(operator === '-' && movesState)) return;
      if (bare(left).kind === 'literal' && bare(right).kind === 'literal') return;
      if (given.length === 0 && bare(right).kind === 'literal') return;
      if (comparedBefore(known, frame, left, right, operator, given)) return;
      if (looksAtResults(frame.routine)) return;
      if (operator === '-' && isTaken(left, right, frame, taken)) return;
      const target =
        statement?.kind === 'expression' && statement.expression.kind === 'assignment'
          ? statement.expression.left
          : null;
      const reaches =
        movesState ||
        (target !== null && rootOf(target, frame)?.scope === 'state') ||
        (statement !== null && statement.kind !== 'declaration' && statement.kind !== 'expression');
      into.push(
        finding(
          'overflow',
          expression.place,
          { contract, routine: frame.routine },
          {
            severity: grave(expression, statement, known, frame, { operator, reaches, given })
              ? 'MEDIUM'
              : 'LOW',
            confidence: known.unchecked ? 'low' : 'medium',
            detail: `${textOf(expression).slice(0, 120)} can wrap round${known.unchecked ? ': it stands in unchecked' : ''}.`,
          },
        ),
      );
    },
  };
}

/** Whether a result that wraps changes what somebody has or how much goes out. */
function grave(
  expression: Expression,
  statement: Statement | null,
  known: Known,
  frame: Frame,
  { operator, reaches, given }: { operator: string; reaches: boolean; given: readonly Expression[] },
): boolean {
  if (expression.kind !== 'binary' && expression.kind !== 'assignment') return false;
  // An entry of the books, which grows or shrinks by what the caller says.
  const entry = expression.kind === 'assignment' && bare(expression.left).kind === 'index';
  const decided = given.some((side) => wasCompared(side, known, frame));
  if (known.unchecked) return entry && operator === '-' && given.length > 0 && !decided;
  if (operator === '+') return entry && given.length > 0 && !decided;
  if (reaches) return true;
  // A product that is kept under a name and then held against what somebody has.
  return operator === '*' && statement?.kind === 'declaration' && isHeldAgainst(statement, frame.routine);
}

/** Whether a condition of the path speaks of a value. */
function wasCompared(side: Expression, known: Known, frame: Frame): boolean {
  return known.checks.some((check) => textsIn(check.condition, check.frame).has(deepText(side, frame)));
}

/** Whether a function compares what a statement declares, or takes it from an entry of its books. */
function isHeldAgainst(
  { variables }: Extract<Statement, { kind: 'declaration' }>,
  routine: Routine,
): boolean {
  const names = (part: Expression) =>
    part.kind === 'name' && part.target?.kind === 'variable' && variables.includes(part.target);
  return [...expressionsWithin(routine)].some(
    (part) =>
      ((part.kind === 'binary' && COMPARES.has(part.operator)) ||
        (part.kind === 'assignment' && part.operator === '-=')) &&
      contains(part, names),
  );
}

function isInteger(expression: Expression): boolean {
  return expression.type === '' || /^u?int\d+/.test(expression.type);
}

/** Whether the caller chooses it: an argument of the entry, or the value sent. */
function isGiven(expression: Expression, frame: Frame): boolean {
  return contains(expression, (part) => {
    if (isBuiltin(part, 'msg', 'value')) return false;
    if (part.kind !== 'name') return false;
    const { expression: meant, frame: within } = meaning(part, frame);
    if (meant.kind === 'name')
      return (
        meant.target?.kind === 'variable' &&
        meant.target.scope === 'parameter' &&
        within.depth === 0 &&
        /^u?int|^$/.test(meant.target.type)
      );
    return (
      meant.kind !== 'call' &&
      contains(
        meant,
        (one) =>
          one.kind === 'name' &&
          one.target?.kind === 'variable' &&
          one.target.scope === 'parameter' &&
          within.depth === 0,
      )
    );
  });
}

function comparedBefore(
  known: Known,
  frame: Frame,
  left: Expression,
  right: Expression,
  operator: string,
  given: readonly Expression[],
): boolean {
  const said = (check: Check) => textsIn(check.condition, check.frame);
  const orders = known.checks.filter(({ condition }) =>
    contains(condition, (part) => part.kind === 'binary' && COMPARES.has(part.operator)),
  );
  const leftText = deepText(left, frame);
  const rightText = deepText(right, frame);
  return orders.some((check) => {
    const texts = said(check);
    if (operator === '-') return texts.has(rightText) && (texts.has(leftText) || bare(left).kind === 'call');
    // What somebody has can be sent; whether it fits where it goes is another question.
    if (operator === '+') return [leftText, rightText].every((text) => texts.has(text));
    return given.some((side) => texts.has(deepText(side, frame)));
  });
}

/** The text of an expression with what its names stand for. */
function deepText(expression: Expression, frame: Frame): string {
  const { expression: meant } = meaning(expression, frame);
  return textOf(meant);
}

/** The texts of both sides of every comparison in a condition that is no arithmetic itself. */
function textsIn(condition: Expression, frame: Frame): Set<string> {
  const texts = new Set<string>();
  const visit = (part: Expression): void => {
    if (part.kind !== 'binary') return;
    if (COMPARES.has(part.operator)) {
      for (const side of [part.left, part.right]) {
        const zero = bare(side === part.left ? part.right : part.left);
        // More than zero says nothing of how much.
        if (zero.kind === 'literal' && /^0?$/.test(zero.value)) continue;
        texts.add(deepText(side, frame));
        texts.add(textOf(side));
        const meant = bare(side);
        if (meant.kind === 'binary' && meant.operator === '+') {
          texts.add(textOf(meant.left));
          texts.add(textOf(meant.right));
        }
      }
    }
    visit(part.left);
    visit(part.right);
  };
  visit(bare(condition));
  return texts;
}

/** A function that checks its own arithmetic: `c = a + b; require(c >= a)`. */
function looksAtResults(routine: Routine): boolean {
  if (routine.mutability !== 'pure' && routine.mutability !== 'view' && routine.visibility !== 'internal')
    return false;
  const computed = new Set<string>();
  for (const statement of statementsWithin(routine.body)) {
    if (statement.kind === 'declaration' && statement.variables[0] != null)
      computed.add(statement.variables[0].name);
  }
  for (const each of routine.returns) computed.add(each.name);
  for (const part of expressionsWithin(routine)) {
    if (part.kind === 'binary' && COMPARES.has(part.operator)) {
      if (contains(part, (one) => one.kind === 'name' && computed.has(one.name))) return true;
      if (routine.mutability === 'pure' && routine.visibility === 'internal') return true;
    }
  }
  return false;
}
