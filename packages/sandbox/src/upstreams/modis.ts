/**
 * ORNL's MODIS subsets: pixels of the sinusoidal grid. A pixel without a measurement has the fill value; a place without a tile
 * answers 404.
 */
import type { FastifyInstance } from 'fastify';
import { patches, zonalWetness } from './globe.ts';
import { isLand } from './land.ts';
import { gaussian, keyOf, uniform } from './noise.ts';
import { numberOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const DAY_MS = 86_400_000;
const RADIUS_M = 6_371_007.181;
const RADIANS = Math.PI / 180;
const FILL = -3_000;
const VIIRS_FILL = -15_000;
const MAX_COMPOSITES = 10;
const MAX_REACH_KM = 100;

/** The vegetation index (NDVI) of a place on a day, by climate and season: from -0.1 to 0.95. `day` counts from 1970-01-01. */
export function greenness(seed: number, day: number, latitude: number, longitude: number): number {
  const season = Math.cos(2 * Math.PI * ((day / 365.25) % 1) - (latitude >= 0 ? 3.6 : 0.5));
  const climate =
    0.42 + 0.3 * zonalWetness(latitude) + 0.1 * patches(keyOf(seed, 'green'), latitude, longitude, 3);
  const cold = Math.max(0, (Math.abs(latitude) - 60) / 20);
  const swing = 0.25 * Math.min(1, Math.abs(latitude) / 45) * season;
  const here =
    0.05 * gaussian(keyOf(seed, 'field'), Math.round(latitude * 400) * 8_192 + Math.round(longitude * 400));
  return Math.round(Math.max(-0.1, Math.min(0.95, climate + swing + here - 0.5 * cold)) * 10_000) / 10_000;
}

/** The land cover class of a place in the scheme of the International Geosphere-Biosphere Programme (IGBP), 1 to 17. */
export function landClass(seed: number, latitude: number, longitude: number): number {
  if (!isLand(latitude, longitude)) return 17;
  if (Math.abs(latitude) > 72) return 15;
  const field = patches(keyOf(seed, 'cover'), latitude, longitude, 0.02);
  const wet = zonalWetness(latitude) + 0.3 * patches(keyOf(seed, 'green'), latitude, longitude, 3);
  if (field > 1.3) return 13;
  if (wet < -0.3) return field > 0.3 ? 7 : 16;
  if (Math.abs(latitude) > 58) return field > 0 ? 1 : 8;
  if (wet > 0.35) return field > -0.5 ? 2 : 9;
  return field > 0.2 ? 12 : field > -0.6 ? 10 : 5;
}

interface Product {
  pixelM: number;
  firstDay: number;
  lagDays: number;
  bands: Readonly<Record<string, { units: string; scale: string }>>;
  /** The first days of the product's periods, as far as they lie from `first` to `last`. */
  periods(first: number, last: number): number[];
  valueAt(band: string, day: number, latitude: number, longitude: number): number;
}

function products(seed: number): Readonly<Record<string, Product>> {
  const yearsOf = (first: number, last: number, step: (newYear: number, next: number) => number[]) => {
    const from = new Date(first * DAY_MS).getUTCFullYear();
    const to = new Date(last * DAY_MS).getUTCFullYear();
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at)
      .flatMap((year) => step(Date.UTC(year, 0, 1) / DAY_MS, Date.UTC(year + 1, 0, 1) / DAY_MS))
      .filter((day) => day >= first && day <= last);
  };
  return {
    MOD13Q1: {
      pixelM: 231.656358264,
      firstDay: Date.UTC(2000, 1, 18) / DAY_MS,
      lagDays: 24,
      bands: {
        '250m_16_days_NDVI': { units: 'NDVI', scale: '0.0001' },
        '250m_16_days_EVI': { units: 'EVI', scale: '0.0001' },
        '250m_16_days_pixel_reliability': { units: 'rank', scale: '1' },
      },
      periods: (first, last) =>
        yearsOf(first, last, (newYear, next) =>
          Array.from({ length: Math.ceil((next - newYear) / 16) }, (_, at) => newYear + 16 * at),
        ),
      valueAt(band, day, latitude, longitude) {
        const sea = !isLand(latitude, longitude);
        const clouds = uniform(
          keyOf(seed, `clear:${day}`),
          Math.round(latitude * 50) * 8_192 + Math.round(longitude * 50),
        );
        const rank = sea ? -1 : Math.abs(latitude) > 70 ? 2 : clouds < 0.15 ? 3 : clouds < 0.4 ? 1 : 0;
        if (band.endsWith('reliability')) return rank;
        if (sea) return FILL;
        const ndvi = greenness(seed, day, latitude, longitude);
        return Math.round((band.endsWith('EVI') ? 0.6 * ndvi + 0.02 : ndvi) * 10_000);
      },
    },
    VNP13A1: {
      pixelM: 463.312716528,
      firstDay: Date.UTC(2012, 0, 17) / DAY_MS,
      lagDays: 24,
      bands: {
        '500_m_16_days_NDVI': { units: 'NDVI', scale: '0.0001' },
        '500_m_16_days_EVI': { units: 'EVI', scale: '0.0001' },
        '500_m_16_days_pixel_reliability': { units: 'rank', scale: '1' },
      },
      periods: (first, last) =>
        yearsOf(first, last, (newYear, next) =>
          Array.from({ length: Math.ceil((next - newYear) / 8) }, (_, at) => newYear + 8 * at),
        ),
      valueAt(band, day, latitude, longitude) {
        const sea = !isLand(latitude, longitude);
        if (band.endsWith('reliability')) return sea ? -4 : Math.abs(latitude) > 70 ? 8 : 0;
        if (sea) return VIIRS_FILL;
        const ndvi = greenness(seed, day, latitude, longitude);
        return Math.round((band.endsWith('EVI') ? 0.6 * ndvi + 0.02 : ndvi) * 10_000);
      },
    },
    MCD12Q1: {
      pixelM: 463.312716528,
      firstDay: Date.UTC(2001, 0, 1) / DAY_MS,
      lagDays: 500,
      bands: { LC_Type1: { units: 'class', scale: '1' } },
      periods: (first, last) => yearsOf(first, last, (newYear) => [newYear]),
      valueAt: (_band, _day, latitude, longitude) => landClass(seed, latitude, longitude),
    },
  };
}

