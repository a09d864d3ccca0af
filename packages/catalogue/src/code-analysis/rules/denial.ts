import type { Listener } from '../flow.ts';
import { isCaller, meaning, rootOf } from '../meaning.ts';
import {
  bare,
  type Contract,
  calledName,
  contains,
  type Expression,
  expressionsOf,
  expressionsWithin,
  isBuiltin,
  type Routine,
  type Statement,
  statementsWithin,
  type Variable,
  within,
} from '../syntax/tree.ts';
import { type Finding, finding, related } from './finding.ts';

/** Rounds of a loop that write to storage, from which on one transaction is dear. */
const MANY_ROUNDS = 100;

/** Storage arrays that somebody other than the owner can make longer, as far as the text tells. */
function growingArrays(contract: Contract): Set<Variable> {
  const found = new Set<Variable>();
  for (const routine of contract.lineage.flatMap((base) => base.routines)) {
    if (routine.role === 'constructor' || routine.invocations.some(({ name }) => /^only|^auth/i.test(name)))
      continue;
    for (const part of expressionsWithin(routine)) {
      const grown =
        part.kind === 'call' && calledName(part) === 'push' && bare(part.callee).kind === 'member'
          ? (bare(part.callee) as { of: Expression }).of
          : part.kind === 'assignment' && part.left.kind === 'member' && part.left.member === 'length'
            ? part.left.of
            : part.kind === 'unary' &&
                part.operator === '++' &&
                part.operand.kind === 'member' &&
                part.operand.member === 'length'
              ? part.operand.of
              : null;
      if (grown?.kind === 'name' && grown.target?.kind === 'variable' && grown.target.scope === 'state')
        found.add(grown.target);
    }
  }
  return found;
}

/** SWC-113 and 128: loops that somebody can stop or make too long. */
export function loops(contract: Contract, into: Finding[]): void {
  const growing = growingArrays(contract);
  for (const routine of contract.lineage.flatMap((base) => base.routines)) {
    if (routine.role === 'constructor' || routine.invocations.some(({ name }) => /^only|^auth/i.test(name)))
      continue;
    if (routine.mutability === 'view' || routine.mutability === 'pure') continue;
    for (const statement of statementsWithin(routine.body)) {
      if (statement.kind === 'loop') judgeLoop(statement, routine);
      for (const expression of expressionsOf(statement)) {
        for (const part of within(expression)) {
          if (
            part.kind !== 'assignment' ||
            part.left.kind !== 'name' ||
            part.left.target?.kind !== 'variable'
          )
            continue;
          const emptied = part.right.kind === 'call' && part.right.callee.kind === 'creation';
          if (emptied && growing.has(part.left.target))
            report(
              'unbounded-loop',
              part,
              routine,
              `Emptying ${part.left.name} clears each of its elements, and anybody can add some.`,
            );
        }
      }
    }
  }

  function judgeLoop(loop: Extract<Statement, { kind: 'loop' }>, routine: Routine): void {
    const inside = [...statementsWithin(loop.body)].flatMap((each) =>
      expressionsOf(each).flatMap((one) => [...within(one)]),
    );
    for (const part of inside) {
      if (part.kind !== 'call' || part.form !== 'call') continue;
      const name = calledName(part);
      const stops =
        name === 'transfer' ||
        ((name === 'require' || name === 'assert') &&
          part.args[0] !== undefined &&
          contains(part.args[0], (one) => one.kind === 'call' && /^(send|call)$/.test(calledName(one))));
      if (!stops) continue;
      const call =
        name === 'transfer'
          ? part
          : ([...within(part)].find((one) => one.kind === 'call' && /^(send|call)$/.test(calledName(one))) ??
            part);
      const callee = call.kind === 'call' ? bare(call.callee) : call;
      const receiver = callee.kind === 'member' ? bare(callee.of) : null;
      if (
        call.kind !== 'call' ||
        receiver === null ||
        (name === 'transfer' && call.args.length !== 1) ||
        !/^address|^$/.test(receiver.type)
      )
        continue;
      if (contains(receiver, (one) => one.kind === 'member' && one.member === 'sender')) continue;
      report(
        'call-in-loop',
        part,
        routine,
        'A receiver in the loop that refuses stops it for all.',
        'MEDIUM',
      );
    }
    const { condition } = loop;
    if (condition === null) return;
    const array = [...within(condition)].find(
      (part) =>
        part.kind === 'member' &&
        part.member === 'length' &&
        part.of.kind === 'name' &&
        part.of.target?.kind === 'variable' &&
        growing.has(part.of.target),
    );
    const grows = inside.some(
      (part) =>
        (part.kind === 'call' && calledName(part) === 'push') ||
        (part.kind === 'assignment' && part.left.kind === 'member' && part.left.member === 'length'),
    );
    const bound = [...within(condition)].find(
      (part) => part.kind === 'literal' && Number(part.value) >= MANY_ROUNDS,
    );
    const byCaller = [...within(condition)].find(
      (part) => part.kind === 'name' && part.target?.kind === 'variable' && part.target.scope === 'parameter',
    );
    if (array !== undefined)
      report(
        'unbounded-loop',
        { ...condition, place: loop.place },
        routine,
        'The loop goes through an array that anybody can make longer.',
      );
    else if (grows && (bound ?? byCaller) !== undefined)
      report(
        'unbounded-loop',
        { ...condition, place: loop.place },
        routine,
        'The loop adds to storage as often as one transaction can hardly hold.',
      );
  }

  function report(
    rule: 'call-in-loop' | 'unbounded-loop',
    at: Expression,
    routine: Routine,
    detail: string,
    severity: 'MEDIUM' | 'LOW' = 'LOW',
  ): void {
    into.push(
      finding(
        rule,
        { ...at.place, endLine: at.place.line },
        { contract, routine },
        { severity, confidence: 'medium', detail },
      ),
    );
  }
}

