/** The receipt of a payment on a chain, for a person who opened its address: the slip that the card's receipt is too. */
import type { ReceiptPage } from '../http/asked-form.ts';
import type { DiscoveryContext } from './context.ts';
import { asMarkup } from './page-frame.ts';
import type { Pages } from './pages.ts';
import { chainWords, dollars } from './shown-words.ts';

/** What became of a payment, in a sentence each. */
const STATUS = {
  settling: 'It is not known yet whether the chain took this payment. Look again in a minute.',
  delivered: 'Paid, and answered.',
  not_charged: 'Not charged: the call was not answered.',
  paid_not_delivered: 'Paid, and the answer is not there yet.',
  refund_owed: 'Paid and not answered: the refund is on its way.',
  refunded: 'Paid and not answered: the money was sent back.',
  lost: 'The chain did not take this payment.',
} as const;

/** Makes the page of each receipt. @param contextNow asked for each page */
export function receiptPageOf(pages: Pages, contextNow: () => DiscoveryContext): ReceiptPage {
  return (receipt) => {
    const { shop, services } = contextNow();
    const bought = services.find(({ path }) => path === receipt.service)?.name ?? receipt.service;
    const { refund } = receipt;
    const lines = [
      line('Bought', bought),
      line('Price', dollars(receipt.priceUsd)),
      line('Date', momentOf(receipt.settledAt ?? receipt.createdAt)),
      line('Paid by', receipt.protocol === 'mpp' ? 'wallet, MPP' : 'wallet, x402'),
      line('Chain', chainWords(receipt.network)),
      line('From', receipt.payer),
      line('To', `${shop.name}, ${receipt.payTo}`),
      line('Transaction', receipt.transaction ?? 'none'),
      line('Reference', receipt.id),
      ...(refund === null ? [] : [line(`Refund, ${refund.state}`, dollars(refund.amountUsd))]),
      ...(refund?.transaction == null ? [] : [line('Transaction of the refund', refund.transaction)]),
    ];
    const page = pages.made({
      path: null,
      title: 'Receipt',
      description: 'What became of a payment on a chain.',
      look: 'credits',
      asText: false,
      main: [
        '<h1>Receipt</h1>',
        `<p class="lead">${asMarkup(STATUS[receipt.status])}</p>`,
        `<section class="receipt" aria-label="Receipt"><dl>${lines.join('')}</dl></section>`,
        '<details><summary>For programs: the receipt as JSON</summary>',
        `<pre tabindex="0" aria-label="The receipt as JSON"><code>${asMarkup(JSON.stringify(receipt, null, 2))}</code></pre>`,
        '</details>',
      ].join('\n'),
    });
    return {
      headers: { ...pages.headers, 'content-type': page.contentType, 'x-content-type-options': 'nosniff' },
      body: page.body.toString(),
    };
  };
}

function line(name: string, value: string): string {
  return `<div><dt>${asMarkup(name)}</dt><dd>${asMarkup(value)}</dd></div>`;
}

/** "23 Nov 2026, 09:52 UTC", as the other pages write it. @param iso ISO 8601, UTC */
function momentOf(iso: string): string {
  const at = new Date(iso);
  const month = at.toLocaleString('en', { month: 'short', timeZone: 'UTC' });
  return `${at.getUTCDate()} ${month} ${at.getUTCFullYear()}, ${iso.slice(11, 16)} UTC`;
}
