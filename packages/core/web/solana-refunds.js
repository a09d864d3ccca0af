/** Fees that a wallet paid and that found no deposit, a page at a time. */
import { formatUsd } from './amount.js';
import { el, notice } from './dom.js';
import { whileBusy } from './post.js';
import { askSolana } from './yield-api.js';

/** The fees of a wallet, the newest first, with a button for older ones as long as there are any. */
export async function refundsOf(wallet) {
  const at = `fee-refunds/${encodeURIComponent(wallet)}`;
  const first = await askSolana(at);
  const list = el('div', {}, ...first.refunds.map(refundNotice));
  if (first.next === null) return [list];
  const trouble = el('div', { 'aria-live': 'polite' });
  const older = el('button', { type: 'button', class: 'secondary' }, 'Show older fees');
  const actions = el('div', { class: 'actions' }, older);
  let after = afterIn(first.next);

  async function showOlder() {
    trouble.replaceChildren();
    try {
      const { refunds, next } = await askSolana(`${at}?after=${encodeURIComponent(after)}`);
      list.append(...refunds.map(refundNotice));
      if (next === null) actions.remove();
      else after = afterIn(next);
    } catch (error) {
      trouble.replaceChildren(notice('bad', error.message));
    }
  }
  older.addEventListener('click', () => whileBusy(older, showOlder));
  const due = `In all ${formatUsd(first.dueUsdc)} of fees without a deposit is due back to this wallet.`;
  return [el('p', { class: 'soft' }, due), list, trouble, actions];
}

/** Where the next page begins. Its address is the server's public one, which a page may not have come from. */
function afterIn(next) {
  return new URL(next).searchParams.get('after');
}

function refundNotice({ amountUsdc, status, feeTxSignature, refundTxSignature }) {
  const fee = `A fee of ${formatUsd(amountUsdc)} was paid (${feeTxSignature})`;
  if (status === 'refunded')
    return notice('good', `${fee} without a deposit, and sent back: ${refundTxSignature}.`);
  if (status === 'refund_due')
    return notice('warn', `${fee} without a deposit. It is due back; the operator sends it.`);
  return notice(
    'plain',
    `${fee}, and its deposit has not been seen yet. If it does not come, the fee is due back.`,
  );
}
