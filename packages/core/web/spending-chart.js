import { formatMicros, microsOf } from './amount.js';
import { drawnToWidth, el, svg } from './dom.js';
import { dayWords } from './moments.js';

const SHOWN_DAYS = 14;
const SHOWN_SERVICES = 10;
const DAY_MS = 86_400_000;
const HEIGHT = 150;
const WIDTH = 640;
const FOOT = 22;
const HEAD = 18;
/** Above so many days the figures are told in a table alone, and not in the picture's description. */
const SPOKEN_DAYS = 31;

const SPENT = [{ kind: 'spent', label: 'Spent' }];

/** Spending as bars: one for each day, and one for each service. `spending` is that of `GET /api/keys/me`. */
export function spendingView(spending) {
  if (spending.length === 0) return el('p', { class: 'soft' }, 'Nothing has been spent with this key yet.');
  const lines = spending.map((line) => ({ ...line, kind: 'spent', micros: microsOf(line.spentUsd) }));
  return el(
    'div',
    {},
    daysChart(lines, { verb: 'Spent', kinds: SPENT, days: daysSpent(lines, Date.now()) }),
    servicesTable(lines, { verb: 'Spent', kinds: SPENT }),
  );
}

/**
 * A bar for each day, in as many pieces as there are kinds.
 *
 * @param {{ day: string, kind: string, micros: bigint }[]} lines
 * @param {{ verb: string, kinds: { kind: string, label: string }[], days: string[] }} options `verb` says what was
 *   done with the money; a kind is also the class of its pieces
 */
export function daysChart(lines, { verb, kinds, days }) {
  const totals = totalsOf(lines, ({ day }) => day);
  const told =
    days.length <= SPOKEN_DAYS
      ? `${verb} by day: ${days.map((day) => `${day} ${formatMicros(totals.get(day) ?? 0n)}`).join(', ')}`
      : `${verb} by day, from ${days[0]} to ${days.at(-1)}`;
  const draw = (width) => barsOf(lines, { kinds, days, totals, width });
  const picture = drawnToWidth({ 'aria-label': told }, { width: WIDTH, height: HEIGHT, draw });
  return el(
    'figure',
    { class: 'chart true-size' },
    el('figcaption', {}, 'By day (UTC)', kinds.length === 1 ? null : legend(kinds)),
    picture,
  );
}

/** The room of one value above its bar, in pixels. */
const VALUE_WIDTH = 56;
const DAY_WIDTH = 64;

function barsOf(lines, { kinds, days, totals, width }) {
  const pieces = totalsOf(lines, ({ day, kind }) => `${day} ${kind}`);
  const highest = days.reduce((most, day) => max(most, totals.get(day) ?? 0n), 1n);
  const slot = width / days.length;
  const barWidth = Math.min(slot * 0.72, 44);
  const every = Math.ceil(DAY_WIDTH / slot);
  const heightOf = (micros) => (HEIGHT - FOOT - HEAD) * (Number((micros * 10_000n) / highest) / 10_000);
  const bars = days.flatMap((day, index) => {
    const total = totals.get(day) ?? 0n;
    const middle = slot * index + slot / 2;
    const isLast = index === days.length - 1;
    let top = HEIGHT - FOOT;
    const stack = kinds.map(({ kind, label }) => {
      const micros = pieces.get(`${day} ${kind}`) ?? 0n;
      const height = heightOf(micros);
      top -= height;
      const told = kinds.length === 1 ? day : `${day}, ${label}`;
      return svg(
        'rect',
        {
          class: `piece ${kind}`,
          x: middle - barWidth / 2,
          y: top,
          width: barWidth,
          height,
          rx: kinds.length === 1 ? 2 : 0,
        },
        svg('title', {}, `${told}: ${formatMicros(micros)}`),
      );
    });
    const isTold = slot >= VALUE_WIDTH || isLast || total === highest;
    const end = { x: isLast ? width : middle, 'text-anchor': isLast ? 'end' : 'middle' };
    return [
      ...stack,
      total > 0n && isTold ? svg('text', { class: 'value', y: top - 5, ...end }, formatMicros(total)) : null,
      // The last day is always named.
      (days.length - 1 - index) % every === 0
        ? svg('text', { class: 'tick', y: HEIGHT - 6, ...end }, shortDay(day))
        : null,
    ];
  });
  const foot = HEIGHT - FOOT;
  const grid = [highest, highest / 2n].map((micros) =>
    svg('line', {
      class: 'grid',
      x1: 0,
      x2: width,
      y1: foot - heightOf(micros),
      y2: foot - heightOf(micros),
    }),
  );
  const axis = svg('line', { class: 'axis', x1: 0, x2: width, y1: foot, y2: foot });
  return [...(highest > 1n ? grid : []), axis, ...bars].filter((each) => each !== null);
}

