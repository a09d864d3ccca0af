import { actsTable } from './admin-act.js';
import { callerSection } from './admin-caller.js';
import { proposalsTable } from './admin-find.js';
import { gasSection, railsSection } from './admin-gas.js';
import { lawPagesSection, lawPagesWords } from './admin-law-pages.js';
import { owedSection } from './admin-owed.js';
import { ask } from './admin-session.js';
import { accountLink, badge, code, figures, orderLink, recordsTable, usd } from './admin-tables.js';
import { formatMicros, microsOf } from './amount.js';
import { el, notice } from './dom.js';
import { ago, moment } from './moments.js';
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
    { class: 'overview' },
    head(overview, page),
    ...overview.notes.map((note) => notice('warn', note)),
    needsYou(overview),
    todaySection(overview),
    unfinishedSection(overview, page),
    overview.owed === null ? null : owedSection(overview.owed, overview.owedTotal),
    salesSection(overview),
    moneySection(overview),
    el(
      'section',
      { class: 'system' },
      el('h2', {}, 'System'),
      overview.books === null ? unknownLine('Books') : booksSection(overview.books, page),
      overview.upstreams === null ? unknownLine('Sources') : upstreamsSection(overview.upstreams),
      overview.gas === null
        ? unknownLine('Gas')
        : line('Gas', gasLine(overview.gas), gasSection(overview.gas)),
      overview.rails === null
        ? unknownLine('Chains')
        : line('Chains', chainsLine(overview.rails), railsSection(overview.rails)),
      overview.dataLists === null ? unknownLine('Lists') : dataListsSection(overview.dataLists),
      overview.lawPages === null
        ? unknownLine('Official pages of laws')
        : line(
            'Official pages of laws',
            lawPagesWords(overview.lawPages),
            lawPagesSection(overview.lawPages),
          ),
      overview.sourceTerms === null
        ? unknownLine('Terms of the sources')
        : termsSection(overview.sourceTerms),
      line('Your address', caller.address, callerSection(caller)),
    ),
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
    el('h1', { tabindex: '-1' }, 'Overview'),
    el('span', { class: 'soft' }, moment(at)),
    el('label', { for: 'days', class: 'hidden' }, 'Look back on'),
    choice,
    el('button', { type: 'button', class: 'secondary small', onclick: again }, 'Refresh'),
  );
}

/**
 * What needs somebody, what costs money first; one green line when nothing does. A section that is not known needs somebody
 * too: nothing is green then.
 */
function needsYou({ books, unfinished, openActs, proposals, upstreams, rails, gas, owedTotal, notes }) {
  const needs = [
    unfinished === null
      ? []
      : [
          need('bad', unfinished.disputes.toAnswer, 'dispute to answer', 'disputes to answer'),
          need('bad', owedTotal ?? 0, 'payment to be sent back by hand', 'payments to be sent back by hand'),
          need('bad', unfinished.settlements.count, 'settlement unknown', 'settlements unknown'),
          need('bad', unfinished.cardOrders.count, 'card order overdue', 'card orders overdue'),
        ],
    books?.verdict?.balanced === false ? [['bad', 'The books do not balance.']] : [],
    [
      need('warn', proposals?.length ?? 0, 'refund or grant to agree to', 'refunds and grants to agree to'),
      need('bad', openActs?.length ?? 0, 'action whose end is not known', 'actions whose end is not known'),
      need('bad', unableOf(gas ?? []), 'key without gas', 'keys without gas'),
      need('bad', failingOf(rails ?? []), 'chain that fails', 'chains that fail'),
      need('warn', unfinished?.inbox.waiting ?? 0, 'card message waiting', 'card messages waiting'),
      need('warn', downOf(upstreams ?? []), 'source down', 'sources down'),
      need('warn', notes.length, 'section not known: see above', 'sections not known: see above'),
    ],
  ].flat(1);
  const shown = needs.filter((each) => each !== null);
  const checked = checkedWords(books?.verdict ?? null);
  return el(
    'section',
    { class: 'needs' },
    el('h2', {}, 'Needs you'),
    shown.length === 0
      ? el('p', { class: 'notice good' }, 'Nothing needs doing. ', ...checked)
      : el(
          'ul',
          { class: 'plain-list' },
          ...shown.map(([tone, text]) => el('li', { class: tone }, text)),
          el('li', { class: 'soft' }, ...checked),
        ),
  );
}

function need(tone, count, one, many) {
  return count > 0 ? [tone, `${count} ${count === 1 ? one : many}`] : null;
}

const unableOf = (gas) => gas.filter(({ isAble }) => !isAble).length;
const failingOf = (rails) => rails.filter(({ reason }) => reason !== null).length;
const downOf = (upstreams) => upstreams.filter(({ state }) => state === 'down').length;

