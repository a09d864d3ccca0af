import { isoDate, latitude, longitude } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import { VEGETATION_MAP } from '../../upstreams/adapters/gibs-maps.ts';
import {
  MODIS_MAX_COMPOSITES,
  type ModisSubset,
  VEGETATION_INDEX,
  type VegetationProduct,
  VIIRS_VEGETATION_INDEX,
} from '../../upstreams/adapters/modis.ts';
import { defineService, type RunContext } from '../define.ts';
import { distanceKm, type Place } from '../shared/earth/great-circle.ts';
import { boxAround, image, noPicture, pictureOf, USUAL_REACH_KM } from '../shared/earth/map-picture.ts';
import { assertObserved, dayOf, daysBetween, daysFrom } from '../shared/earth/observation-day.ts';

/** Terra's newest composite is older than this only where its product has ended or stands still: they come about three weeks late. */
const LATE_DAYS = 48;
/** Below this index the ground is too bare for vegetation to be in good or bad health. */
const BARE = 0.2;
const STEADY = 0.05;
/** The days between the two values of a trend. */
const TREND_DAYS = 48;

export default defineService({
  path: 'vegetation',
  name: 'Vegetation Health',
  tag: 'Satellite Intelligence',
  priceUsd: '0.15',
  summary:
    'NDVI and EVI of the 250 m pixel at a point (500 m where Terra has ended), its quality, its last months, and its change from other years.',
  keywords:
    'vegetation plants plant crop crops ndvi evi green greenness healthy growing growth season drought stress farm field forest agriculture harvest grass pasture leaves farmer yield corn wheat maize rice vineyard lawn plantation doing',
  input: z.object({
    lat: latitude,
    lon: longitude,
    date: isoDate
      .optional()
      .describe('Day in UTC, YYYY-MM-DD, whose 16-day composite is meant; the newest unless given'),
  }),
  output: z.object({
    data: z
      .object({
        ndvi: z.number().describe('Normalized difference vegetation index, -0.2 to 1'),
        evi: z
          .number()
          .nullable()
          .describe('Enhanced vegetation index, -0.2 to 1; null where the source has none'),
        coverClass: z
          .enum(['water, snow or ice', 'bare', 'sparse', 'moderate', 'dense'])
          .describe('By NDVI: below 0, 0.2, 0.4, 0.6, and from 0.6 on'),
        healthStatus: z
          .enum(['stressed', 'moderate', 'healthy', 'excellent'])
          .nullable()
          .describe(
            'By the anomaly: below -0.1, -0.03, 0.05, and from 0.05 on; null without one or on bare ground',
          ),
        anomaly: z
          .number()
          .nullable()
          .describe(
            'NDVI less its mean at the same days of the two years before; null where these have no value',
          ),
        trend: z
          .enum(['rising', 'steady', 'falling'])
          .nullable()
          .describe(
            'Against 48 days before: by more than 0.05, or less; null where that composite is missing',
          ),
        quality: z
          .enum(['good', 'marginal', 'snow or ice', 'cloudy'])
          .describe('The source’s flag of the pixel'),
        product: z
          .enum([VEGETATION_INDEX.product, VIIRS_VEGETATION_INDEX.product])
          .describe('Whose composite it is: MOD13Q1 of Terra, or VNP13A1 of Suomi NPP where Terra has none'),
        compositeDate: z.string().describe('First day of the 16 days of the composite (YYYY-MM-DD, UTC)'),
        observedAt: z.string().describe('The same day'),
        compositeEnd: z.string().describe('Last day of the composite'),
        series: z
          .array(
            z.object({
              date: z.string().describe('First day of the composite'),
              ndvi: z.number().nullable().describe('NDVI; null where the pixel has none'),
              quality: z.string().nullable().describe('Flag of the pixel; null where it has none'),
            }),
          )
          .describe('The composites of the last months, oldest first'),
        dataResolutionM: z.number().describe('Side of the pixel in meters'),
        pixelLat: z.number().describe('Latitude of the pixel’s middle'),
        pixelLon: z.number().describe('Longitude of the pixel’s middle'),
        distanceKm: z.number().describe('From the point asked for to the pixel’s middle'),
        image,
      })
      .describe('The pixel and its last months'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: 41.6, lon: -93.6 },
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon' },
  needs: ['modis'],
  mayUse: ['pictures'],
  timeoutMs: 25_000,
  async run({ lat, lon, date }, context) {
    if (date !== undefined) assertObserved(date, context.nowMs(), VEGETATION_INDEX);
    const { seen, found, product, ended } = await compositeOf({ lat, lon }, date, context);
    const ndvi = found.value;
    const rank = seen.reliability.find(({ day }) => day === found.day)?.value ?? null;
    const quality = qualityOf(product, rank) ?? 'cloudy';
    const before = await Promise.all(
      [1, 2].map((years) => sameDays(product, { lat, lon }, found.day, years, context)),
    );
    const years = before.flatMap(({ value }) => value ?? []);
    const anomaly =
      years.length < 2 ? null : round(ndvi - years.reduce((sum, one) => sum + one, 0) / years.length);
    const earlier = seen.ndvi.find(({ day }) => daysBetween(day, found.day) === TREND_DAYS)?.value ?? null;
    const shown = ended
      ? noPicture('its map is drawn of Terra’s composites alone.')
      : mapOf({ lat, lon }, found.day, context);
    const notes: string[] = [...shown.notes];
    if (ended)
      notes.push(`${VEGETATION_INDEX.title} has no composite for this day: ${product.title} stands for it.`);
    if (date === undefined) notes.push(`No date was given: the newest composite begins on ${found.day}.`);
    if (quality !== 'good')
      notes.push(`The pixel is flagged as ${quality}: the index may say more of that than of plants.`);
    if (anomaly === null)
      notes.push('anomaly and healthStatus are null: the years before have no value at these days.');
    else if (ndvi < BARE) notes.push('healthStatus is null: the ground is bare, or water, snow or ice.');
    return answer(
      {
        data: {
          ndvi,
          evi: seen.evi.find(({ day }) => day === found.day)?.value ?? null,
          coverClass: coverOf(ndvi),
          healthStatus: anomaly === null || ndvi < BARE ? null : healthOf(anomaly),
          anomaly,
          trend: earlier === null ? null : trendOf(ndvi - earlier),
          quality,
          product: product.product,
          compositeDate: found.day,
          observedAt: found.day,
          compositeEnd: daysFrom(found.day, product.everyDays - 1),
          series: seen.ndvi.map(({ day, value }) => ({
            date: day,
            ndvi: value,
            quality: qualityOf(product, seen.reliability.find((one) => one.day === day)?.value ?? null),
          })),
          dataResolutionM: Math.round(seen.pixelMeters * 10) / 10,
          pixelLat: seen.pixel.lat,
          pixelLon: seen.pixel.lon,
          distanceKm: distanceKm({ lat, lon }, seen.pixel),
          image: shown.image,
        },
        poweredBy: `${product.title} through ORNL DAAC`,
      },
      {
        method:
          'The pixel that holds the point in 16-day composites (the best observation of each period), stored values by 0.0001. The anomaly is against the mean of the same composite one and two years before.',
        sources: [...seen.sources, ...before.map(({ source }) => source)].map((source) => ({
          ...source,
          asOf: `${found.day}T00:00:00.000Z`,
        })),
        notes,
      },
    );
  },
});

interface Value {
  day: string;
  /** Null where the pixel holds a fill value. */
  value: number | null;
}

type Seen = Awaited<ReturnType<typeof observe>>;
/** The products as one type, so that either can stand for the other. */
type Sold = typeof VEGETATION_INDEX | typeof VIIRS_VEGETATION_INDEX;

interface Composite {
  seen: Seen & { pixel: Place };
  found: { day: string; value: number };
  product: Sold;
  /** Whether the successor stands for Terra. */
  ended: boolean;
}

/**
 * The composite that holds a day, or the newest: of Terra, and of its successor where Terra has none.
 *
 * @throws noAnswer at sea, and where neither has published it
 */
async function compositeOf(
  place: Place,
  date: string | undefined,
  context: RunContext<'modis'>,
): Promise<Composite> {
  const last = date ?? dayOf(context.nowMs());
  const terra = await observe(VEGETATION_INDEX, place, last, context);
  const ofTerra = newestOf(terra);
  const isSea = terra.ndvi.length > 0 && ofTerra === null;
  const oldest = date === undefined ? LATE_DAYS : VEGETATION_INDEX.everyDays;
  const isThere = ofTerra !== null && daysBetween(ofTerra.day, last) < oldest;
  const viirs =
    isThere || isSea || last < VIIRS_VEGETATION_INDEX.firstDay
      ? null
      : await observe(VIIRS_VEGETATION_INDEX, place, last, context);
  const ofViirs = viirs === null ? null : newestOf(viirs);
  const ended = ofViirs !== null && (ofTerra === null || ofViirs.day > ofTerra.day);
  const [seen, found, product] =
    ended && viirs !== null ? [viirs, ofViirs, VIIRS_VEGETATION_INDEX] : [terra, ofTerra, VEGETATION_INDEX];
  const { pixel } = seen;
  if (isSea || (pixel === null && (viirs?.pixel ?? null) === null)) {
    throw noAnswer(
      'NOT_LAND',
      `${place.lat}, ${place.lon} is sea or open water: ${VEGETATION_INDEX.title} has no pixel there.`,
      'lat',
    );
  }
  if (
    pixel === null ||
    found === null ||
    (date !== undefined && daysBetween(found.day, date) >= product.everyDays)
  ) {
    throw noAnswer(
      'NOT_PUBLISHED',
      `There is no composite that holds ${date ?? 'the last months'} yet: they come about three weeks late.`,
      'date',
    );
  }
  return { seen: { ...seen, pixel }, found, product, ended };
}

function newestOf({ ndvi }: Seen): { day: string; value: number } | null {
  const found = ndvi.findLast(({ value }) => value !== null);
  return found === undefined || found.value === null ? null : { day: found.day, value: found.value };
}

function qualityOf({ quality }: VegetationProduct, rank: number | null) {
  return rank === null ? null : (quality[rank] ?? null);
}

function mapOf(place: Place, day: string, { pictures }: RunContext<'modis'>) {
  return pictureOf(pictures, {
    map: VEGETATION_MAP,
    time: day,
    box: boxAround(place, USUAL_REACH_KM),
    marker: place,
  });
}

/** The two indices and the quality flag of the pixel that holds a point, in the months up to a day. */
async function observe(
  asked: VegetationProduct,
  place: Place,
  last: string,
  { upstreams }: RunContext<'modis'>,
) {
  const { product, ndvi, evi, reliability, stepDays } = asked;
  const first = daysFrom(last, 1 - (MODIS_MAX_COMPOSITES - 1) * stepDays);
  const [index, enhanced, rank] = await Promise.all(
    [ndvi, evi, reliability].map((band) =>
      upstreams.modis.pixels({ product, band, ...place, first, last, reachKm: 0 }),
    ),
  );
  if (index === undefined || enhanced === undefined || rank === undefined)
    throw new Error('three bands were asked for');
  const pixel = index.value?.composites[0]?.pixels[0] ?? null;
  return {
    ndvi: indexOf(index.value, asked),
    evi: indexOf(enhanced.value, asked),
    reliability: (rank.value?.composites ?? []).map(
      ({ day, pixels: [one] }): Value => ({ day, value: one?.value ?? null }),
    ),
    // A tile without a composite yet has a pixel that was never observed.
    pixel: pixel ?? (index.value === null ? null : { ...place, value: 0 }),
    pixelMeters: index.value?.pixelMeters ?? 0,
    sources: [index, enhanced, rank].map(({ source }): Source => source),
  };
}

/** Stored values as an index. Valid are -2,000 to 10,000; fill values lie below. */
function indexOf(subset: ModisSubset | null, { scale }: VegetationProduct): Value[] {
  return (subset?.composites ?? []).map(({ day, pixels: [pixel] }) => ({
    day,
    value:
      pixel !== undefined && pixel.value >= -2_000 && pixel.value <= 10_000
        ? round(pixel.value * scale)
        : null,
  }));
}

/**
 * The composite of the same days, this many years before. Composites begin anew each 1 January, so the date is the same
 * except for leap days.
 */
async function sameDays(
  asked: VegetationProduct,
  place: Place,
  day: string,
  years: number,
  { upstreams }: RunContext<'modis'>,
) {
  const then = `${Number(day.slice(0, 4)) - years}${day.slice(4)}`.replace('-02-29', '-02-28');
  const { product, ndvi: band } = asked;
  const { value, source } = await upstreams.modis.pixels({
    product,
    band,
    ...place,
    first: daysFrom(then, -1),
    last: daysFrom(then, 1),
    reachKm: 0,
  });
  return { value: indexOf(value, asked)[0]?.value ?? null, source };
}

function coverOf(ndvi: number) {
  if (ndvi < 0) return 'water, snow or ice' as const;
  if (ndvi < BARE) return 'bare' as const;
  return ndvi < 0.4 ? ('sparse' as const) : ndvi < 0.6 ? ('moderate' as const) : ('dense' as const);
}

function healthOf(anomaly: number) {
  if (anomaly < -0.1) return 'stressed' as const;
  return anomaly < -0.03
    ? ('moderate' as const)
    : anomaly < 0.05
      ? ('healthy' as const)
      : ('excellent' as const);
}

function trendOf(change: number) {
  return change > STEADY
    ? ('rising' as const)
    : change < -STEADY
      ? ('falling' as const)
      : ('steady' as const);
}

function round(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
