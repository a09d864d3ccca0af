/** Looks at coins: a payment that counts more than once, a balance that must be exact, and coins that never go out. */
import type { Listener } from '../flow.ts';
import { type Frame, isKept, meaning, rootOf } from '../meaning.ts';
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
  statementsWithin,
  type Variable,
} from '../syntax/tree.ts';
import { deeplyContains, isOwnBalance, isZeroLiteral } from './caller.ts';
import { type Finding, finding, type Look, tell } from './finding.ts';

/** Payments of one entry. */
export function payments(contract: Contract, entry: Routine, into: Finding[]): Listener {
  if (entry.role === 'constructor') return {};
  const look = { contract, entry, into };
  const inLoop: { at: Expression; frame: Frame }[] = [];
  const fine = new Set<Expression>();
  return {
    expression(expression, known, frame) {
      if (known.loops > 0 && isBuiltin(expression, 'msg', 'value')) inLoop.push({ at: expression, frame });
      if (expression.kind !== 'binary') return;
      const { left, right, operator } = expression;
      if (/^[<>]=?$|^[=!]=$/.test(operator)) {
        // A sum that grows with the rounds may be held against it in each, and so may nothing at all.
        for (const [side, other] of [
          [left, right],
          [right, left],
        ] as const)
          if (isZeroLiteral(other, frame) || growing(other, frame)) fine.add(bare(side));
      }
      if (operator === '==' || operator === '!=') exact(look, expression, [left, right], frame);
      if (operator === '/' || operator === '%') fine.add(bare(left));
    },
    write({ value, place }, known, frame) {
      if (known.loops === 0 || value === null || bare(value).kind !== 'name') return;
      const { expression } = meaning(value, frame);
      if (isBuiltin(expression, 'msg', 'value') && !changes(bare(value), frame)) repeated(place, frame);
    },
    outsideCall(call, known) {
      if (
        call.method !== 'delegatecall' ||
        known.loops === 0 ||
        entry.mutability !== 'payable' ||
        call.call.inAssembly === true
      )
        return;
      const refusesValue = known.checks.some(({ condition }) =>
        contains(condition, (part) => isBuiltin(part, 'msg', 'value')),
      );
      if (!refusesValue) repeated(call.call.place, call.frame);
    },
    end() {
      for (const { at, frame } of inLoop) if (!fine.has(at)) repeated(at.place, frame);
    },
  };

  function repeated(place: Place, frame: Frame): void {
    tell(look, 'value-in-loop', place, frame, {
      severity: 'HIGH',
      confidence: 'medium',
      detail: 'msg.value is used in each round of a loop.',
    });
  }
}

/** SWC-132: a comparison for equality with what the contract holds. */
function exact(
  look: Look,
  whole: Expression,
  [left, right]: readonly [Expression, Expression],
  frame: Frame,
): void {
  for (const [side, other] of [
    [left, right],
    [right, left],
  ] as const) {
    const { expression, frame: at } = meaning(side, frame);
    if (
      !isOwnBalance(expression, at) ||
      isZeroLiteral(other, frame) ||
      deeplyContains(other, frame, isOwnBalance)
    )
      continue;
    tell(look, 'exact-balance', whole.place, frame, {
      severity: 'MEDIUM',
      confidence: 'high',
      detail: 'What the contract holds is compared for equality.',
    });
    return;
  }
}

/** A local number that its function changes after it was declared. */
function changes(part: Expression, frame: Frame): boolean {
  if (part.kind !== 'name' || part.target?.kind !== 'variable') return false;
  const { target } = part;
  return [...expressionsWithin(frame.routine)].some(
    (one) =>
      (one.kind === 'assignment' && one.left.kind === 'name' && one.left.target === target) ||
      (one.kind === 'unary' &&
        /^(\+\+|--)$/.test(one.operator) &&
        one.operand.kind === 'name' &&
        one.operand.target === target),
  );
}

function growing(part: Expression, frame: Frame): boolean {
  const root: Variable | null = rootOf(part, frame);
  return root !== null && !isKept(root) && changes(bare(part), frame);
}

const PAYS = new Set([
  'transfer',
  'send',
  'selfdestruct',
  'suicide',
  'delegatecall',
  'callcode',
  'create',
  'create2',
]);

/** A contract that takes coins and has no way to pay them out. */
export function lockedEther(contract: Contract, borrowed: ReadonlySet<string>, into: Finding[]): void {
  if (contract.role !== 'contract') return;
  const routines = contract.lineage.flatMap((base) => base.routines);
  const takes = routines.some(
    ({ role, mutability, body, place }) =>
      !borrowed.has(place.file) &&
      role !== 'constructor' &&
      role !== 'modifier' &&
      mutability === 'payable' &&
      body !== null &&
      !refuses(body),
  );
  if (!takes) return;
  const reached = new Set<Routine>(routines);
  for (const routine of reached) {
    for (const part of expressionsWithin(routine)) {
      if (part.kind !== 'call') continue;
      if (canPay(part)) return;
      const callee = bare(part.callee);
      const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
      if (target?.kind === 'routine' && target.body !== null && reached.size < 2_000) reached.add(target);
    }
    // Assembly without a tree may do anything.
    for (const statement of statementsWithin(routine.body))
      if (statement.kind === 'assembly' && statement.body === null) return;
  }
  into.push(
    finding(
      'locked-ether',
      { ...contract.place, endLine: contract.place.line },
      { contract, routine: null },
      {
        // What is counted is at least known; what is not counted is lost.
        severity: routines.some((each) => counts(each)) ? 'LOW' : 'MEDIUM',
        confidence: 'high',
        detail: `${contract.name} takes payments and has nothing that pays.`,
      },
    ),
  );
}

/** Whether a function writes down what was paid. */
function counts(routine: Routine): boolean {
  return [...expressionsWithin(routine)].some((part) => isBuiltin(part, 'msg', 'value'));
}

function refuses(body: NonNullable<Routine['body']>): boolean {
  return body.kind === 'block' && body.statements.length === 1 && body.statements[0]?.kind === 'revert';
}

function canPay(call: Call): boolean {
  if (call.value !== null) return true;
  const name = calledName(call);
  return PAYS.has(name) || (name === 'call' && call.inAssembly === true);
}
