import { actsTable } from './admin-act.js';
import { callerSection } from './admin-caller.js';
import { proposalsTable } from './admin-find.js';
import { gasSection, railsSection } from './admin-gas.js';
import { owedSection } from './admin-owed.js';
import { ask } from './admin-session.js';
import { accountLink, badge, code, figures, moment, orderLink, recordsTable, usd } from './admin-tables.js';
import { formatMicros, microsOf } from './amount.js';
import { el, notice } from './dom.js';
import { daysChart, daysFrom, servicesTable } from './spending-chart.js';

const DAYS = [7, 30, 90];
const RAILS = [
  { kind: 'credits', label: 'credits' },
  { kind: 'x402', label: 'x402' },
  { kind: 'mpp', label: 'MPP' },
];

let days = 30;

/**
 * Everything at a glance.
 *
 * @param {{ again: () => void, tell: (tone: string, text: string) => void, goOn: (act: object) => void }} page
 */
export async function overviewView(page) {
  const [overview, caller] = await Promise.all([ask(`overview?days=${days}`), ask('caller')]);
  return el(
    'div',
    {},
    head(overview, page),
    ...overview.notes.map((note) => notice('warn', note)),
    state(overview),
    salesSection(overview),
    moneySection(overview),
    unfinishedSection(overview, page),
    booksSection(overview.books, page),
    owedSection(overview.owed, overview.owedTotal),
    railsSection(overview.rails),
    gasSection(overview.gas),
    upstreamsSection(overview.upstreams),
    termsSection(overview.sourceTerms),
    callerSection(caller),
    dataListsSection(overview.dataLists),
  );
}

function head({ at }, { again }) {
  const choice = el(
    'select',
    {
      id: 'days',
      onchange: (event) => {
        days = Number(event.target.value);
        again();
      },
    },
    ...DAYS.map((each) => el('option', { value: each, selected: each === days }, `${each} days`)),
  );
  return el(
    'div',
    { class: 'view-head' },
    el('h2', { tabindex: '-1' }, 'Overview'),
    el('span', { class: 'soft' }, 'As of ', moment(at)),
    el('label', { for: 'days', class: 'hidden' }, 'Look back on'),
    choice,
    el('button', { type: 'button', class: 'secondary small', onclick: again }, 'Refresh'),
  );
}

/** What may need somebody, in a line. */
function state({ books, unfinished, openActs, proposals, upstreams, rails, gas }) {
  const down = upstreams.filter((each) => each.state === 'down').length;
  const count = (number) => [String(number), number > 0 ? 'bad' : null];
  const balanced =
    books.verdict === null ? 'not checked yet' : books.verdict.balanced ? 'in balance' : 'out of balance';
  return figures(
    ['books', balanced, books.verdict?.balanced === false ? 'bad' : null],
    ['settlements unknown', ...(unfinished === null ? ['—'] : count(unfinished.settlements.count))],
    ['card orders overdue', ...(unfinished === null ? ['—'] : count(unfinished.cardOrders.count))],
    ['card messages waiting', unfinished === null ? '—' : String(unfinished.inbox.waiting)],
    ['disputes to answer', ...(unfinished === null ? ['—'] : count(unfinished.disputes.toAnswer))],
    ['actions unfinished', ...count(openActs.length)],
    ['refunds and grants to agree to', ...count(proposals.length)],
    ['sources down', ...count(down)],
    ['chains that fail', ...count(rails.filter(({ reason }) => reason !== null).length)],
    ['keys without gas', ...count(gas.filter(({ isAble }) => !isAble).length)],
  );
}

function salesSection({ sales, since, at }) {
  if (sales === null) return section('Sales', el('p', { class: 'soft' }, 'Not known: see above.'));
  const all = daysFrom(Date.parse(since), Date.parse(at));
  const lines = (of) => of.map((line) => ({ ...line, kind: line.rail, micros: microsOf(line.capturedUsd) }));
  const byService = lines(sales.byService).filter(({ calls }) => calls > 0);
  return section(
    'Sales',
    figures(
      ['sold', usd(sales.capturedUsd), 'main'],
      ['calls', sales.calls.toLocaleString('en')],
      ['released, not charged', usd(sales.releasedUsd)],
      ['calls released', sales.released.toLocaleString('en')],
    ),
    daysChart(lines(sales.byDay), { verb: 'Sold', kinds: RAILS, days: all }),
    el('details', {}, el('summary', {}, 'The days as a table'), salesByDay(sales.byDay)),
    byService.length === 0
      ? el('p', { class: 'soft' }, 'Nothing was sold in these days.')
      : servicesTable(byService, { verb: 'Sold', kinds: RAILS }),
  );
}

