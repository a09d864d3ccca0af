/** All bugs that `npm run mutate` plants, area by area. */
import { type Mutant, mutantsIn } from './mutant.ts';
import { CALLER_ADDRESS_MUTANTS } from './mutants/caller-address.ts';
import { LEDGER_MUTANTS } from './mutants/ledger.ts';
import { PAID_CALL_MUTANTS } from './mutants/paid-call.ts';

export const MUTANTS: readonly Mutant[] = [
  ...LEDGER_MUTANTS,
  ...PAID_CALL_MUTANTS,
  ...CALLER_ADDRESS_MUTANTS,
].flatMap(mutantsIn);