/** SWC-113: loops that pay by a call, and that stop where one of the calls fails. */
export function insistentLoops(contract: Contract, into: Finding[]): void {
  for (const routine of contract.lineage.flatMap((base) => base.routines)) {
    if (routine.role === 'constructor' || routine.invocations.some(({ name }) => /^only|^auth/i.test(name)))
      continue;
    for (const statement of statementsWithin(routine.body)) {
      if (statement.kind !== 'loop') continue;
      for (const call of insistedPayments(statement.body))
        into.push(
          finding(
            'call-in-loop',
            { ...call.place, endLine: call.place.line },
            { contract, routine },
            {
              severity: 'MEDIUM',
              confidence: 'medium',
              detail: 'A receiver in the loop that refuses stops it for all.',
            },
          ),
        );
    }
  }
}

/** Payments in a loop whose outcome is kept under a name, and without which the loop does not go on. */
function insistedPayments(body: Statement): Expression[] {
  const statements = [...statementsWithin(body)];
  return statements.flatMap((statement) => {
    if (statement.kind === 'expression') {
      const call = bare(statement.expression);
      return call.kind === 'call' && /^(sendValue|safeTransferETH)$/.test(calledName(call)) ? [call] : [];
    }
    if (statement.kind !== 'declaration' || statement.initial === null) return [];
    const call = bare(statement.initial);
    const outcome = statement.variables[0] ?? null;
    if (call.kind !== 'call' || call.value === null || calledName(call) !== 'call' || outcome === null)
      return [];
    const callee = bare(call.callee);
    if (callee.kind === 'member' && contains(callee.of, (one) => isBuiltin(one, 'msg', 'sender'))) return [];
    const speaks = (condition: Expression) =>
      contains(condition, (one) => one.kind === 'name' && one.target === outcome);
    const insists = statements.some((each) => {
      if (each.kind === 'if')
        return (
          speaks(each.condition) && [...statementsWithin(each.whenTrue)].some(({ kind }) => kind === 'revert')
        );
      if (each.kind !== 'expression' || each.expression.kind !== 'call') return false;
      return /^(require|assert)$/.test(calledName(each.expression)) && each.expression.args.some(speaks);
    });
    return insists ? [call] : [];
  });
}

/** SWC-113: the next state is reached only when a stored party takes its money. */
export function forcedPayments(contract: Contract, entry: Routine, into: Finding[]): Listener {
  const paid: { root: Variable; call: Parameters<NonNullable<Listener['outsideCall']>>[0] }[] = [];
  return {
    outsideCall(call, known) {
      if (call.method !== 'transfer' && call.method !== 'send') return;
      if (known.callerKnown || entry.role === 'constructor') return;
      const { expression, frame } = meaning(call.callee, call.frame);
      const root = rootOf(expression, frame);
      if (root === null || root.scope !== 'state' || root.fixed || isCaller(expression, frame)) return;
      if (call.method === 'send' && !isRequired(call.call, entry, call.frame.routine)) return;
      paid.push({ root, call });
    },
    write({ root, place }) {
      for (const { call } of paid.filter((each) => each.root === root)) {
        into.push(
          finding(
            'forced-payment',
            call.call.place,
            { contract, routine: call.frame.routine },
            {
              severity: 'MEDIUM',
              confidence: 'medium',
              detail: `${root.name} changes only after the party that it names has taken a payment.`,
              related: [related(place, `${root.name} changes`)],
            },
          ),
        );
      }
    },
  };
}

function isRequired(call: Expression, ...routines: Routine[]): boolean {
  return routines.some((routine) =>
    [...expressionsWithin(routine)].some(
      (part) =>
        part.kind === 'call' &&
        /^(require|assert)$/.test(calledName(part)) &&
        part.args.some((arg) => contains(arg, (one) => one === call)),
    ),
  );
}