function salesByDay(byDay) {
  const dayRows = [...Map.groupBy(byDay, ({ day }) => day)].reverse();
  const of = (lines, rail) => lines.find((line) => line.rail === rail)?.capturedUsd ?? '0';
  return recordsTable({
    caption: 'Sold by day (UTC) and rail',
    none: 'Nothing was sold.',
    rows: dayRows,
    columns: [
      { label: 'Day', of: ([day]) => day },
      ...RAILS.map(({ kind, label }) => ({ label, number: true, of: ([, lines]) => usd(of(lines, kind)) })),
      {
        label: 'All',
        number: true,
        of: ([, lines]) =>
          formatMicros(lines.reduce((sum, { capturedUsd }) => sum + microsOf(capturedUsd), 0n)),
      },
      {
        label: 'Calls',
        number: true,
        of: ([, lines]) => String(lines.reduce((sum, { calls }) => sum + calls, 0)),
      },
    ],
  });
}

function moneySection({ money, sales, days: shown }) {
  if (money === null) return section('Money', el('p', { class: 'soft' }, 'Not known: see above.'));
  const { reserved, refunded, owed, granted, cards, trials } = money;
  const moves = `in ${shown === 1 ? 'this day' : `these ${shown} days`}`;
  return section(
    'Money',
    el('h3', {}, 'Now'),
    figures(
      ['reserved from credits', usd(reserved.creditsUsd)],
      ['with a chain', usd(reserved.onChainUsd)],
      [
        `owed by ${owed.customers} ${owed.customers === 1 ? 'customer' : 'customers'}`,
        usd(owed.byCustomersUsd),
      ],
      [
        `owed on chains, ${owed.onChainRefunds} ${owed.onChainRefunds === 1 ? 'refund' : 'refunds'}`,
        usd(owed.onChainUsd),
        owed.onChainRefunds > 0 ? 'bad' : null,
      ],
    ),
    el('h3', {}, 'Trials today (UTC)'),
    figures(
      ['given', `${trials.today}, ${usd(trials.todayUsd)}`],
      ['may be given', trials.budgetUsd === null ? 'any' : usd(trials.budgetUsd)],
      ['most of one IPv6 site in seven days', String(trials.mostOfOneSite)],
    ),
    el('h3', {}, `Moved ${moves}`),
    figures(
      ['refunded on chains', usd(refunded.onChainUsd)],
      ['calls given back', usd(refunded.callsUsd)],
      ['granted by operators', usd(granted.byOperatorsUsd)],
      ['given in trials', usd(granted.inTrialsUsd)],
      ['credit sold on chains', usd(sales?.creditSoldOnChainsUsd ?? null)],
      ['paid by card', usd(cards.paidUsd)],
      ['of it gone back or disputed', usd(cards.reversedUsd)],
    ),
    recordsTable({
      caption: 'Disputes, of all times',
      rows: cards.disputes,
      none: 'None.',
      columns: [
        { label: 'State', of: ({ status }) => status.replaceAll('_', ' ') },
        { label: 'Orders', number: true, of: ({ orders }) => String(orders) },
        { label: 'Taken by the bank', number: true, of: ({ reversedUsd }) => usd(reversedUsd) },
      ],
    }),
  );
}

