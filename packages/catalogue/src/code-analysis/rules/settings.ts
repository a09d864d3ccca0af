/** Looks at settings on which a contract relies: whom it pays, and which contracts it asks. */
import type { Listener } from '../flow.ts';
import { keptPart } from '../meaning.ts';
import {
  bare,
  type Contract,
  calledName,
  type Expression,
  expressionsWithin,
  type Routine,
  type Variable,
} from '../syntax/tree.ts';
import { isOnce } from './access.ts';
import { anybody, argumentDecides } from './caller.ts';
import { type Finding, tell } from './finding.ts';

const PAYS_TO = /^(safe)?transfer(From)?$|^sendValue$|^safeTransferETH$/i;

/** The variables whose address a contract pays or calls. */
export function reliedOn(contract: Contract): Set<Variable> {
  const found = new Set<Variable>();
  const note = (expression: Expression | undefined): void => {
    const named = expression === undefined ? null : bare(expression);
    const target = named?.kind === 'name' || named?.kind === 'member' ? named.target : null;
    if (target?.kind !== 'variable' || target.scope !== 'state' || target.fixed) return;
    if (/^(address|contract )/.test(target.type)) found.add(target);
  };
  for (const routine of contract.lineage.flatMap(({ routines }) => routines)) {
    for (const part of expressionsWithin(routine)) {
      if (part.kind !== 'call' || part.form !== 'call') continue;
      const callee = bare(part.callee);
      if (callee.kind === 'member') note(callee.of);
      if (PAYS_TO.test(calledName(part))) for (const arg of part.args.slice(0, 2)) note(arg);
    }
  }
  return found;
}

/** A setting that anybody changes to an address of their choice. */
export function settings(
  contract: Contract,
  entry: Routine,
  relied: ReadonlySet<Variable>,
  into: Finding[],
): Listener {
  if (entry.role === 'constructor' || entry.mutability === 'payable') return {};
  const look = { contract, entry, into };
  return {
    write({ target, operator, value, place }, known, frame) {
      const part = keptPart(target, frame);
      if (part === null || !relied.has(part) || value === null || operator !== '=') return;
      if (!anybody(known) || !argumentDecides(value, frame) || isOnce(part, known)) return;
      tell(look, 'unprotected-setting', place, frame, {
        severity: 'HIGH',
        confidence: 'medium',
        detail: `${part.name}, which the contract pays or calls, is set in ${entry.name || entry.role} by whoever calls.`,
      });
    },
  };
}
