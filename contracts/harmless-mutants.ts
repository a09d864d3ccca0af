/** Bugs of `npm run contracts:mutate` that change nothing that anybody could tell, each with why. */
import { type Mutant, writtenBy } from './mutants.ts';

const HARMLESS: Readonly<Record<string, string>> = {
  'for (uint256 p = 0; p <= 3; p++) {':
    'No fourth protocol is ever held, and what is not held is passed over.',
  'keeper = setup.roles.keeper; _setFeeRecipient(setup.roles.feeRecipient);':
    'Neither of the two reads what the other writes.',
  'if (!ok || assets >= type(uint128).max) return (false, 0);':
    'Where a lie begins: of 2^128 values one is told apart, which no protocol could owe.',
  'if (!ok && given <= CALL_GAS) revert NotEnoughGas();':
    'One amount of gas more is refused, where the call failed with it. Whoever sends more sees no difference.',
  '_fees = setup.fees; _checkCaps(setup.fees);': 'What is refused undoes what was written before.',
  'amount = balance <= lot.amount ? balance : lot.amount;': 'Where the two are equal, either is the amount.',
  'if (amount >= type(uint216).max) amount = type(uint216).max;':
    'Where a lie begins: the most that a lot can be is made the most.',
  'if (found.complete) _markDue = false;': 'It writes what is there.',
  'if (balance == 0 || balance > type(uint128).max) return (false, 0);':
    'A balance that cannot be read is told as 0.',
  'if (!ok || balance == 0 || balance >= type(uint128).max) return (false, 0);':
    'Where a lie begins: of 2^128 values one is told apart, which no protocol could owe.',
  'if (assets > type(uint128).max) return (false, 0);':
    'What cannot be read is told as false and 0, which is what the function then ends with.',
  'if (configuration & AAVE_ACTIVE == 0 || configuration & AAVE_PAUSED != 0) return 0;':
    'A configuration that cannot be read is told as 0, in which the reserve is not active.',
  'if (paused != 0) return 0;':
    'Where the pause cannot be read, the last line of the function answers 0 for it.',
  'if (3 * uint256(limits.maxShareBps) <= BPS || limits.maxShareBps > BPS) revert LimitOutOfRange();':
    'Three times a whole number is never 10,000.',
  '_checkCaps(setup.fees); _active = setup.active;': 'What is refused undoes what was written before.',
  'for (uint8 part = 0; part <= 4; part++) {':
    'Three protocols and idle USDC set bits 0 to 3: a fifth is never refused.',
  '_movedAt = block.timestamp.toUint40(); _mustBeComplete(found);':
    'The check reads what was found before, and what is refused undoes what was written.',
  '_queuedFees = next; _checkCaps(next);': 'What is refused undoes what was written before.',
  'function renounceOwnership() public override {':
    'The function of Ownable that it ends with is onlyOwner: it refuses by the same name, and undoes all.',
  'if (price < _markPrice) return (0, 0);':
    'At the mark itself the gain is 0 and brings no shares, and the mark that is written is the same.',
  'if (price >= _markPrice) _markPrice = price.toUint128();': 'At the mark itself it writes what is there.',
  'for (uint256 n = 0; n < 4 && rest >= 0; n++) {':
    'Once nothing is left the amount for each further protocol is 0, and none of them is called.',
  '(without) delete _queuedFees;':
    'Without a time nothing queued is applied, nor told (but in the first week of 1970), and new fees overwrite it.',
};

/** @returns why nobody could tell; null: somebody could, and a test should */
export function whyHarmless(mutant: Mutant): string | null {
  return HARMLESS[writtenBy(mutant)] ?? null;
}
