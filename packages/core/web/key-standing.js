/** What stands between a key and its credit, in words. */
import { formatUsd, microsOf } from './amount.js';
import { el, notice } from './dom.js';
import { dayWords } from './moments.js';

/**
 * @param {object} key GET /api/keys/me
 * @returns {HTMLElement[]} a notice for each thing that its owner should know
 */
export function standingNotices(key) {
  const notices = [];
  if (isSome(key.owedUsd)) {
    notices.push(
      explained(
        'bad',
        `This key owes ${formatUsd(key.owedUsd)}.`,
        'A payment was refunded or disputed after its credit had been spent. The key is frozen and buys nothing. Credit that comes in pays this first; what is left can be spent.',
      ),
    );
  }
  if (isSome(key.frozenUsd)) {
    notices.push(
      explained(
        'warn',
        `A payment of ${formatUsd(key.frozenUsd)} is disputed.`,
        'Its credit is taken out of the balance. It comes back if the dispute is decided for this server.',
      ),
    );
  }
  if (key.frozenFor?.includes('operator')) {
    notices.push(
      explained(
        'bad',
        'The operator has frozen this key.',
        'It buys nothing until the operator releases it. What it holds stays on the books.',
      ),
    );
  }
  const { fixedUntil } = key.caps;
  if (fixedUntil !== null && fixedUntil !== undefined) {
    notices.push(
      explained(
        'plain',
        `The cap of a day can be raised from ${dayWords(fixedUntil)}.`,
        'A card that is new here pays for little at first. Lowering the cap is possible at any time.',
      ),
    );
  }
  return notices;
}

function explained(tone, heading, text) {
  return notice(tone, el('strong', {}, heading), el('p', {}, text));
}

function isSome(usd) {
  return usd !== undefined && microsOf(usd) > 0n;
}
