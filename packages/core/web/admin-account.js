import { act, actsTable } from './admin-act.js';
import { outcomeOf } from './admin-find.js';
import { ask } from './admin-session.js';
import { badge, code, copiedId, figures, recordsTable, usd } from './admin-tables.js';
import { formatMicros, microsOf } from './amount.js';
import { cardWords } from './card-words.js';
import { el } from './dom.js';
import { moment } from './moments.js';

/**
 * All of an account, and what can be done to it.
 *
 * @param {string} accountId
 * @param {{ cards: boolean, goOn: (act: object) => void, did: (text: string) => void }} page `did` is told what was
 *   done, and nothing when it was called off
 */
export async function accountView(accountId, page) {
  const account = await ask(`accounts/${encodeURIComponent(accountId)}`);
  const doing = async (wanted, done) => {
    const answer = await act({ ...wanted, path: `accounts/${account.accountId}/${wanted.path}` });
    page.did(answer === null ? null : answer.proposal === undefined ? done(answer.act) : outcomeOf(answer));
  };
  return el(
    'div',
    {},
    el('p', {}, el('a', { href: '#keys' }, '← Keys')),
    el('h1', { tabindex: '-1' }, `Account ${account.accountId}`),
    figures(
      ['available', usd(account.availableUsd), 'main'],
      ['reserved', usd(account.reservedUsd)],
      ['spent on calls', usd(account.spentUsd)],
      ['owed', usd(account.owedUsd), microsOf(account.owedUsd) > 0n ? 'bad' : null],
      ...(microsOf(account.shares.dueUsd) === 0n
        ? []
        : [['shares due', [usd(account.shares.dueUsd), ...account.shares.heldFor].join(', '), null]]),
    ),
    ...account.freezes.map(freezeNotice),
    actions(account, doing),
    keysTable(account.keys),
    ordersTable(
      account.cardOrders,
      page.cards ? (order) => refundOrder(order, doing) : null,
      page.cards ? (order) => mailKey(order, doing) : null,
    ),
    actsTable('Actions of operators', account.acts, page.goOn),
    callsTable(account.calls, (call) => refundCall(call, doing)),
    daysTable(account.days),
    transfersTable(account.transfers),
  );
}

function freezeNotice({ cause, note, since }) {
  return el(
    'div',
    { class: 'notice warn' },
    el('strong', {}, cause === 'debt' ? 'Frozen until what it owes is paid' : 'Frozen by an operator'),
    ' since ',
    moment(since),
    note === null ? '.' : `. ${note}`,
  );
}

function actions({ freezes }, doing) {
  const button = (label, kind, onclick) => el('button', { type: 'button', class: kind, onclick }, label);
  const frozen = freezes.some(({ cause }) => cause === 'operator');
  return el(
    'div',
    { class: 'actions' },
    button('Grant credit …', 'secondary', () =>
      doing(
        {
          title: 'Grant credit?',
          text: 'What the account owes is paid from it first. A large sum waits for a second operator where there are several.',
          confirm: 'Grant',
          path: 'grant',
          amount: { label: 'Amount, USD', hint: 'At most 10,000.', value: '' },
        },
        ({ amountUsd }) => `Granted ${usd(amountUsd)}.`,
      ),
    ),
    button('Lift bounds …', 'secondary', () =>
      doing(
        {
          title: 'Lift the bounds of this buyer?',
          text: 'Accounts whose keys were bought with one another’s credit share bounds, such as five webhooks. For somebody who sells keys on, each account is counted by itself from then on.',
          confirm: 'Lift',
          path: 'lift-bounds',
        },
        () => 'Its bounds are lifted.',
      ),
    ),
    frozen
      ? button('Unfreeze …', 'secondary at-the-end', () =>
          doing(
            {
              title: 'Unfreeze this account?',
              text: 'Its keys can spend again, unless it owes something.',
              confirm: 'Unfreeze',
              path: 'unfreeze',
            },
            () => 'Unfrozen.',
          ),
        )
      : button('Freeze …', 'danger at-the-end', () =>
          doing(
            {
              title: 'Freeze this account?',
              text: 'All its keys stop paying at once. Calls that are running end. It can be undone.',
              confirm: 'Freeze',
              danger: true,
              path: 'freeze',
            },
            () => 'Frozen.',
          ),
        ),
  );
}

function refundOrder(order, doing) {
  const left = formatMicros(microsOf(order.amountUsd) - microsOf(order.reversedUsd));
  return doing(
    {
      title: 'Send this payment back?',
      text: `The card gets its money back, and the account loses as much credit. ${left} of ${usd(order.amountUsd)} can go back.`,
      confirm: 'Send back',
      danger: true,
      path: 'refund-order',
      body: { orderId: order.orderId },
      amount: { label: 'Amount, USD', hint: 'Empty: all that is left.', value: '', optional: true },
    },
    ({ amountUsd }) => `On its way back: ${usd(amountUsd)}.`,
  );
}

function mailKey(order, doing) {
  return doing(
    {
      title: 'Mail a link to a new key?',
      text: 'Whoever paid gets a link to the address of the payment. It works once, for 24 hours, and ends every other key of the account.',
      confirm: 'Send the link',
      path: 'mail-key',
      body: { orderId: order.orderId },
    },
    () => 'The link is on its way.',
  );
}

function refundCall(call, doing) {
  return doing(
    {
      title: 'Give this call’s price back?',
      text: `The account gets ${usd(call.priceUsd)} for its call of ${call.service}, once.`,
      confirm: 'Give back',
      path: 'refund-call',
      body: { callId: call.callId },
    },
    ({ amountUsd }) => `Given back: ${usd(amountUsd)}.`,
  );
}

