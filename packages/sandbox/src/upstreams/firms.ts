/** NASA FIRMS: fires by area and day, as CSV. A wrong key or area is answered with 400 and a line of text. */
import type { FastifyInstance } from 'fastify';
import { zonalWetness } from './globe.ts';
import { isLand } from './land.ts';
import { keyOf, uniform } from './noise.ts';
import type { World } from './world.ts';

const DAY_MS = 86_400_000;
const MAX_DAYS = 5;
/** The side of a square of the grid in degrees. Each square has at most one fire a day. */
const SQUARE_DEGREES = 1;
const KEY = /^sandbox-[\w-]+$/;

const SATELLITES: Readonly<Record<string, { letter: string; instrument: 'VIIRS' | 'MODIS' }>> = {
  VIIRS_SNPP_NRT: { letter: 'N', instrument: 'VIIRS' },
  VIIRS_NOAA20_NRT: { letter: 'N20', instrument: 'VIIRS' },
  VIIRS_NOAA21_NRT: { letter: 'N21', instrument: 'VIIRS' },
  MODIS_NRT: { letter: 'Terra', instrument: 'MODIS' },
};
const HEADERS = {
  VIIRS:
    'latitude,longitude,bright_ti4,scan,track,acq_date,acq_time,satellite,instrument,confidence,version,bright_ti5,frp,daynight',
  MODIS:
    'latitude,longitude,brightness,scan,track,acq_date,acq_time,satellite,instrument,confidence,version,bright_t31,frp,daynight',
};

export interface Fire {
  latitude: number;
  longitude: number;
  /** Minutes of the day in UTC. */
  minute: number;
  kelvin: number;
  frpMw: number;
}

/**
 * The fire in a square on a day (counted from 1970-01-01 in UTC), or null. Fires are more likely where a latitude is dry; there
 * are none at sea, nor beyond 65 degrees of latitude.
 */
export function fireIn(seed: number, day: number, row: number, column: number): Fire | null {
  const key = keyOf(seed, `fires:${day}`);
  const index = row * 1_024 + column;
  const latitude = Math.round((row + uniform(key ^ 1, index)) * SQUARE_DEGREES * 1e5) / 1e5;
  const longitude = Math.round((column + uniform(key ^ 2, index)) * SQUARE_DEGREES * 1e5) / 1e5;
  const chance = Math.abs(latitude) > 65 ? 0 : 0.12 - 0.08 * zonalWetness(latitude);
  if (uniform(key, index) > chance || !isLand(latitude, longitude)) return null;
  return {
    latitude,
    longitude,
    minute: Math.floor(1_440 * uniform(key ^ 3, index)),
    kelvin: Math.round((305 + 60 * uniform(key ^ 4, index)) * 100) / 100,
    frpMw: Math.round(40 * uniform(key ^ 5, index) ** 3 * 100 + 40) / 100,
  };
}

export function firms(app: FastifyInstance, { seed, nowMs }: World): void {
  app.get<{ Params: { key: string; source: string; area: string; days: string; first?: string } }>(
    '/api/area/csv/:key/:source/:area/:days/:first',
    ({ params }, reply) => {
      const text = (code: number, content: string) =>
        reply.code(code).type('text/plain; charset=utf-8').send(content);
      if (!KEY.test(params.key)) return text(400, 'Invalid MAP_KEY.');
      const satellite = SATELLITES[params.source];
      if (satellite === undefined) return text(400, 'Invalid source.');
      const edges = params.area === 'world' ? [-180, -90, 180, 90] : params.area.split(',').map(Number);
      const [west = Number.NaN, south = Number.NaN, east = Number.NaN, north = Number.NaN] = edges;
      const valid =
        west >= -180 && east <= 180 && south >= -90 && north <= 90 && west < east && south < north;
      if (!valid || edges.length !== 4)
        return text(400, 'Invalid area coordinates. Expects: [west,south,east,north].');
      const days = Number(params.days);
      if (!Number.isInteger(days) || days < 1 || days > MAX_DAYS)
        return text(400, 'Invalid day range. Expects [1..5].');
      const first = Date.parse(`${params.first}T00:00:00Z`) / DAY_MS;
      if (!Number.isInteger(first)) return text(400, 'Invalid date. Expects: YYYY-MM-DD.');
      const lines = [HEADERS[satellite.instrument]];
      for (let day = first; day < first + days; day++) {
        for (let row = Math.floor(south); row < north; row++) {
          for (let column = Math.floor(west); column < east; column++) {
            const fire = fireIn(seed, day, row, column);
            if (fire === null || day * DAY_MS + fire.minute * 60_000 > nowMs()) continue;
            const { latitude, longitude } = fire;
            if (latitude < south || latitude > north || longitude < west || longitude > east) continue;
            lines.push(lineOf(fire, day, satellite));
          }
        }
      }
      return reply.type('text/csv; charset=utf-8').send(`${lines.join('\n')}\n`);
    },
  );
}

function lineOf(
  { latitude, longitude, minute, kelvin, frpMw }: Fire,
  day: number,
  { letter, instrument }: { letter: string; instrument: 'VIIRS' | 'MODIS' },
): string {
  const viirs = instrument === 'VIIRS';
  const certain = frpMw > 10;
  return [
    latitude.toFixed(5),
    longitude.toFixed(5),
    kelvin,
    viirs ? 0.39 : 1.1,
    viirs ? 0.44 : 1,
    new Date(day * DAY_MS).toISOString().slice(0, 10),
    // The time as HHMM without leading zeros, as FIRMS writes it.
    Math.floor(minute / 60) * 100 + (minute % 60),
    letter,
    instrument,
    viirs ? (certain ? 'h' : 'n') : certain ? 92 : 61,
    viirs ? '2.0NRT' : '6.1NRT',
    Math.round((kelvin - 35) * 10) / 10,
    frpMw,
    minute > 360 && minute < 1_080 ? 'D' : 'N',
  ].join(',');
}