export function modis(app: FastifyInstance, { seed, nowMs }: World): void {
  const known = products(seed);
  app.get<{ Params: { product: string }; Querystring: Query }>(
    '/api/v1/:product/subset',
    ({ params, query }, reply) => {
      const refuse = (message: string, code = 400) => reply.code(code).type('text/plain').send(message);
      const product = known[params.product];
      if (product === undefined) return refuse('Product not available', 404);
      const latitude = numberOf(query, 'latitude');
      const longitude = numberOf(query, 'longitude');
      if (latitude == null || longitude == null || Math.abs(latitude) > 90 || Math.abs(longitude) > 180)
        return refuse('Latitude or longitude is not valid');
      const band = textOf(query, 'band') ?? '';
      const { units, scale } = product.bands[band] ?? {};
      if (units === undefined) return refuse('Band is not valid for the product');
      const [first, last] = [dayNamed(textOf(query, 'startDate')), dayNamed(textOf(query, 'endDate'))];
      if (first === null || last === null || first > last) return refuse('Dates are not valid');
      const reach = numberOf(query, 'kmAboveBelow') ?? 0;
      if (reach > MAX_REACH_KM) return refuse('Subset is too large');
      if (openSea(latitude, longitude)) return refuse('No tile for this location', 404);
      const newest = Math.floor(nowMs() / DAY_MS) - product.lagDays;
      const periods = product.periods(Math.max(first, product.firstDay), Math.min(last, newest));
      if (periods.length > MAX_COMPOSITES)
        return refuse(
          `Number of modis dates requested (${periods.length}) exceeds the limit of ${MAX_COMPOSITES}`,
        );
      const size = product.pixelM;
      const [column, row] = [
        Math.floor((RADIUS_M * longitude * RADIANS * Math.cos(latitude * RADIANS)) / size),
        Math.floor((RADIUS_M * latitude * RADIANS) / size),
      ];
      const around = Math.round((reach * 1_000) / size);
      const side = 2 * around + 1;
      const pixels = Array.from({ length: side * side }, (_, at) => {
        const north = ((row + around - Math.floor(at / side) + 0.5) * size) / RADIUS_M;
        const east = ((column - around + (at % side) + 0.5) * size) / (RADIUS_M * Math.cos(north));
        return { latitude: north / RADIANS, longitude: east / RADIANS };
      });
      return {
        xllcorner: ((column - around) * size).toFixed(2),
        yllcorner: ((row - around) * size).toFixed(2),
        cellsize: size,
        nrows: side,
        ncols: side,
        band,
        units,
        scale,
        latitude,
        longitude,
        header: 'SANDBOX',
        subset: periods.map((day) => ({
          modis_date: nameOf(day),
          calendar_date: new Date(day * DAY_MS).toISOString().slice(0, 10),
          band,
          tile: 'h00v00',
          proc_date: nameOf(day + product.lagDays),
          data: pixels.map((pixel) => product.valueAt(band, day, inside(pixel.latitude), pixel.longitude)),
        })),
      };
    },
  );
}

/**
 * Whether a place lies in a tile of open sea, which MODIS does not produce: neither the place nor any point of a grid over its
 * tile (ten degrees a side) is on land.
 */
function openSea(latitude: number, longitude: number): boolean {
  const north = Math.min(17, Math.floor((90 - latitude) / 10)) * -10 + 90;
  const west = Math.floor((longitude * Math.cos(latitude * RADIANS)) / 10) * 10;
  for (let at = 0; at < 121; at++) {
    const lat = north - (at % 11);
    const lon = (west + Math.floor(at / 11)) / Math.max(0.02, Math.cos(lat * RADIANS));
    if (Math.abs(lon) <= 180 && isLand(lat, lon)) return false;
  }
  return !isLand(latitude, longitude);
}

/** The latitude, moved to the nearest one on the globe. The middle of a pixel at a pole may lie beyond the pole. */
function inside(latitude: number): number {
  return Math.max(-89.999, Math.min(89.999, latitude));
}

function dayNamed(text: string | undefined): number | null {
  const [, year, ordinal] = /^A(\d{4})(\d{3})$/.exec(text ?? '') ?? [];
  return year === undefined ? null : Date.UTC(Number(year), 0, 1) / DAY_MS + Number(ordinal) - 1;
}

function nameOf(day: number): string {
  const year = new Date(day * DAY_MS).getUTCFullYear();
  return `A${year}${String(day - Date.UTC(year, 0, 1) / DAY_MS + 1).padStart(3, '0')}`;
}