function unfinishedSection({ unfinished, openActs, proposals }, page) {
  const { goOn } = page;
  if (unfinished === null) return section('Unfinished', el('p', { class: 'soft' }, 'Not known: see above.'));
  const { settlements, cardOrders, inbox } = unfinished;
  const of = (shown, count) => (count > shown.length ? `, the oldest ${shown.length} of ${count}` : '');
  return section(
    'Unfinished',
    proposals.length === 0 ? null : proposalsTable(proposals, page),
    openActs.length === 0 ? null : actsTable('Actions whose end is not known', openActs, goOn),
    disputesTable(unfinished.disputes),
    recordsTable({
      caption: `Settlements of unknown outcome for more than a minute${of(settlements.oldest, settlements.count)}`,
      rows: settlements.oldest,
      none: 'None.',
      columns: [
        { label: 'Call', of: ({ callId }) => code(callId) },
        { label: 'Since', of: ({ createdAt }) => moment(createdAt) },
        { label: 'Service', of: ({ service }) => service },
        { label: 'Price', number: true, of: ({ priceUsd }) => usd(priceUsd) },
        { label: 'Network', of: ({ network }) => code(network) },
        { label: 'Payer', of: ({ payer }) => code(payer) },
        { label: 'State', of: (row) => [row.state.replace('_', ' '), row.reason].filter(Boolean).join(': ') },
        { label: 'Tried', number: true, of: ({ attempts }) => String(attempts) },
        { label: 'Dead after', of: ({ deadAfter }) => moment(deadAfter) },
      ],
    }),
    recordsTable({
      caption: `Card orders open for longer than expected${of(cardOrders.oldest, cardOrders.count)}`,
      rows: cardOrders.oldest,
      none: 'None.',
      columns: [
        { label: 'Order', of: ({ orderId }) => code(orderId) },
        { label: 'Kind', of: ({ kind }) => kind },
        { label: 'Account', of: ({ accountId }) => accountLink(accountId) },
        { label: 'Amount', number: true, of: ({ amountUsd }) => usd(amountUsd) },
        { label: 'Since', of: ({ createdAt }) => moment(createdAt) },
        { label: 'Looked at', of: ({ lookedAt, looks }) => el('span', {}, moment(lookedAt), ` (${looks}×)`) },
      ],
    }),
    el(
      'p',
      { class: 'soft' },
      inbox.waiting === 0
        ? 'No message of the card provider is waiting.'
        : el(
            'span',
            {},
            `${inbox.waiting} messages of the card provider are waiting, the oldest since `,
            moment(inbox.oldestAt),
            `; at most ${inbox.mostAttempts} attempts were made at one.`,
          ),
    ),
  );
}

/** Disputes that are not over, the next due first; each leads to its account, and there to its order. */
function disputesTable({ count, nextDue }) {
  return recordsTable({
    caption: `Open disputes${count > nextDue.length ? `, the next ${nextDue.length} of ${count}` : ''}`,
    rows: nextDue,
    none: 'None.',
    columns: [
      { label: 'Order', of: ({ orderId, accountId }) => orderLink(orderId, accountId) },
      { label: 'Account', of: ({ accountId }) => accountLink(accountId) },
      { label: 'State', of: ({ status }) => status.replaceAll('_', ' ') },
      { label: 'Evidence due', of: ({ evidenceDueAt }) => moment(evidenceDueAt) },
      { label: 'Paid', number: true, of: ({ amountUsd }) => usd(amountUsd) },
      { label: 'Taken by the bank', number: true, of: ({ reversedUsd }) => usd(reversedUsd) },
      { label: 'Payment', of: ({ paymentIntentId }) => code(paymentIntentId) },
    ],
  });
}

function booksSection({ verdict, provingSince }, { again, tell }) {
  const prove = el('button', { type: 'button', class: 'secondary small' }, 'Check now');
  prove.disabled = provingSince !== null;
  prove.addEventListener('click', async () => {
    prove.disabled = true;
    tell('plain', 'The books are being checked …');
    try {
      const { verdict: proved, provingSince: still } = await ask('books', {});
      if (still !== null) tell('plain', 'They are still being checked. Refresh in a while.');
      else if (proved.balanced) tell('good', 'The books balance.');
      else tell('bad', 'The books do not balance.');
    } catch (error) {
      tell('bad', error.message);
    }
    again();
  });
  const title = el('div', { class: 'view-head' }, el('h2', {}, 'Books'), prove);
  if (verdict === null)
    return el('section', {}, title, el('p', { class: 'soft' }, 'They have not been checked yet.'));
  const failed = verdict.checks.filter(({ ok }) => !ok);
  return el(
    'section',
    {},
    title,
    el(
      'div',
      { class: `notice ${verdict.balanced ? 'good' : 'bad'}` },
      el('strong', {}, verdict.balanced ? 'The books balance.' : 'The books do not balance.'),
      ' Checked ',
      moment(verdict.endedAt),
      `, over ${verdict.transfers.toLocaleString('en')} transfers. The chains themselves are asked by npm run books.`,
      ...failed.map(({ name, finding }) => el('p', {}, `${name}: ${finding}`)),
    ),
    recordsTable({
      caption: 'Accounts of the house, as of then',
      rows: [...verdict.house, { account: 'owed to customers', netUsd: verdict.customersUsd }],
      none: 'Nothing has moved yet.',
      columns: [
        { label: 'Account', of: ({ account }) => account.replaceAll('_', ' ') },
        {
          label: 'Debit',
          number: true,
          of: ({ netUsd }) => (netUsd.startsWith('-') ? usd(netUsd.slice(1)) : null),
        },
        { label: 'Credit', number: true, of: ({ netUsd }) => (netUsd.startsWith('-') ? null : usd(netUsd)) },
      ],
    }),
    el(
      'details',
      {},
      el('summary', {}, `The ${verdict.checks.length} rules that were checked`),
      el(
        'ul',
        {},
        ...verdict.checks.map(({ name, ok }) =>
          el(
            'li',
            {},
            el('span', { class: `badge ${ok ? 'good' : 'bad'}` }, ok ? 'holds' : 'broken'),
            ` ${name}`,
          ),
        ),
      ),
    ),
  );
}

