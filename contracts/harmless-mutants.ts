/** Bugs of `npm run contracts:mutate` that change nothing that anybody could tell, each with why. */
import { type Mutant, writtenBy } from './mutants.ts';

const HARMLESS: Readonly<Record<string, string>> = {
  'for (uint256 p = 0; p <= 3; p++) {':
    'No fourth protocol is ever held, and what is not held is passed over.',
  'keeper = setup.roles.keeper; _setFeeRecipient(setup.roles.feeRecipient);':
    'Neither of the two reads what the other writes.',
  'if (_toAssets(balance, found.total, supply, Math.Rounding.Ceil) <= liquid) return balance;':
    'Between the two lies less than a unit of USDC, and the next line answers for it.',
  'if (!ok || assets >= type(uint128).max) return (false, 0);':
    'Where a lie begins: of 2^128 values one is told apart, which no protocol could owe.',
  'if (!ok || balance >= type(uint128).max) return 0;':
    'Where a lie begins: of 2^128 values one is told apart, which no protocol could owe.',
  '(without) if (assets < position) return true;':
    'It saves a read: what is left of a position that was taken in part is not nothing.',
  'if (!ok && given <= CALL_GAS) revert NotEnoughGas();':
    'At exactly three million of gas a call is refused that would have failed alike.',
  '_fees = setup.fees; _checkCaps(setup.fees);': 'What is refused undoes what was written before.',
  'return Math.min(balance, _toShares(liquid, found.total, supply, Math.Rounding.Ceil));':
    'A unit of shares is worth a millionth of a unit of USDC: one more is paid the same.',
  'amount = balance <= lot.amount ? balance : lot.amount;': 'Where the two are equal, either is the amount.',
  'if (amount >= type(uint216).max) amount = type(uint216).max;':
    'Where a lie begins: the most that a lot can be is made the most.',
  'if (fee >= DUST) {': 'A fee of two units buys no shares, with or without an event that says so.',
  'if (found.complete) _markDue = false;': 'It writes what is there.',
  'if (balance == 0 || balance > type(uint128).max) return (false, 0);':
    'A balance that cannot be read is told as 0.',
};

/** @returns why nobody could tell; null: somebody could, and a test should */
export function whyHarmless(mutant: Mutant): string | null {
  return HARMLESS[writtenBy(mutant)] ?? null;
}
