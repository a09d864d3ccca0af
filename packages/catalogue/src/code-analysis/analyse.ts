/** All rules over one program. */
import { entriesOf, walkEntry } from './flow.ts';
import { accessControl, authorityVariables, wrongConstructors } from './rules/access.ts';
import { arithmetic } from './rules/arithmetic.ts';
import { uncheckedCalls } from './rules/calls.ts';
import { forcedPayments, loops } from './rules/denial.ts';
import { randomness, timestamps } from './rules/entropy.ts';
import { behindUnseen, type Finding, merged, SEVERITIES } from './rules/finding.ts';
import { approveRace, openMoves, ordering } from './rules/ordering.ts';
import { reentrancy } from './rules/reentrancy.ts';
import { shadowedState, shortAddresses, uninitialisedPointers } from './rules/storage.ts';
import type { Contract, Program } from './syntax/tree.ts';

/** More than this of one program is told by number alone. */
export const MAX_FINDINGS = 300;

/**
 * Runs every rule. A contract that others of the program are made of is looked at as part of those.
 *
 * @param only the names of contracts; all of them when left out
 * @returns gravest first, then by file and line
 */
export function analyse(program: Program, only?: ReadonlySet<string>): Finding[] {
  const found: Finding[] = [];
  const bases = new Set(program.contracts.flatMap(({ lineage }) => lineage.slice(1)));
  const chosen = program.contracts.filter(
    ({ role, name }) => role !== 'interface' && (only === undefined || only.has(name)),
  );
  for (const routine of program.routines) uncheckedCalls(null, routine, found);
  for (const contract of chosen) {
    for (const routine of contract.routines) uncheckedCalls(contract, routine, found);
    wrongConstructors(contract, program.minor, found);
    uninitialisedPointers(contract, program.minor, found);
    shortAddresses(contract, program.minor, found);
    shadowedState(contract, program.minor, found);
    openMoves(contract, found);
    if (bases.has(contract) && only === undefined) continue;
    whole(contract, program, found);
  }
  return merged(found).sort(
    (a, b) =>
      SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
      a.file.localeCompare(b.file) ||
      a.line - b.line,
  );
}

/** Applies the rules that need the contract with all of its bases. */
function whole(contract: Contract, program: Program, found: Finding[]): void {
  randomness(contract, found);
  timestamps(contract, found);
  loops(contract, found);
  approveRace(contract, found);
  const guarded = authorityVariables(contract);
  for (const entry of entriesOf(contract)) {
    const ofEntry: Finding[] = [];
    const unseen = walkEntry(contract, entry, [
      reentrancy(contract, entry, program.minor, ofEntry),
      accessControl(contract, entry, guarded, ofEntry),
      arithmetic(contract, entry, program.minor, ofEntry),
      forcedPayments(contract, entry, ofEntry),
      ordering(contract, entry, ofEntry),
    ]);
    found.push(...ofEntry.map((each) => behindUnseen(each, unseen)));
  }
}
