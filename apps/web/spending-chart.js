import { formatMicros, microsOf } from './amount.js';
import { el, svg } from './dom.js';

const MOST_DAYS = 31;
const DAY_MS = 86_400_000;
const HEIGHT = 150;
const WIDTH = 640;
const FOOT = 22;
const HEAD = 18;

/** Spending as bars: one for each day, and one for each service. `spending` is that of `GET /api/keys/me`. */
export function spendingView(spending) {
  if (spending.length === 0) return el('p', { class: 'soft' }, 'Nothing has been spent with this key yet.');
  return el('div', {}, daysChart(spending), servicesTable(spending));
}

function daysChart(spending) {
  const totals = totalsOf(spending, ({ day }) => day);
  const days = daysBetween([...totals.keys()].sort());
  const highest = days.reduce((most, day) => max(most, totals.get(day) ?? 0n), 1n);
  const slot = WIDTH / days.length;
  const barWidth = Math.min(slot * 0.72, 44);
  const every = Math.ceil(days.length / 8);
  const bars = days.flatMap((day, index) => {
    const spent = totals.get(day) ?? 0n;
    const height = (HEIGHT - FOOT - HEAD) * (Number((spent * 10_000n) / highest) / 10_000);
    const x = slot * index + (slot - barWidth) / 2;
    const middle = slot * index + slot / 2;
    return [
      svg(
        'rect',
        { class: 'spent', x, y: HEIGHT - FOOT - height, width: barWidth, height, rx: 2 },
        svg('title', {}, `${day}: ${formatMicros(spent)}`),
      ),
      spent > 0n && days.length <= 14
        ? svg(
            'text',
            { class: 'value', x: middle, y: HEIGHT - FOOT - height - 5, 'text-anchor': 'middle' },
            formatMicros(spent),
          )
        : null,
      index % every === 0
        ? svg('text', { class: 'tick', x: middle, y: HEIGHT - 6, 'text-anchor': 'middle' }, shortDay(day))
        : null,
    ];
  });
  return el(
    'figure',
    { class: 'chart' },
    el('figcaption', {}, 'By day (UTC)'),
    svg(
      'svg',
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: 'img',
        'aria-label': `Spent by day: ${days.map((day) => `${day} ${formatMicros(totals.get(day) ?? 0n)}`).join(', ')}`,
      },
      svg('line', { class: 'axis', x1: 0, x2: WIDTH, y1: HEIGHT - FOOT, y2: HEIGHT - FOOT }),
      ...bars,
    ),
  );
}

function servicesTable(spending) {
  const totals = totalsOf(spending, ({ service }) => service);
  const calls = new Map();
  for (const { service, calls: made } of spending) calls.set(service, (calls.get(service) ?? 0) + made);
  const rows = [...totals].sort(([, a], [, b]) => (a < b ? 1 : a > b ? -1 : 0));
  const highest = rows.reduce((most, [, spent]) => max(most, spent), 1n);
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
        el('th', { scope: 'col', class: 'number' }, 'Spent'),
      ),
    ),
    el(
      'tbody',
      {},
      ...rows.map(([service, spent]) =>
        el(
          'tr',
          {},
          el('th', { scope: 'row' }, el('a', { href: `/docs/${encodeURIComponent(service)}` }, service)),
          el('td', { class: 'share' }, shareBar(spent, highest)),
          el('td', { class: 'number' }, String(calls.get(service))),
          el('td', { class: 'number' }, formatMicros(spent)),
        ),
      ),
    ),
  );
}

function shareBar(spent, highest) {
  return svg(
    'svg',
    { viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { class: 'spent', width: Number((spent * 100n) / highest), height: 8, rx: 1 }),
  );
}

function totalsOf(spending, keyOf) {
  const totals = new Map();
  for (const line of spending)
    totals.set(keyOf(line), (totals.get(keyOf(line)) ?? 0n) + microsOf(line.spentUsd));
  return totals;
}

/** Every day from the first to the last of a sorted list, the latest month of them. */
function daysBetween(sorted) {
  const last = Date.parse(sorted.at(-1));
  const first = Math.max(Date.parse(sorted[0]), last - (MOST_DAYS - 1) * DAY_MS);
  const days = [];
  for (let at = first; at <= last; at += DAY_MS) days.push(new Date(at).toISOString().slice(0, 10));
  return days;
}

function shortDay(day) {
  return new Date(day).toLocaleDateString('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });
}

function max(a, b) {
  if (a > b) return a;
  return b;
}
