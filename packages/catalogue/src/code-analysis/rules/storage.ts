import { type Contract, contains, expressionsWithin, isBuiltin, statementsWithin } from '../syntax/tree.ts';
import { type Finding, finding } from './finding.ts';

/** SWC-109, before 0.5: a local struct or array without `memory` and without a value writes to slot 0. */
export function uninitialisedPointers(contract: Contract, minor: number, into: Finding[]): void {
  if (minor >= 5) return;
  for (const routine of contract.routines) {
    for (const statement of statementsWithin(routine.body)) {
      if (statement.kind !== 'declaration' || statement.initial !== null) continue;
      for (const variable of statement.variables) {
        if (variable === null || variable.location !== 'storage') continue;
        const written = [...expressionsWithin(routine)].some(
          (part) =>
            part.kind === 'assignment' &&
            part.left.kind === 'member' &&
            part.left.of.kind === 'name' &&
            part.left.of.target === variable,
        );
        const given = [...expressionsWithin(routine)].some(
          (part) => part.kind === 'assignment' && part.left.kind === 'name' && part.left.target === variable,
        );
        if (given) continue;
        into.push(
          finding(
            'uninitialised-pointer',
            statement.place,
            { contract, routine },
            {
              severity: written ? 'HIGH' : 'MEDIUM',
              confidence: 'high',
              detail: `${variable.name} is a name for the first storage slot.`,
            },
          ),
        );
      }
    }
  }
}

/** Before 0.5: a transfer function of a token that does not look at the length of its call data. */
export function shortAddresses(contract: Contract, minor: number, into: Finding[]): void {
  if (minor >= 5) return;
  for (const routine of contract.routines) {
    if (routine.role !== 'function' || !/^(transfer|sendCoin)$/i.test(routine.name) || routine.body === null)
      continue;
    if (routine.visibility === 'internal' || routine.visibility === 'private') continue;
    const [to, amount] = routine.parameters;
    if (routine.parameters.length !== 2 || to?.type !== 'address' || !/^uint/.test(amount?.type ?? ''))
      continue;
    const looks = [
      routine,
      ...routine.invocations.flatMap(({ target }) => (target === null ? [] : [target])),
    ].some((each) =>
      [...expressionsWithin(each)].some((part) => contains(part, (one) => isBuiltin(one, 'msg', 'data'))),
    );
    if (looks) continue;
    into.push(
      finding(
        'short-address',
        routine.head,
        { contract, routine },
        {
          severity: 'LOW',
          confidence: 'low',
          detail: `${routine.name} takes an address and an amount.`,
        },
      ),
    );
  }
}

/** SWC-119, before 0.6: a state variable that a base has under the same name. */
export function shadowedState(contract: Contract, minor: number, into: Finding[]): void {
  if (minor >= 6) return;
  const bases = contract.lineage.slice(1).flatMap(({ state }) => state);
  for (const variable of contract.state) {
    const other = bases.find(({ name, visibility }) => name === variable.name && visibility !== 'private');
    if (other === undefined || other.fixed) continue;
    into.push(
      finding(
        'shadowed-state',
        variable.place,
        { contract, routine: null },
        {
          severity: 'MEDIUM',
          confidence: 'high',
          detail: `${variable.name} is another variable than the one of ${other.contract?.name ?? 'the base'}.`,
          related: [{ file: other.place.file, line: other.place.line, what: 'the other one' }],
        },
      ),
    );
  }
}
