import type { Listener } from '../flow.ts';
import { isCaller, meaning, rootOf } from '../meaning.ts';
import {
  type Contract,
  calledName,
  contains,
  type Expression,
  expressionsWithin,
  isBuiltin,
  type Routine,
  type Variable,
} from '../syntax/tree.ts';
import { type Finding, finding, related } from './finding.ts';

/** SWC-114 in the allowance of a token: approve without a way to change it by steps. */
export function approveRace(contract: Contract, into: Finding[]): void {
  const routines = contract.lineage.flatMap((base) => base.routines);
  const approve = routines.find(
    ({ name, parameters, body, role }) =>
      role === 'function' && name === 'approve' && parameters.length === 2 && body !== null,
  );
  if (approve === undefined || !/^u?int|^$/.test(approve.parameters[1]?.type ?? '')) return;
  if (!routines.some(({ name }) => name === 'transferFrom')) return;
  const body = [...expressionsWithin(approve)];
  const zeroFirst = body.some(
    (part) =>
      part.kind === 'binary' &&
      (part.operator === '==' || part.operator === '!=') &&
      contains(part, (one) => one.kind === 'name' && one.name === approve.parameters[1]?.name),
  );
  if (zeroFirst) return;
  const writes = body.filter((part) => part.kind === 'assignment' && part.left.kind === 'index');
  into.push(
    finding(
      'approve-race',
      { ...approve.head, endLine: approve.head.line },
      { contract, routine: approve },
      {
        severity: 'LOW',
        confidence: 'medium',
        detail: 'approve replaces an allowance whatever it was.',
        related: writes.map(({ place }) => related(place, 'the allowance is replaced')),
      },
    ),
  );
}

/** SWC-114: an answer in clear that is paid at once, and a payment of an amount that another transaction sets. */
export function ordering(contract: Contract, entry: Routine, into: Finding[]): Listener {
  if (entry.role === 'constructor') return {};
  const where = { contract, routine: entry };
  return {
    outsideCall(call, known) {
      const paid =
        call.method === 'send' || call.method === 'transfer'
          ? call.call.args[0]
          : call.method === 'call'
            ? call.call.value
            : null;
      if (paid == null) return;
      const receiver = meaning(call.callee, call.frame);
      if (!isCaller(receiver.expression, receiver.frame)) {
        // The owner pays what another transaction may be asking for at this moment.
        return;
      }
      for (const { condition, holds, frame } of known.checks) {
        if (condition.kind !== 'binary' || (condition.operator === '==') !== holds) continue;
        const hashed = contains(
          condition,
          (part) =>
            part.kind === 'call' &&
            /^(sha3|keccak256|sha256)$/.test(calledName(part)) &&
            part.args.some((arg) => contains(arg, (one) => isArgument(one, entry))) &&
            !part.args.some((arg) => contains(arg, (one) => isCaller(one, frame))),
        );
        if (!hashed) continue;
        into.push(
          finding('secret-in-the-open', condition.place, where, {
            severity: 'MEDIUM',
            confidence: 'medium',
            detail: 'Whoever sends the preimage is paid at once, and everybody sees it before it counts.',
            related: [related(call.call.place, 'the payment')],
          }),
        );
      }
      const { expression, frame } = meaning(paid, call.frame);
      const root = rootOf(expression, frame);
      if (
        root === null ||
        root.scope !== 'state' ||
        expression.kind !== 'name' ||
        root.fixed ||
        known.callerKnown
      )
        return;
      const setters = settersOf(root, contract).filter(({ routine }) => routine !== entry);
      if (setters.length === 0) return;
      into.push(
        finding('price-changes-first', call.call.place, where, {
          severity: 'LOW',
          confidence: 'medium',
          detail: `${root.name} is paid, and ${setters.map(({ routine }) => routine.name).join(', ')} can set it just before.`,
          related: setters.flatMap(({ lines }) =>
            lines.map((place) => related(place, `${root.name} is set or paid`)),
          ),
        }),
      );
    },
  };
}

function isArgument(part: Expression, entry: Routine): boolean {
  return part.kind === 'name' && part.target?.kind === 'variable' && entry.parameters.includes(part.target);
}

function settersOf(variable: Variable, contract: Contract) {
  return contract.lineage
    .flatMap(({ routines }) => routines)
    .filter(({ role }) => role === 'function')
    .map((routine) => {
      const parts = [...expressionsWithin(routine)];
      const sets = parts.some(
        (part) =>
          part.kind === 'assignment' &&
          part.left.kind === 'name' &&
          part.left.target === variable &&
          contains(part.right, (one) => isBuiltin(one, 'msg', 'value') || isArgument(one, routine)),
      );
      const lines = sets
        ? parts.filter((part) => part.kind === 'name' && part.target === variable).map(({ place }) => place)
        : [];
      return { routine, lines };
    })
    .filter(({ lines }) => lines.length > 0);
}

/** SWC-114: a move in a game is stored in clear beside who made it, and a later one is paid by it. */
export function openMoves(contract: Contract, into: Finding[]): void {
  for (const routine of contract.routines) {
    if (routine.mutability !== 'payable' || routine.parameters.length !== 1) continue;
    const [move] = routine.parameters;
    for (const part of expressionsWithin(routine)) {
      if (part.kind !== 'call' || part.form !== 'struct' || move === undefined) continue;
      const holdsMove = part.args.some((arg) => arg.kind === 'name' && arg.target === move);
      const holdsCaller = part.args.some((arg) => isBuiltin(arg, 'msg', 'sender'));
      const draws = contract.routines.some((each) =>
        [...expressionsWithin(each)].some((one) => one.kind === 'binary' && one.operator === '%'),
      );
      if (!holdsMove || !holdsCaller || !draws) continue;
      into.push(
        finding(
          'secret-in-the-open',
          part.place,
          { contract, routine },
          {
            severity: 'MEDIUM',
            confidence: 'low',
            detail: 'A player’s move is stored in clear; whoever moves later can read it first.',
            related: [related(routine.head, 'the entry')],
          },
        ),
      );
    }
  }
}
