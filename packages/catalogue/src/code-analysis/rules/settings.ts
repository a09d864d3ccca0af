/** Looks at settings on which a contract relies: whom it pays, and which contracts it asks. */
import type { Listener } from '../flow.ts';
import { type Frame, keptPart, meaning } from '../meaning.ts';
import {
  bare,
  type Contract,
  calledName,
  type Expression,
  expressionsWithin,
  type Place,
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

const MOVES = /^(safe)?transfer(From)?$|^send$|^sendValue$|^_?mint$|^_?burn$/i;

/** Plain values by which a contract decides what it takes and what it pays: a fee, a rate, a stop. */
export function termsOf(contract: Contract): Set<Variable> {
  const found = new Set<Variable>();
  for (const routine of contract.lineage.flatMap(({ routines }) => routines)) {
    if (routine.role === 'constructor' || routine.body === null) continue;
    const parts = [...expressionsWithin(routine)];
    const moves =
      routine.mutability === 'payable' ||
      parts.some(
        (part) =>
          part.kind === 'call' &&
          part.form === 'call' &&
          (part.value !== null || MOVES.test(calledName(part))),
      );
    if (!moves) continue;
    for (const part of parts) {
      const target = part.kind === 'name' && part.target?.kind === 'variable' ? part.target : null;
      if (target?.scope === 'state' && !target.fixed && /^(u?int\d+|bool)$/.test(target.type))
        found.add(target);
    }
  }
  return found;
}

/** A setting that anybody changes to an address of their choice. */
export function settings(
  contract: Contract,
  entry: Routine,
  relied: ReadonlySet<Variable>,
  terms: ReadonlySet<Variable>,
  into: Finding[],
): Listener {
  if (entry.role === 'constructor' || entry.mutability === 'payable') return {};
  const look = { contract, entry, into };
  const changed: { part: Variable; place: Place; frame: Frame }[] = [];
  let acts = false;
  return {
    outsideCall(call) {
      if (!call.readsOnly) acts = true;
    },
    end() {
      // What is set beside something else that is done is a state and no setting.
      if (acts) return;
      for (const { part, place, frame } of changed)
        tell(look, 'unprotected-setting', place, frame, {
          severity: 'MEDIUM',
          confidence: 'low',
          detail: `${part.name}, by which the contract decides what it takes or pays, is set in ${entry.name || entry.role} by whoever calls.`,
        });
    },
    write({ target, operator, value, place }, known, frame) {
      const part = keptPart(target, frame);
      const isTerm = part !== null && terms.has(part) && bare(target).kind === 'name';
      if (isTerm && value !== null && operator === '=') {
        const given = meaning(value, frame);
        // The caller's word as it is: what is worked out of it is another matter.
        const said = given.expression.kind === 'name' && argumentDecides(given.expression, given.frame);
        if (said && anybody(known) && !isOnce(part, known)) changed.push({ part, place, frame });
      } else if (operator !== '=' || bare(target).kind !== 'name') acts = true;
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
