/** Finds who can replace the code that runs with a contract's storage. */
import { entriesOf, type Listener, walkEntry } from '../flow.ts';
import { type Frame, isCaller, keptPart, meaning, outsideCall, returned } from '../meaning.ts';
import {
  bare,
  type Call,
  type Contract,
  calledName,
  contains,
  type Expression,
  expressionsWithin,
  isBuiltin,
  type Routine,
  type Variable,
} from '../syntax/tree.ts';
import { isOnce } from './access.ts';
import { anybody, callerDecides, deeplyContains } from './caller.ts';
import { type Finding, finding, tell } from './finding.ts';

const IMPLEMENTATION_SLOT = '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc';
/** The slots of ERC-1967 for the implementation, the admin and the beacon, and the one of ERC-1822. */
const KNOWN_SLOTS =
  /^0x(360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc|b53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103|a3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50|c5f16f0fcc639fa48a6947836d9850f504798523bf8c9a3a87d5876cf622bcf7)$/i;

/** The variables that a contract delegates to. */
export function delegatedParts(contract: Contract): Set<Variable> {
  const found = new Set<Variable>();
  const note = (expression: Expression, frame: Frame, depth: number): void => {
    const { expression: meant, frame: at } = meaning(expression, frame);
    const part = keptPart(meant, at);
    if (part !== null && !part.fixed) found.add(part);
    if (meant.kind !== 'call' || depth > 3) return;
    for (const each of returned(meant, at)) note(each.expression, each.frame, depth + 1);
  };
  for (const entry of entriesOf(contract)) {
    walkEntry(contract, entry, [
      {
        expression(expression, _known, frame) {
          if (expression.kind !== 'call') return;
          const outside = outsideCall(expression, frame);
          if (outside?.method === 'delegatecall' || outside?.method === 'callcode')
            note(outside.callee, frame, 0);
        },
      },
    ]);
  }
  return found;
}

/** An entry that lets anybody set what is delegated to, or a fixed slot. */
export function upgrades(
  contract: Contract,
  entry: Routine,
  delegated: ReadonlySet<Variable>,
  into: Finding[],
): Listener {
  if (entry.role === 'constructor') return {};
  const look = { contract, entry, into };
  const slots: Finding[] = [];
  let mentionsCaller = false;
  return {
    write({ target, value, place }, known, frame) {
      const part = keptPart(target, frame);
      if (part === null || value === null || !anybody(known) || !callerDecides(value, frame)) return;
      if (!delegated.has(part) && !isKnownSlot(target, frame)) return;
      if (isOnce(part, known)) return;
      const underCaller = contains(
        target,
        (one) => one.kind === 'index' && one.index !== null && isCaller(one.index, frame),
      );
      if (underCaller) return;
      tell(look, 'unprotected-upgrade', place, frame, {
        severity: 'CRITICAL',
        confidence: 'high',
        detail: `${part.name}, whose code runs here, is set in ${entry.name || entry.role} for whoever calls.`,
      });
    },
    expression(expression, known, frame) {
      if (isBuiltin(expression, 'msg', 'sender')) mentionsCaller = true;
      if (expression.kind !== 'call' || expression.inAssembly !== true || calledName(expression) !== 'sstore')
        return;
      const [slot, value] = expression.args;
      if (slot === undefined || value === undefined || !anybody(known) || !callerDecides(value, frame))
        return;
      const fixed = fixedSlot(slot, frame);
      if (fixed === null || known.checks.some(({ condition, frame: at }) => readsSlots(condition, at)))
        return;
      const isCode = KNOWN_SLOTS.test(fixed);
      tell(
        { ...look, into: slots },
        isCode ? 'unprotected-upgrade' : 'unprotected-slot',
        expression.place,
        frame,
        {
          severity: isCode ? 'CRITICAL' : 'HIGH',
          confidence: isCode ? 'high' : 'medium',
          detail: `${entry.name || entry.role} stores what the caller gives at ${isCode ? 'a slot of ERC-1967' : 'a fixed slot'}.`,
        },
      );
    },
    end() {
      // What assembly makes of the caller by way of memory is not followed: it may be what decides.
      if (!mentionsCaller) into.push(...slots);
    },
  };
}

/** The value of a slot that does not depend on the caller; null for others. */
function fixedSlot(slot: Expression, frame: Frame): string | null {
  const { expression } = meaning(slot, frame);
  const target = expression.kind === 'name' ? expression.target : null;
  const named = target?.kind === 'variable' && target.scope === 'state' && target.fixed ? target : null;
  if (expression.kind === 'name' && named === null) return null;
  const value = named === null ? expression : named.initial === null ? null : bare(named.initial);
  if (value === null) return '';
  if (value.kind === 'literal') return value.value;
  const byName = contains(value, (part) => part.kind === 'literal' && /^eip1967\.proxy\./.test(part.value));
  if (byName) return IMPLEMENTATION_SLOT;
  return named === null ? null : '';
}

/** Whether a condition reads a slot: what is set once is read before. */
function readsSlots(condition: Expression, frame: Frame): boolean {
  return deeplyContains(condition, frame, (part) => part.kind === 'call' && calledName(part) === 'sload');
}

/** A pointer that a function gives for a slot of ERC-1967, as `getAddressSlot(SLOT).value`. */
function isKnownSlot(target: Expression, frame: Frame): boolean {
  let at = bare(target);
  for (let i = 0; i < 10 && (at.kind === 'member' || at.kind === 'index'); i++) at = bare(at.of);
  const { expression, frame: where } = meaning(at, frame);
  if (expression.kind !== 'call') return false;
  return (expression as Call).args.some((arg) => KNOWN_SLOTS.test(fixedSlot(arg, where) ?? ''));
}

/** The hook of UUPS contracts that decides who may upgrade, where it lets everybody through. */
export function openUpgradeHooks(contract: Contract, into: Finding[]): void {
  for (const routine of contract.routines) {
    if (routine.name !== '_authorizeUpgrade' || routine.body === null || routine.invocations.length > 0)
      continue;
    const asks = [...expressionsWithin(routine)].some(
      (part) => part.kind === 'call' || (part.kind === 'member' && part.member === 'sender'),
    );
    if (asks) continue;
    into.push(
      finding(
        'unprotected-upgrade',
        routine.head,
        { contract, routine },
        {
          severity: 'CRITICAL',
          confidence: 'high',
          detail: '_authorizeUpgrade asks for nothing, so that upgradeToAndCall is open to whoever calls.',
        },
      ),
    );
  }
}
