import { act } from './admin-act.js';
import { withoutSecret } from './admin-keys.js';
import { ask } from './admin-session.js';
import { accountLink, code, figures, recordsTable, usd } from './admin-tables.js';
import { el } from './dom.js';
import { moment, momentWords } from './moments.js';

let query = '';

/**
 * Takes what is looked for from the box at the top of the page. Of a whole key only its beginning stays there.
 *
 * @param {HTMLInputElement} input
 * @returns {boolean} whether anything is looked for
 */
export function findIn(input) {
  input.value = withoutSecret(input.value);
  query = input.value.trim();
  return query !== '';
}

/** What was found for the words in the box at the top of the page. */
export async function findView() {
  const found = query === '' ? null : (await ask(`find?q=${encodeURIComponent(query)}`)).found;
  return el(
    'div',
    {},
    el('h1', { tabindex: '-1' }, 'Find'),
    el(
      'p',
      { class: 'soft' },
      'The box above finds what a customer has an id of: a transaction, a wallet, the id of a call, a request, a task, a webhook, an event or a device, the reference on a receipt, an id of the card provider, the beginning of a key, an e-mail address or an account.',
    ),
    found === null ? null : foundTable(found),
  );
}

function foundTable(found) {
  return recordsTable({
    caption: 'Newest first',
    rows: found,
    none: 'Nothing has this id.',
    columns: [
      { label: 'What', of: ({ kind }) => kind },
      { label: 'Id', of: linkOf },
      { label: 'About', of: ({ title }) => title },
      { label: 'Account', of: ({ accountId }) => (accountId === null ? null : accountLink(accountId)) },
      { label: 'When', of: ({ at }) => moment(at) },
    ],
  });
}

function linkOf({ kind, id, accountId }) {
  const href =
    kind === 'call'
      ? `#call-${id}${accountId === null ? '' : `-of-${accountId}`}`
      : kind === 'order' && accountId !== null
        ? `#account-${accountId}-order-${id}`
        : null;
  return href === null ? code(id) : el('a', { href }, code(id));
}

/**
 * The whole story of a call, and its refund.
 *
 * @param {string} callId
 * @param {string | undefined} accountId undefined: a chain paid
 * @param {{ did: (text: string | null) => void }} page
 */
export async function callView(callId, accountId, page) {
  const story = await ask(`calls/${callId}${accountId === undefined ? '' : `?account=${accountId}`}`);
  const { payment } = story;
  return el(
    'div',
    {},
    el('p', {}, el('a', { href: '#find' }, '← Find')),
    el('h1', { tabindex: '-1' }, `Call of ${story.service}`),
    el('p', {}, code(story.callId)),
    figures(
      ['price', usd(story.priceUsd), 'main'],
      ['paid by', story.rail],
      ['state', story.refunded ? 'refunded' : story.state, story.refunded ? 'warn' : null],
    ),
    story.accountId === null ? null : el('p', {}, 'Account ', accountLink(story.accountId)),
    payment === null
      ? null
      : el(
          'ul',
          {},
          ...Object.entries({
            Network: payment.network,
            Wallet: payment.payer,
            Transaction: payment.transaction,
          }).flatMap(([label, value]) => (value === null ? [] : [el('li', {}, `${label}: `, code(value))])),
        ),
    el(
      'p',
      { class: 'soft' },
      story.answerKeptUntil === null
        ? 'Its answer is not kept.'
        : `Whoever paid can fetch the answer again until ${momentWords(story.answerKeptUntil)}.`,
    ),
    story.state === 'captured' && !story.refunded ? refundButton(story, page) : null,
    recordsTable({
      caption: 'What happened',
      rows: story.events,
      none: 'Nothing.',
      columns: [
        { label: 'When', of: ({ at }) => moment(at) },
        { label: 'What', of: ({ what }) => what },
        { label: 'Details', of: ({ details }) => details },
      ],
    }),
  );
}

function refundButton(story, page) {
  const byChain = story.accountId === null;
  const refund = async () => {
    const answer = await act({
      title: byChain ? 'Send this payment back?' : 'Give this call’s price back?',
      text: byChain
        ? `The wallet that paid gets ${usd(story.priceUsd)} back on its chain, once.`
        : `The account gets ${usd(story.priceUsd)} back, once.`,
      confirm: byChain ? 'Send back' : 'Give back',
      danger: byChain,
      path: byChain ? `payments/${story.callId}/refund` : `accounts/${story.accountId}/refund-call`,
      ...(byChain ? {} : { body: { callId: story.callId } }),
    });
    page.did(answer === null ? null : outcomeOf(answer));
  };
  return el(
    'div',
    { class: 'actions' },
    el('button', { type: 'button', class: byChain ? 'danger' : 'secondary', onclick: refund }, 'Refund …'),
  );
}

/** What a refund has come to, in a sentence. */
export function outcomeOf({ act: done, proposal }) {
  if (proposal !== undefined)
    return `${usd(proposal.amountUsd)} wait for a second operator, who agrees on the overview.`;
  return done.act === 'refund_payment'
    ? `On its way back: ${usd(done.amountUsd)}.`
    : `Given back: ${usd(done.amountUsd)}.`;
}

/**
 * Refunds and grants that wait for a second operator.
 *
 * @param {object[]} proposals
 * @param {{ actor: string, did: (text: string | null) => void, tell: (tone: string, text: string) => void }} page
 */
export function proposalsTable(proposals, page) {
  const end = async (proposal, how) => {
    try {
      await ask(`proposals/${proposal.proposalId}/${how}`, { body: {} });
      page.did(how === 'approve' ? `${wordsOf(proposal).done} ${usd(proposal.amountUsd)}.` : 'Declined.');
    } catch (error) {
      page.tell('bad', error.message);
    }
  };
  const button = (proposal, how, label) =>
    el('button', { type: 'button', class: 'secondary small', onclick: () => void end(proposal, how) }, label);
  return recordsTable({
    caption: 'Refunds and grants that wait for a second operator',
    rows: proposals,
    none: 'None.',
    columns: [
      { label: 'When', of: ({ at }) => moment(at) },
      { label: 'Asked by', of: ({ actor }) => actor },
      {
        label: 'About',
        of: ({ orderId, callId, accountId }) => code(orderId ?? callId ?? `account ${accountId}`),
      },
      { label: 'Amount', number: true, of: ({ amountUsd }) => usd(amountUsd) },
      { label: 'Reason', of: ({ reason }) => reason },
      {
        label: 'Decide',
        of: (proposal) =>
          el(
            'span',
            { class: 'actions' },
            proposal.actor === page.actor
              ? 'another operator agrees'
              : button(proposal, 'approve', wordsOf(proposal).asked),
            button(proposal, 'decline', 'Decline'),
          ),
      },
    ],
  });
}

function wordsOf({ act: wanted }) {
  return wanted === 'grant' ? { asked: 'Grant', done: 'Granted' } : { asked: 'Refund', done: 'Refunded' };
}
