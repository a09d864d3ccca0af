import { formatUsd } from './amount.js';
import { el, svg } from './dom.js';
import { momentWords } from './moments.js';

const WIDTH = 640;
const HEIGHT = 180;
const LEFT = 44;
const FOOT = 22;
const HEAD = 12;

export const PROTOCOLS = [
  { name: 'aave', label: 'Aave' },
  { name: 'compound', label: 'Compound' },
  { name: 'morpho', label: 'Morpho' },
];

/** What people call a protocol. */
export function labelOf(name) {
  return PROTOCOLS.find((each) => each.name === name)?.label ?? name;
}

/** Rates over time, a line for each protocol; where one could not be read its line has a gap. An upright line is a move of the keeper's. `points` and `moves` as of `/api/yield/history`. */
export function ratesChart(points, moves = []) {
  if (points.length < 2)
    return el(
      'p',
      { class: 'soft' },
      'The server notes rates every five minutes. There are too few for a chart yet.',
    );
  const times = points.map(({ at }) => Date.parse(at));
  const [first, last] = [times[0], times.at(-1)];
  const rates = points
    .flatMap(({ grossApyPercent }) => Object.values(grossApyPercent))
    .filter((rate) => rate !== null);
  const highest = Math.max(1, Math.ceil(Math.max(...rates, 0)));
  const x = (time) => LEFT + ((WIDTH - LEFT) * (time - first)) / Math.max(1, last - first);
  const y = (rate) => HEIGHT - FOOT - ((HEIGHT - FOOT - HEAD) * rate) / highest;
  const grid = [0, highest / 2, highest].flatMap((rate) => [
    svg('line', { class: 'axis', x1: LEFT, x2: WIDTH, y1: y(rate), y2: y(rate) }),
    svg('text', { class: 'tick', x: LEFT - 8, y: y(rate) + 4, 'text-anchor': 'end' }, `${rate}%`),
  ]);
  const lines = PROTOCOLS.flatMap(({ name, label }) =>
    stretches(points.map((point, index) => ({ time: times[index], rate: point.grossApyPercent[name] }))).map(
      (part) =>
        svg(
          'polyline',
          { class: `rate ${name}`, points: part.map(({ time, rate }) => `${x(time)},${y(rate)}`).join(' ') },
          svg('title', {}, label),
        ),
    ),
  );
  const marks = moves
    .map(({ at, from, to }) => ({ time: Date.parse(at), from, to }))
    .filter(({ time }) => time >= first && time <= last)
    .map(({ time, from, to }) =>
      svg(
        'line',
        { class: 'move', x1: x(time), x2: x(time), y1: HEAD, y2: HEIGHT - FOOT },
        svg('title', {}, `Moved from ${labelOf(from)} to ${labelOf(to)}`),
      ),
    );
  const day = (time) => momentWords(new Date(time).toISOString()).replace(/ \d{4}/, '');
  const newest = points.at(-1).grossApyPercent;
  return el(
    'figure',
    { class: 'chart' },
    el(
      'figcaption',
      {},
      'Gross APY over time (UTC)',
      el(
        'span',
        { class: 'legend' },
        ...PROTOCOLS.map(({ name, label }) => el('span', {}, swatch(name), label)),
      ),
    ),
    svg(
      'svg',
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        role: 'img',
        'aria-label': `Rates from ${day(first)} to ${day(last)}, at the end ${PROTOCOLS.map(({ name, label }) => `${label} ${newest[name] ?? 'unknown'}%`).join(', ')}`,
      },
      ...grid,
      ...marks,
      ...lines,
      svg('text', { class: 'tick', x: LEFT, y: HEIGHT - 4 }, day(first)),
      svg('text', { class: 'tick', x: WIDTH, y: HEIGHT - 4, 'text-anchor': 'end' }, day(last)),
    ),
  );
}

/** What is where, as parts of the whole. `stats` as of `/api/yield/stats`. */
export function holdingsView({ tvlUsdc, idleUsdc, inProtocolUsdc }) {
  const whole = Number(tvlUsdc);
  if (whole === 0) return el('p', { class: 'soft' }, 'The vault is empty.');
  const rows = [
    ...PROTOCOLS.map(({ name, label }) => ({ name, label, amount: inProtocolUsdc[name] })),
    { name: 'idle', label: 'Idle in the vault', amount: idleUsdc },
  ];
  return el(
    'table',
    { class: 'by-service' },
    el(
      'tbody',
      {},
      ...rows.map(({ name, label, amount }) =>
        el(
          'tr',
          {},
          el('th', { scope: 'row' }, label),
          el(
            'td',
            { class: 'share' },
            svg(
              'svg',
              { viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
              svg('rect', {
                class: `piece ${name}`,
                width: (100 * Number(amount)) / whole,
                height: 8,
                rx: 1,
              }),
            ),
          ),
          el('td', { class: 'number' }, formatUsd(amount)),
        ),
      ),
    ),
  );
}

function swatch(name) {
  return svg(
    'svg',
    { viewBox: '0 0 10 10', 'aria-hidden': 'true' },
    svg('rect', { class: `piece ${name}`, width: 10, height: 10, rx: 2 }),
  );
}

/** The line without its gaps. */
function stretches(values) {
  const parts = [[]];
  for (const value of values) {
    if (value.rate === null) parts.push([]);
    else parts.at(-1).push(value);
  }
  return parts.filter((part) => part.length > 1);
}
