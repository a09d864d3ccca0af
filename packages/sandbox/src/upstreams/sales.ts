/** An operator's source of home sales: invented homes on a grid around the cities of the sandbox's world. */
import type { FastifyInstance } from 'fastify';
import { homeValue, TRACTS } from './homes.ts';
import { keyOf, uniform } from './noise.ts';
import { numberOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const DAY_MS = 86_400_000;
/** The side of a cell of the grid, in degrees of latitude and of longitude: about 300 m. Each cell has one home. */
const STEP_DEGREES = 0.003;
const METERS_PER_DEGREE = 111_195;
const KINDS = ['house', 'house', 'townhouse', 'condo'] as const;

export function sales(app: FastifyInstance, { seed, nowMs }: World): void {
  app.get<{ Querystring: Query }>('/sales', ({ query }, reply) => {
    const [lat, lon, radius, limit] = ['lat', 'lon', 'radiusMeters', 'limit'].map((name) =>
      numberOf(query, name),
    );
    const [from, to] = [textOf(query, 'from'), textOf(query, 'to')];
    if (lat == null || lon == null || radius == null || from === undefined || to === undefined)
      return reply.code(400).send({ message: 'lat, lon, radiusMeters, from and to are needed' });
    const around = homesAround(seed, { lat, lon, radiusMeters: Math.min(radius, 5_000) }, nowMs());
    return {
      sales: around
        .filter(({ sale }) => sale.soldOn >= from && sale.soldOn <= to)
        .sort((a, b) => a.meters - b.meters)
        .slice(0, Math.min(limit ?? 200, 200))
        .map(({ sale }) => sale),
    };
  });
}

function homesAround(
  seed: number,
  { lat, lon, radiusMeters }: { lat: number; lon: number; radiusMeters: number },
  nowMs: number,
) {
  const tract = TRACTS.find((each) => Math.hypot(each.lat - lat, each.lon - lon) < 0.1);
  // Puerto Rico has a census tract but no sales, as a place whose sales are not recorded.
  if (tract === undefined || tract.postal === 'PR') return [];
  const { median } = homeValue(seed, tract, new Date(nowMs).getUTCFullYear());
  const narrow = Math.cos((lat * Math.PI) / 180);
  const cells = (degrees: number) => Math.floor(degrees / STEP_DEGREES);
  const reach = radiusMeters / METERS_PER_DEGREE;
  const found = [];
  for (let north = cells(lat - reach); north <= cells(lat + reach); north++) {
    for (let east = cells(lon - reach / narrow); east <= cells(lon + reach / narrow); east++) {
      const key = keyOf(seed, `sale:${north}:${east}`);
      const home = {
        lat: (north + uniform(key, 0)) * STEP_DEGREES,
        lon: (east + uniform(key, 1)) * STEP_DEGREES,
      };
      const meters = Math.hypot(home.lat - lat, (home.lon - lon) * narrow) * METERS_PER_DEGREE;
      if (meters > radiusMeters) continue;
      const squareFeet = Math.round(900 + 2_400 * uniform(key, 2));
      // Each home is sold once in three years, on a day of its own.
      const days = (uniform(key, 3) * 1_095 + nowMs / DAY_MS) % 1_095;
      const priceUsd = median * (0.55 + (0.45 * squareFeet) / 1_800) * (0.88 + 0.24 * uniform(key, 4));
      const sale = {
        id: `sandbox-${north}-${east}`,
        soldOn: new Date(nowMs - days * DAY_MS).toISOString().slice(0, 10),
        priceUsd: Math.round((priceUsd * 1.04 ** (-days / 365)) / 500) * 500,
        lat: Math.round(home.lat * 1e5) / 1e5,
        lon: Math.round(home.lon * 1e5) / 1e5,
        type: KINDS[Math.floor(uniform(key, 5) * KINDS.length)] ?? 'house',
        squareFeet: uniform(key, 6) < 0.1 ? null : squareFeet,
      };
      found.push({ sale, meters });
    }
  }
  return found;
}