/** Whether the books balanced, and when that was seen. */
function checkedWords(verdict) {
  if (verdict === null) return ['The books have not been checked yet.'];
  return [verdict.balanced ? 'Books in balance, checked ' : 'Books checked ', ago(verdict.endedAt), '.'];
}

/** The figures of the day, in one row. */
function todaySection({ sales, money, at }) {
  if (sales === null) return null;
  const today = new Date(at).toISOString().slice(0, 10);
  const lines = sales.byDay.filter(({ day }) => day === today);
  const sum = (of) => lines.reduce((total, each) => total + of(each), 0);
  const [calls, released] = [sum((each) => each.calls), sum((each) => each.released)];
  const sold = lines.reduce((total, { capturedUsd }) => total + microsOf(capturedUsd), 0n);
  return section(
    'Today',
    figures(
      ['sold', formatMicros(sold), 'main'],
      ['calls', calls.toLocaleString('en')],
      ['not charged', released.toLocaleString('en')],
      ...(money === null
        ? []
        : [
            ['trials', `${money.trials.today}, ${usd(money.trials.todayUsd)}`],
            ...(money.trials.budgetUsd === null ? [] : [['trials may give', usd(money.trials.budgetUsd)]]),
          ]),
    ),
  );
}

/** A line of the system that opens. */
function line(title, state, ...children) {
  return el(
    'details',
    { class: 'line' },
    el('summary', {}, el('h3', {}, title), ' ', el('span', { class: 'soft' }, state)),
    ...children,
  );
}

function gasLine(gas) {
  const unable = unableOf(gas);
  if (gas.length === 0) return 'no key pays for transactions';
  return unable === 0 ? `${gas.length} of ${gas.length} able` : `${unable} of ${gas.length} unable`;
}