function keysTable(keys) {
  return recordsTable({
    caption: 'Keys',
    rows: keys,
    none: 'It has no key.',
    columns: [
      { label: 'Key', of: ({ keyPrefix }) => code(`${keyPrefix}…`) },
      { label: 'Label', of: ({ label }) => label },
      { label: 'Kind', of: ({ kind }) => kind },
      { label: 'Status', of: ({ status }) => badge(status) },
      { label: 'Cap a call', number: true, of: ({ caps }) => usd(caps.perCallUsd) },
      { label: 'Cap a day', number: true, of: ({ caps }) => usd(caps.perDayUsd) },
      { label: 'Made', of: ({ createdAt }) => moment(createdAt) },
      { label: 'Expires', of: ({ expiresAt }) => moment(expiresAt) },
    ],
  });
}

function ordersTable(orders, refund, mail) {
  const hasRest = (order) =>
    order.state === 'paid' && microsOf(order.amountUsd) > microsOf(order.reversedUsd);
  return recordsTable({
    caption: 'Card orders',
    rows: orders,
    none: 'None.',
    columns: [
      {
        label: 'Order',
        of: ({ orderId }) => el('code', { id: `order-${orderId}`, tabindex: '-1' }, orderId),
      },
      { label: 'Made', of: ({ createdAt }) => moment(createdAt) },
      { label: 'Kind', of: ({ kind }) => kind },
      {
        label: 'State',
        of: (order) =>
          el(
            'span',
            {},
            badge(order.state),
            ...[order.declineCode ?? order.failure, order.dispute && `dispute: ${order.dispute}`]
              .filter(Boolean)
              .map((each) => ` ${each.replaceAll('_', ' ')}`),
            order.evidenceDueAt && el('span', {}, ', evidence due ', moment(order.evidenceDueAt)),
          ),
      },
      { label: 'Paid', number: true, of: ({ amountUsd }) => usd(amountUsd) },
      { label: 'Went back', number: true, of: ({ reversedUsd }) => usd(reversedUsd) },
      { label: 'E-mail', of: ({ email }) => code(email) },
      { label: 'Card', of: ({ card }) => (card === null ? null : cardWords(card)) },
      { label: 'Payment', of: ({ paymentIntentId }) => code(paymentIntentId) },
      {
        label: 'Action',
        of: (order) =>
          hasRest(order)
            ? el(
                'span',
                { class: 'actions' },
                refund !== null && refundButton(`order ${order.orderId}`, () => refund(order)),
                mail !== null &&
                  order.kind !== 'recharge' &&
                  smallButton('New key …', `Mail a new key for order ${order.orderId}`, () => mail(order)),
              )
            : null,
      },
    ],
  });
}

function callsTable(calls, refund) {
  return recordsTable({
    caption: 'Last calls',
    rows: calls,
    none: 'None.',
    columns: [
      { label: 'When', of: ({ createdAt }) => moment(createdAt) },
      { label: 'Service', of: ({ service }) => service },
      { label: 'Price', number: true, of: ({ priceUsd }) => usd(priceUsd) },
      {
        label: 'State',
        of: ({ state, outcome }) =>
          el('span', {}, badge(state), state === 'captured' || outcome === null ? null : ` ${outcome}`),
      },
      { label: 'Key', of: ({ keyPrefix }) => code(keyPrefix) },
      {
        label: 'Refund',
        of: (call) =>
          call.refunded
            ? 'given back'
            : call.state === 'captured'
              ? refundButton(`call ${call.callId}`, () => refund(call))
              : null,
      },
      { label: 'Call', of: ({ callId }) => copiedId(callId) },
    ],
  });
}

function daysTable(days) {
  return recordsTable({
    caption: 'Bought by day',
    rows: days,
    none: 'Nothing that was counted.',
    columns: [
      { label: 'Day (UTC)', of: ({ day }) => day },
      { label: 'Service', of: ({ service }) => service },
      { label: 'Rail', of: ({ rail }) => rail },
      { label: 'Calls', number: true, of: ({ calls }) => String(calls) },
      { label: 'Paid', number: true, of: ({ paidUsd }) => usd(paidUsd) },
      { label: 'Released', number: true, of: ({ released }) => String(released) },
      { label: 'Refunded', number: true, of: ({ refunded }) => String(refunded) },
      { label: 'Given back', number: true, of: ({ refundedUsd }) => usd(refundedUsd) },
    ],
  });
}

function refundButton(what, onclick) {
  return smallButton('Refund …', `Refund ${what}`, onclick);
}

function smallButton(text, label, onclick) {
  return el('button', { type: 'button', class: 'secondary small', 'aria-label': label, onclick }, text);
}

const MOVED = ['posted', 'post'];

/** What moved money; what is pending or void stands beside it only when it is asked for. */
function transfersTable(transfers) {
  const moved = transfers.filter(({ phase }) => MOVED.includes(phase));
  const table = (rows) =>
    recordsTable({
      caption: 'Last transfers',
      rows,
      none: 'None.',
      columns: [
        { label: 'When', of: ({ at }) => moment(at) },
        {
          label: 'What',
          of: (row) => `${row.code.replaceAll('_', ' ')}${row.phase === 'posted' ? '' : `, ${row.phase}`}`,
        },
        { label: 'Amount', number: true, of: ({ amountUsd }) => usd(amountUsd) },
        { label: 'With', of: (row) => row.with.replaceAll('_', ' ') },
        { label: 'Note', of: ({ note }) => note },
      ],
    });
  const shown = table(moved);
  const others = transfers.length - moved.length;
  if (others === 0) return shown;
  const all = el(
    'button',
    {
      type: 'button',
      class: 'secondary small',
      onclick: () => {
        shown.replaceWith(table(transfers));
        all.remove();
      },
    },
    `Show ${others} pending or void`,
  );
  return el('div', {}, shown, all);
}
