import { type Check, entriesOf, type Listener, walkEntry } from '../flow.ts';
import { isCaller, meaning, type OutsideCall, rootOf } from '../meaning.ts';
import {
  bare,
  type Contract,
  contains,
  expressionsWithin,
  type Routine,
  type Variable,
} from '../syntax/tree.ts';
import { type Finding, finding, ON_THE_WAY, type RelatedLine, related } from './finding.ts';

const LOCK_NAME = /non_?reentran|no_?reentran|reentran|^_?lock|mutex/i;
const FLAG_NAME = /^_?(is)?(un)?lock(ed)?$|entered|^_?guard|^_?status$|mutex|busy|reentran/i;

/**
 * SWC-107: a state variable changes after a call that may come back. Silent where a lock is held and where only a party
 * that the contract knows can have called.
 */
export function reentrancy(contract: Contract, entry: Routine, minor: number, into: Finding[]): Listener {
  if (entry.role === 'constructor') return {};
  const isLocked = isLockedByName(entry);
  return {
    write({ root, place, operator }, known) {
      if (isFlag(root)) return;
      for (const call of known.calls) {
        const rule = ruleFor(call, minor);
        if (rule === null || known.ownerCalls || failed(call, known.checks)) continue;
        const wasRead = known.reads.has(root);
        if (
          (isLocked || locked(known.checks)) &&
          !(rule === 'reentrancy' && wasRead && spentUnlocked(root, contract, entry))
        )
          continue;
        // Coming back gains nothing where nothing was decided by the old value.
        if (rule !== 'reentrancy' && !wasRead) continue;
        if (rule === 'reentrancy-transfer' && !usedBesides(root, contract, entry)) continue;
        const grave = rule === 'reentrancy';
        into.push(
          finding(
            rule,
            call.call.place,
            { contract, routine: call.frame.routine },
            {
              severity: grave ? (wasRead ? 'HIGH' : 'MEDIUM') : 'LOW',
              confidence: grave && wasRead ? 'high' : rule === 'reentrancy-transfer' ? 'low' : 'medium',
              detail: `${root.name} ${operator === 'delete' ? 'is deleted' : 'changes'} in line ${place.line}, after the call in line ${call.call.place.line}.`,
              related: [related(place, `${root.name} changes`), ...way(call, entry)],
            },
          ),
        );
      }
    },
  };
}

/** How the call is reached from the entry, where it does not stand there itself. */
function way(call: OutsideCall, entry: Routine): RelatedLine[] {
  const { trail } = call.frame;
  return trail.length === 0
    ? []
    : [...trail.map((at) => related(at, ON_THE_WAY)), related(entry.head, 'the entry')];
}

/** The rule for a call, by whose code it runs, which decides how grave it is; null for calls that cannot come back to harm. */
function ruleFor(
  call: OutsideCall,
  minor: number,
): 'reentrancy' | 'reentrancy-token' | 'reentrancy-transfer' | null {
  if (call.method === 'delegatecall' || call.method === 'callcode') return null;
  const { expression, frame } = meaning(call.callee, call.frame);
  // Before 0.5 nothing held a callee to its promise to read only.
  const promised = minor < 5 && isCaller(expression, frame);
  if (call.readsOnly && !promised) return null;
  if (rootOf(expression, frame)?.fixed === true) return null;
  if (!call.hasGas) return 'reentrancy-transfer';
  if (call.method === 'call') return 'reentrancy';
  return isCaller(expression, frame) ? 'reentrancy' : 'reentrancy-token';
}

function isFlag(variable: Variable): boolean {
  return FLAG_NAME.test(variable.name) && /^(bool|u?int\d*|enum .*)$/.test(variable.type);
}

function isLockedByName(entry: Routine): boolean {
  return entry.invocations.some(({ name }) => LOCK_NAME.test(name));
}

/** Whether the path is that of a call that failed: whatever its callee did is undone. */
function failed({ call }: OutsideCall, checks: readonly Check[]): boolean {
  return checks.some(({ condition, holds, frame }) => {
    if (holds || condition.kind !== 'name' || condition.target?.kind !== 'variable') return false;
    const from = frame.origins.get(condition.target) ?? frame.bindings.get(condition.target);
    return from !== undefined && contains(from.expression, (part) => part === call);
  });
}

/** Whether another entry, which no lock keeps out, gives away what a variable says that somebody has. */
function spentUnlocked(variable: Variable, contract: Contract, entry: Routine): boolean {
  return entriesOf(contract).some((other) => {
    if (other === entry || other.role === 'constructor' || isLockedByName(other)) return false;
    let spends = false;
    walkEntry(contract, other, [
      {
        write({ root, operator, target, value }, known) {
          if (root !== variable || target.kind !== 'index' || known.ownerCalls || locked(known.checks))
            return;
          const given = value === null ? null : bare(value);
          const isLess = given?.kind === 'binary' && given.operator === '-';
          if (operator === '-=' || isLess) spends = true;
        },
      },
    ]);
    return spends;
  });
}

/** Whether a lock was checked on the way. */
function locked(checks: readonly Check[]): boolean {
  return checks.some(({ condition }) =>
    contains(
      condition,
      (part) =>
        part.kind === 'name' &&
        part.target?.kind === 'variable' &&
        part.target.scope === 'state' &&
        isFlag(part.target),
    ),
  );
}

function usedBesides(variable: Variable, contract: Contract, entry: Routine): boolean {
  return contract.lineage.some(({ routines }) =>
    routines.some(
      (routine) =>
        routine !== entry &&
        routine.role !== 'constructor' &&
        [...expressionsWithin(routine)].some((part) => part.kind === 'name' && part.target === variable),
    ),
  );
}