function chainsLine(rails) {
  const failing = failingOf(rails);
  if (rails.length === 0) return 'none takes payments';
  return failing === 0 ? `${rails.length} take payments` : `${failing} of ${rails.length} fail`;
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
  const moves = shown === 1 ? 'Moved in this day' : `Moved in these ${shown} days`;
  return section(
    'Money',
    el(
      'div',
      { class: 'statements' },
      statement(moves, [
        ['sold for answers', sales?.capturedUsd ?? null],
        ['credit sold on chains', sales?.creditSoldOnChainsUsd ?? null],
        ['paid by card', cards.paidUsd],
        ['of it gone back or disputed', cards.reversedUsd],
        ['granted by operators', granted.byOperatorsUsd],
        ['given in trials', granted.inTrialsUsd],
        ['calls given back', refunded.callsUsd],
        ['refunded on chains', refunded.onChainUsd],
      ]),
      statement('Now', [
        ['reserved from credits', reserved.creditsUsd],
        ['with a chain', reserved.onChainUsd],
        [`owed by ${owed.customers} ${owed.customers === 1 ? 'customer' : 'customers'}`, owed.byCustomersUsd],
        [
          `owed on chains, ${owed.onChainRefunds} ${owed.onChainRefunds === 1 ? 'refund' : 'refunds'}`,
          owed.onChainUsd,
        ],
      ]),
    ),
    trials.mostOfOneSite > 1
      ? el('p', { class: 'soft' }, `Most trials of one IPv6 site in seven days: ${trials.mostOfOneSite}.`)
      : null,
    cards.disputes.length === 0
      ? el('p', { class: 'soft' }, 'Disputes: none.')
      : recordsTable({
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

/** Amounts with their names, as in an account: the amounts below each other. */
function statement(title, rows) {
  return el(
    'table',
    { class: 'statement' },
    el('caption', {}, title),
    el(
      'tbody',
      {},
      ...rows.map(([name, amount]) =>
        el('tr', {}, el('th', { scope: 'row' }, name), el('td', { class: 'number' }, usd(amount))),
      ),
    ),
  );
}

function unfinishedSection({ unfinished, openActs, proposals }, page) {
  const { goOn } = page;
  if (unfinished === null) return section('Unfinished', el('p', { class: 'soft' }, 'Not known: see above.'));
  const { settlements, cardOrders, inbox } = unfinished;
  const of = (shown, count) => (count > shown.length ? `, the oldest ${shown.length} of ${count}` : '');
  const shown = [
    (proposals ?? []).length === 0 ? null : proposalsTable(proposals, page),
    (openActs ?? []).length === 0 ? null : actsTable('Actions whose end is not known', openActs, goOn),
    unfinished.disputes.nextDue.length === 0 ? null : disputesTable(unfinished.disputes),
    settlements.oldest.length === 0
      ? null
      : recordsTable({
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
            {
              label: 'State',
              of: (row) => [row.state.replace('_', ' '), row.reason].filter(Boolean).join(': '),
            },
            { label: 'Tried', number: true, of: ({ attempts }) => String(attempts) },
            { label: 'Dead after', of: ({ deadAfter }) => moment(deadAfter) },
          ],
        }),
    cardOrders.oldest.length === 0
      ? null
      : recordsTable({
          caption: `Card orders open for longer than expected${of(cardOrders.oldest, cardOrders.count)}`,
          rows: cardOrders.oldest,
          none: 'None.',
          columns: [
            { label: 'Order', of: ({ orderId }) => code(orderId) },
            { label: 'Kind', of: ({ kind }) => kind },
            { label: 'Account', of: ({ accountId }) => accountLink(accountId) },
            { label: 'Amount', number: true, of: ({ amountUsd }) => usd(amountUsd) },
            { label: 'Since', of: ({ createdAt }) => moment(createdAt) },
            {
              label: 'Looked at',
              of: ({ lookedAt, looks }) => el('span', {}, moment(lookedAt), ` (${looks}×)`),
            },
          ],
        }),
    inbox.waiting === 0
      ? null
      : el(
          'p',
          { class: 'soft' },
          `${inbox.waiting} messages of the card provider are waiting, the oldest since `,
          moment(inbox.oldestAt),
          `; at most ${inbox.mostAttempts} attempts were made at one.`,
        ),
  ].filter((each) => each !== null);
  return shown.length === 0 ? null : el('section', { 'aria-label': 'Unfinished' }, ...shown);
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
  if (verdict === null) return line('Books', 'not checked yet', prove);
  const failed = verdict.checks.filter(({ ok }) => !ok);
  const seen = el(
    'span',
    {},
    verdict.balanced ? 'in balance, checked ' : 'out of balance, checked ',
    ago(verdict.endedAt),
  );
  return line(
    'Books',
    seen,
    prove,
    el(
      'div',
      { class: `notice ${verdict.balanced ? 'good' : 'bad'}` },
      el('strong', {}, verdict.balanced ? 'The books balance.' : 'The books do not balance.'),
      ' Checked ',
      moment(verdict.endedAt),
      `, over ${verdict.transfers.toLocaleString('en')} transfers${closedWords(verdict.closedTo)}. The chains themselves are asked by npm run books.`,
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

function closedWords(closedTo) {
  return closedTo === null ? '' : `, of which those up to ${closedTo} stand in closed days`;
}

function upstreamsSection(upstreams) {
  const configured = upstreams.filter((each) => each.state !== 'not_configured');
  const others = upstreams.filter((each) => each.state === 'not_configured').map(({ name }) => name);
  const isWell = ({ state }) => state === 'up';
  const states = [...Map.groupBy(configured, ({ state }) => state)].map(
    ([state, each]) => `${each.length} ${state.replaceAll('_', ' ')}`,
  );
  const unwell = configured.filter((each) => !isWell(each));
  return line(
    'Sources',
    states.length === 0 ? 'none' : states.join(', '),
    sourcesTable('Not up, as this process last saw them', unwell),
    el(
      'details',
      {},
      el('summary', {}, `The ${configured.length - unwell.length} that are up`),
      sourcesTable('Up', configured.filter(isWell)),
    ),
    others.length === 0 ? null : el('p', { class: 'soft' }, `Not configured: ${others.join(', ')}.`),
  );
}

function sourcesTable(caption, sources) {
  return recordsTable({
    caption,
    rows: sources,
    none: 'None.',
    columns: [
      { label: 'Source', of: ({ name }) => name },
      { label: 'State', of: (each) => badge(each.state) },
      { label: 'Answered', of: ({ lastSuccessAt }) => moment(lastSuccessAt) },
      { label: 'Failed', of: ({ lastFailureAt }) => moment(lastFailureAt) },
      { label: 'Why', of: ({ reason }) => reason },
    ],
  });
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
  const open = wanting.filter(({ isAgreedTo }) => !isAgreedTo).length;
  return line(
    'Terms of the sources',
    open === 0 ? 'all accepted' : `${open} not accepted`,
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
  const states = [...Map.groupBy(lists, ({ state }) => state)].map(
    ([state, each]) => `${each.length} ${state.replaceAll('_', ' ')}`,
  );
  return line(
    'Lists',
    states.length === 0 ? 'none' : states.join(', '),
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

/** A line of the system that could not be read. */
function unknownLine(title) {
  return line(title, 'not known', el('p', { class: 'soft' }, 'Not known: see above.'));
}

function section(title, ...children) {
  return el('section', { class: title.toLowerCase() }, el('h2', {}, title), ...children);
}
