/** All rules over one program. */
import { entriesOf, walkEntry } from './flow.ts';
import { accessControl, authorityVariables, openParts, wrongConstructors } from './rules/access.ts';
import { arithmetic } from './rules/arithmetic.ts';
import { callbacks } from './rules/callbacks.ts';
import { uncheckedCalls, uncheckedTransfers } from './rules/calls.ts';
import { forcedPayments, insistentLoops, loops } from './rules/denial.ts';
import { encoding } from './rules/encoding.ts';
import { assemblyDraws, randomness, timestamps } from './rules/entropy.ts';
import { behindUnseen, type Finding, merged, ON_THE_WAY, SEVERITIES } from './rules/finding.ts';
import { numbers } from './rules/numbers.ts';
import { approveRace, openMoves, ordering } from './rules/ordering.ts';
import { lockedEther, payments } from './rules/payments.ts';
import { reentrancy } from './rules/reentrancy.ts';
import { reliedOn, settings, termsOf } from './rules/settings.ts';
import { sharePrice } from './rules/shares.ts';
import { signatures } from './rules/signatures.ts';
import { marketsOf, spotPrices } from './rules/spot-prices.ts';
import { shadowedState, shortAddresses, uninitialisedPointers } from './rules/storage.ts';
import { tokenFlow } from './rules/tokens.ts';
import { stalePrices, trades } from './rules/trades.ts';
import { delegatedParts, openUpgradeHooks, upgrades } from './rules/upgrades.ts';
import { wraps } from './rules/wraps.ts';
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
    ({ role, name, place }) =>
      role !== 'interface' && !program.borrowed.has(place.file) && (only === undefined || only.has(name)),
  );
  for (const routine of program.routines) uncheckedCalls(null, routine, found);
  for (const contract of chosen) {
    for (const routine of contract.routines) {
      uncheckedCalls(contract, routine, found);
      uncheckedTransfers(contract, routine, found);
      stalePrices(contract, routine, found);
    }
    openUpgradeHooks(contract, found);
    wrongConstructors(contract, program.minor, found);
    uninitialisedPointers(contract, program.minor, found);
    shortAddresses(contract, program.minor, found);
    shadowedState(contract, program.minor, found);
    openMoves(contract, found);
    if (bases.has(contract) && only === undefined) continue;
    whole(contract, program, found);
  }
  return merged(found.filter(({ file }) => !program.borrowed.has(file))).sort(
    (a, b) =>
      SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
      a.file.localeCompare(b.file) ||
      a.line - b.line,
  );
}

/** Applies the rules that need the contract with all of its bases. */
function whole(contract: Contract, program: Program, found: Finding[]): void {
  randomness(contract, found);
  assemblyDraws(contract, found);
  timestamps(contract, found);
  loops(contract, found);
  insistentLoops(contract, found);
  approveRace(contract, found);
  lockedEther(contract, program.borrowed, found);
  const delegated = delegatedParts(contract);
  const relied = reliedOn(contract);
  const terms = termsOf(contract);
  const guarded = authorityVariables(contract);
  const open = openParts(contract);
  const markets = marketsOf(contract, program);
  for (const entry of entriesOf(contract)) {
    const ofEntry: Finding[] = [];
    const unseen = walkEntry(contract, entry, [
      reentrancy(contract, entry, program.minor, ofEntry),
      accessControl(contract, entry, guarded, open, ofEntry),
      arithmetic(contract, entry, program.minor, ofEntry),
      wraps(contract, entry, program, ofEntry),
      forcedPayments(contract, entry, ofEntry),
      ordering(contract, entry, ofEntry),
      tokenFlow(contract, entry, ofEntry),
      upgrades(contract, entry, delegated, ofEntry),
      settings(contract, entry, relied, terms, ofEntry),
      signatures(contract, entry, ofEntry),
      numbers(contract, entry, ofEntry),
      sharePrice(contract, entry, ofEntry),
      callbacks(contract, entry, ofEntry),
      trades(contract, entry, ofEntry),
      spotPrices(contract, entry, markets, ofEntry),
      payments(contract, entry, ofEntry),
      encoding(contract, entry, ofEntry),
    ]);
    found.push(...ofEntry.map((each) => behindUnseen(inSent(each, contract, program.borrowed), unseen)));
  }
}

/**
 * A finding in a file that was not sent stands where the sent source leads to it: at the last call on the way that is its own,
 * or at the contract that inherits it.
 */
function inSent(found: Finding, contract: Contract, borrowed: ReadonlySet<string>): Finding {
  if (!borrowed.has(found.file)) return found;
  const own = found.related.filter(({ file }) => !borrowed.has(file));
  const onTheWay = own.findLast(({ what }) => what === ON_THE_WAY);
  const { file, line } = onTheWay ?? contract.place;
  return {
    ...found,
    file,
    line,
    endLine: line,
    contract: contract.name,
    routine: onTheWay === undefined ? null : found.routine,
    related: [...own, { file: found.file, line: found.line, what: 'where it happens' }],
  };
}