function upstreamsSection(upstreams) {
  const configured = upstreams.filter((each) => each.state !== 'not_configured');
  const others = upstreams.filter((each) => each.state === 'not_configured').map(({ name }) => name);
  return section(
    'Sources',
    recordsTable({
      caption: 'As this process last saw them',
      rows: configured,
      none: 'No source is configured.',
      columns: [
        { label: 'Source', of: ({ name }) => name },
        { label: 'State', of: (each) => badge(each.state) },
        { label: 'Answered', of: ({ lastSuccessAt }) => moment(lastSuccessAt) },
        { label: 'Failed', of: ({ lastFailureAt }) => moment(lastFailureAt) },
        { label: 'Why', of: ({ reason }) => reason },
      ],
    }),
    others.length === 0 ? null : el('p', { class: 'soft' }, `Not configured: ${others.join(', ')}.`),
  );
}

const COMMERCIAL_USE = {
  allowed: 'allowed',
  agreement: 'by agreement only',
  unknown: 'unknown: ask the provider',
  own: 'your own choice of source',
};

/** What may be sold of each source: those that want an agreement, and behind a fold the others. */
function termsSection(sources) {
  const [free, wanting] = [true, false].map((none) =>
    sources.filter(({ isAgreedTo }) => (isAgreedTo === null) === none),
  );
  const source = {
    label: 'Source',
    of: ({ title, url }) => (url === null ? title : el('a', { href: url, rel: 'noreferrer' }, title)),
  };
  const use = {
    label: 'Commercial use',
    of: ({ commercialUse, note }) => [COMMERCIAL_USE[commercialUse], note].filter(Boolean).join('. '),
  };
  const credit = { label: 'Credit to show', of: ({ attribution }) => attribution };
  const agreement = {
    label: 'Terms',
    of: ({ isAgreedTo }) =>
      el(
        'span',
        { class: `badge ${isAgreedTo ? 'good' : 'warn'}` },
        isAgreedTo ? 'accepted' : 'not accepted',
      ),
  };
  return section(
    'Terms of the sources',
    el(
      'p',
      { class: 'soft' },
      'A source that wants an agreement is not used until you name it in ',
      el('code', {}, 'SOURCE_TERMS_ACCEPTED'),
      '. What cannot do without it is not sold.',
    ),
    recordsTable({
      caption: 'Sources that want an agreement, as far as we have read',
      rows: wanting,
      none: 'None.',
      columns: [source, { label: 'Name', of: ({ name }) => name }, agreement, use, credit],
    }),
    el(
      'details',
      {},
      el('summary', {}, `The ${free.length} others`),
      recordsTable({
        caption: 'Sources that want no agreement',
        rows: free,
        none: 'None.',
        columns: [source, use, credit, { label: 'Licence', of: ({ licence }) => licence }],
      }),
    ),
  );
}

function dataListsSection(lists) {
  return section(
    'Lists',
    recordsTable({
      caption: 'What services look names and addresses up in',
      rows: lists,
      none: 'No list is configured.',
      columns: [
        { label: 'List', of: ({ title }) => title },
        { label: 'State', of: (each) => badge(each.state) },
        { label: 'Published', of: ({ publishedAt }) => moment(publishedAt) },
        { label: 'Confirmed', of: ({ confirmedAt }) => moment(confirmedAt) },
        { label: 'Entries', of: ({ parties }) => parties },
        { label: 'Why', of: ({ failure }) => failure },
      ],
    }),
  );
}

function section(title, ...children) {
  return el('section', {}, el('h2', {}, title), ...children);
}
