import { drawnToWidth, el, svg } from './dom.js';

const WIDTH = 640;
const HEIGHT = 150;
const FOOT = 22;
const HEAD = 18;
const MAP_HEIGHT = 320;
/** Of the longest name of a line of degrees, on a phone. */
const NAME_WIDTH = 80;
const DAY_MS = 86_400_000;
/** Below this a map shows its surroundings and not a point in nothing. */
const LEAST_DEGREES = 0.05;

/** Where a device was last; null when nobody said. */
function placeOf({ lastReading, place }) {
  return lastReading?.position ?? place;
}

/**
 * The fleet on a grid of degrees, without tiles of anybody: nobody is told where it is. Null where no place is known.
 *
 * @param {(deviceId: string) => void} choose
 */
export function fleetMap(devices, choose) {
  const placed = devices.flatMap((device) => {
    const place = placeOf(device);
    return place === null || place === undefined ? [] : [{ device, ...place }];
  });
  if (placed.length === 0) return el('p', { class: 'soft' }, 'None of your devices has told where it is.');
  const middle = (low, high) => (low + high) / 2;
  const [south, north] = [
    Math.min(...placed.map(({ lat }) => lat)),
    Math.max(...placed.map(({ lat }) => lat)),
  ];
  const [west, east] = [Math.min(...placed.map(({ lon }) => lon)), Math.max(...placed.map(({ lon }) => lon))];
  // A degree of longitude is shorter the farther it is from the equator.
  const narrow = Math.max(0.2, Math.cos((middle(south, north) * Math.PI) / 180));
  const high = Math.max(
    (north - south) * 1.3,
    ((east - west) * 1.3 * narrow * MAP_HEIGHT) / WIDTH,
    LEAST_DEGREES,
  );
  const wide = (high * WIDTH) / MAP_HEIGHT / narrow;
  const [left, top] = [middle(west, east) - wide / 2, middle(south, north) + high / 2];
  const x = (lon) => ((lon - left) / wide) * WIDTH;
  const y = (lat) => ((top - lat) / high) * MAP_HEIGHT;
  const points = placed.map(({ device, lat, lon }) =>
    svg(
      'circle',
      {
        class: 'piece device',
        cx: x(lon),
        cy: y(lat),
        r: 7,
        onclick: () => choose(device.deviceId),
      },
      svg('title', {}, `${device.deviceId}: ${lat}, ${lon}`),
    ),
  );
  return el(
    'figure',
    { class: 'chart map' },
    el('figcaption', {}, 'Where they were last'),
    svg(
      'svg',
      {
        viewBox: `0 0 ${WIDTH} ${MAP_HEIGHT}`,
        role: 'img',
        'aria-label': placed.map(({ device, lat, lon }) => `${device.deviceId} at ${lat}, ${lon}`).join('; '),
      },
      ...graticule({ left, top, wide, high }, x, y),
      ...points,
    ),
  );
}

/** Lines of whole steps of degrees, with their names at the edge. */
function graticule({ left, top, wide, high }, x, y) {
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 45].find((each) => wide / each <= 7) ?? 90;
  const lines = [];
  const name = (degrees) => `${Number(degrees.toFixed(2))}°`;
  for (let lon = Math.ceil(left / step) * step; lon < left + wide; lon += step)
    lines.push(
      svg('line', { class: 'grid', x1: x(lon), x2: x(lon), y1: 0, y2: MAP_HEIGHT }),
      // At the right edge a name stands before its line: behind it there is no room.
      svg(
        'text',
        x(lon) > WIDTH - NAME_WIDTH
          ? { class: 'tick', x: x(lon) - 3, y: MAP_HEIGHT - 5, 'text-anchor': 'end' }
          : { class: 'tick', x: x(lon) + 3, y: MAP_HEIGHT - 5 },
        name(lon),
      ),
    );
  for (let lat = Math.ceil((top - high) / step) * step; lat < top; lat += step)
    lines.push(
      svg('line', { class: 'grid', x1: 0, x2: WIDTH, y1: y(lat), y2: y(lat) }),
      svg('text', { class: 'tick', x: 3, y: y(lat) - 4 }, name(lat)),
    );
  return lines;
}

/** A line for each sensor that has reported, over the last day, each with its own least and most. */
export function readingsChart(deviceId, readings, sensors) {
  const series = Object.entries(sensors).flatMap(([sensor, unit]) => {
    const points = readings.flatMap(({ at, values }) =>
      sensor in values ? [{ atMs: Date.parse(at), value: values[sensor] }] : [],
    );
    return points.length === 0 ? [] : [{ sensor, unit, points }];
  });
  if (series.length === 0)
    return [el('p', { class: 'soft' }, `${deviceId} has reported nothing in the last day.`)];
  return series.map((each) => lineChart(deviceId, each));
}

/** The letters of the axis stand in this many pixels at the left. */
const AXIS_WIDTH = 52;

function lineChart(deviceId, { sensor, unit, points }) {
  const values = points.map(({ value }) => value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const last = points[points.length - 1];
  const told = `${deviceId}, ${sensor}: ${last.value} ${unit} now, from ${low} to ${high}`;
  const picture = drawnToWidth(
    { 'aria-label': told },
    { width: WIDTH, height: HEIGHT, draw: (width) => lineOf({ points, low, high, width }) },
  );
  return el('figure', { class: 'chart true-size' }, el('figcaption', {}, told), picture);
}

/** The line, with least and most at its left, and the line of zero where the readings lie on both sides of it. */
function lineOf({ points, low, high, width }) {
  const last = points[points.length - 1];
  const from = Math.min(points[0].atMs, last.atMs - DAY_MS / 24);
  const foot = HEIGHT - FOOT;
  const x = (atMs) => AXIS_WIDTH + ((atMs - from) / Math.max(last.atMs - from, 1)) * (width - AXIS_WIDTH - 4);
  const y = (value) =>
    high === low ? (foot + HEAD) / 2 : foot - ((value - low) / (high - low)) * (foot - HEAD);
  const across = (kind, value) =>
    svg('line', { class: kind, x1: AXIS_WIDTH, x2: width, y1: y(value), y2: y(value) });
  const named = (value) =>
    svg(
      'text',
      { class: 'tick', x: AXIS_WIDTH - 8, y: y(value) + 4, 'text-anchor': 'end' },
      shortValue(value),
    );
  const clock = (atMs) => `${new Date(atMs).toISOString().slice(11, 16)} UTC`;
  const path = points.map(({ atMs, value }) => `${x(atMs).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  return [
    ...[...new Set([low, high])].flatMap((value) => [across('grid', value), named(value)]),
    ...(low < 0 && high > 0 ? [across('axis', 0)] : []),
    svg('polyline', { class: 'line', points: path }),
    svg('circle', { class: 'piece', cx: x(last.atMs), cy: y(last.value), r: 3 }),
    svg('text', { class: 'tick', x: AXIS_WIDTH, y: HEIGHT - 6 }, clock(from)),
    svg('text', { class: 'tick', x: width, y: HEIGHT - 6, 'text-anchor': 'end' }, clock(last.atMs)),
  ];
}

/** A value in six signs or so: "1.2M" where the axis has no room for all of them. */
function shortValue(value) {
  return new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 4 }).format(value);
}