/**
 * A row for each service, the largest first.
 *
 * @param {{ service: string, kind: string, calls: number, micros: bigint }[]} lines
 */
export function servicesTable(lines, { verb, kinds }) {
  const totals = totalsOf(lines, ({ service }) => service);
  const pieces = totalsOf(lines, ({ service, kind }) => `${service} ${kind}`);
  const calls = new Map();
  for (const { service, calls: made } of lines) calls.set(service, (calls.get(service) ?? 0) + made);
  const rows = [...totals].sort(([, a], [, b]) => (a < b ? 1 : a > b ? -1 : 0));
  const highest = rows.reduce((most, [, micros]) => max(most, micros), 1n);
  const first = tableOf(rows.slice(0, SHOWN_SERVICES));
  if (rows.length <= SHOWN_SERVICES) return first;
  const all = el(
    'button',
    {
      type: 'button',
      class: 'secondary small',
      onclick: () => {
        first.replaceWith(tableOf(rows));
        all.remove();
      },
    },
    `Show all ${rows.length}`,
  );
  return el('div', {}, first, all);

  function tableOf(shown) {
    return el(
      'table',
      { class: 'by-service' },
      el('caption', {}, 'By service'),
      el(
        'thead',
        {},
        el(
          'tr',
          {},
          el('th', { scope: 'col' }, 'Service'),
          el('th', { scope: 'col', class: 'share' }, el('span', { class: 'hidden' }, 'Share')),
          el('th', { scope: 'col', class: 'number' }, 'Calls'),
          el('th', { scope: 'col', class: 'number' }, verb),
        ),
      ),
      el(
        'tbody',
        {},
        ...shown.map(([service, micros]) =>
          el(
            'tr',
            {},
            el('th', { scope: 'row' }, el('a', { href: `/docs/${encodeURIComponent(service)}` }, service)),
            el(
              'td',
              { class: 'share' },
              shareBar(
                kinds.map(({ kind }) => ({ kind, micros: pieces.get(`${service} ${kind}`) ?? 0n })),
                highest,
              ),
            ),
            el('td', { class: 'number' }, String(calls.get(service))),
            el('td', { class: 'number' }, formatMicros(micros)),
          ),
        ),
      ),
    );
  }
}

/** Which colour is what. */
function legend(kinds) {
  return el(
    'span',
    { class: 'legend' },
    ...kinds.map(({ kind, label }) =>
      el(
        'span',
        {},
        svg(
          'svg',
          { viewBox: '0 0 10 10', 'aria-hidden': 'true' },
          svg('rect', { class: `piece ${kind}`, width: 10, height: 10, rx: 2 }),
        ),
        label,
      ),
    ),
  );
}

function shareBar(pieces, highest) {
  let x = 0;
  const bars = pieces.map(({ kind, micros }) => {
    const width = Number((micros * 10_000n) / highest) / 100;
    const bar = svg('rect', {
      class: `piece ${kind}`,
      x,
      width,
      height: 8,
      rx: pieces.length === 1 ? 1 : 0,
    });
    x += width;
    return bar;
  });
  return svg('svg', { viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, ...bars);
}

function totalsOf(lines, keyOf) {
  const totals = new Map();
  for (const line of lines) totals.set(keyOf(line), (totals.get(keyOf(line)) ?? 0n) + line.micros);
  return totals;
}

/** The last fourteen days, to today or to the last on which something was spent. */
function daysSpent(lines, nowMs) {
  const today = new Date(nowMs).toISOString().slice(0, 10);
  const lastMs = Date.parse([today, ...lines.map(({ day }) => day)].sort().at(-1));
  return daysFrom(lastMs - (SHOWN_DAYS - 1) * DAY_MS, lastMs);
}

/** Every day from one time to another, as YYYY-MM-DD in UTC. */
export function daysFrom(firstMs, lastMs) {
  const days = [];
  for (let at = firstMs; at <= lastMs; at += DAY_MS) days.push(new Date(at).toISOString().slice(0, 10));
  return days;
}

function shortDay(day) {
  return dayWords(day).replace(/ \d+$/, '');
}

function max(a, b) {
  if (a > b) return a;
  return b;
}
