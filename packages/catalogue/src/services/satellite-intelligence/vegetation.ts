import { isoDate, latitude, longitude } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import { VEGETATION_MAP } from '../../upstreams/adapters/gibs-maps.ts';
import { MODIS_MAX_COMPOSITES, type ModisSubset, VEGETATION_INDEX } from '../../upstreams/adapters/modis.ts';
import { defineService, type RunContext } from '../define.ts';
import { distanceKm, type Place } from '../shared/earth/great-circle.ts';
import { boxAround, image, pictureOf, USUAL_REACH_KM } from '../shared/earth/map-picture.ts';
import { assertObserved, dayOf, daysBetween, daysFrom } from '../shared/earth/observation-day.ts';

const WINDOW_DAYS = (MODIS_MAX_COMPOSITES - 1) * VEGETATION_INDEX.everyDays - 1;
/** The meaning of the pixel's own rank; https://lpdaac.usgs.gov/products/mod13q1v061/ */
const QUALITY: Readonly<Record<number, 'good' | 'marginal' | 'snow or ice' | 'cloudy'>> = {
  0: 'good',
  1: 'marginal',
  2: 'snow or ice',
  3: 'cloudy',
};
/** Below this index the ground is too bare for vegetation to be in good or bad health. */
const BARE = 0.2;
const STEADY = 0.05;
/** The number of composites between the two values of a trend: 48 days. */
const TREND_STEPS = 3;

export default defineService({
  path: 'vegetation',
  name: 'Vegetation Health',
  tag: 'Satellite Intelligence',
  priceUsd: '0.15',
  summary:
    'NDVI and EVI of the 250 m pixel at a point, its quality, its last months, and its change from other years.',
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
    const today = dayOf(context.nowMs());
    if (date !== undefined) assertObserved(date, context.nowMs(), VEGETATION_INDEX);
    const seen = await observe({ lat, lon }, date ?? today, context);
    const at = seen.ndvi.findLastIndex(({ value }) => value !== null);
    const found = seen.ndvi[at];
    if (seen.pixel === null || (seen.ndvi.length > 0 && found === undefined)) {
      throw noAnswer(
        'NOT_LAND',
        `${lat}, ${lon} is sea or open water: ${VEGETATION_INDEX.title} has no pixel there.`,
        'lat',
      );
    }
    if (
      found?.value === undefined ||
      found.value === null ||
      (date !== undefined && daysBetween(found.day, date) >= VEGETATION_INDEX.everyDays)
    ) {
      throw noAnswer(
        'NOT_PUBLISHED',
        `There is no composite that holds ${date ?? 'the last months'} yet: they come about three weeks late.`,
        'date',
      );
    }
    const ndvi = found.value;
    const rank = seen.reliability.find(({ day }) => day === found.day)?.value ?? null;
    const quality = QUALITY[rank ?? 3] ?? 'cloudy';
    const before = await Promise.all(
      [1, 2].map((years) => sameDays({ lat, lon }, found.day, years, context)),
    );
    const years = before.flatMap(({ value }) => value ?? []);
    const anomaly =
      years.length < 2 ? null : round(ndvi - years.reduce((sum, one) => sum + one, 0) / years.length);
    const earlier =
      seen.ndvi.find(({ day }) => daysBetween(day, found.day) === TREND_STEPS * VEGETATION_INDEX.everyDays)
        ?.value ?? null;
    const shown = pictureOf(context.pictures, {
      map: VEGETATION_MAP,
      time: found.day,
      box: boxAround({ lat, lon }, USUAL_REACH_KM),
      marker: { lat, lon },
    });
    const notes: string[] = [...shown.notes];
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
          compositeDate: found.day,
          observedAt: found.day,
          compositeEnd: daysFrom(found.day, VEGETATION_INDEX.everyDays - 1),
          series: seen.ndvi.map(({ day, value }) => ({
            date: day,
            ndvi: value,
            quality: QUALITY[seen.reliability.find((one) => one.day === day)?.value ?? -1] ?? null,
          })),
          dataResolutionM: Math.round(seen.pixelMeters * 10) / 10,
          pixelLat: seen.pixel.lat,
          pixelLon: seen.pixel.lon,
          distanceKm: distanceKm({ lat, lon }, seen.pixel),
          image: shown.image,
        },
        poweredBy: `${VEGETATION_INDEX.title} through ORNL DAAC`,
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

/** The two indices and the quality flag of the pixel that holds a point, in the months up to a day. */
async function observe(place: Place, last: string, { upstreams }: RunContext<'modis'>) {
  const first = daysFrom(last, -WINDOW_DAYS);
  const { product, ndvi, evi, reliability } = VEGETATION_INDEX;
  const [index, enhanced, rank] = await Promise.all(
    [ndvi, evi, reliability].map((band) =>
      upstreams.modis.pixels({ product, band, ...place, first, last, reachKm: 0 }),
    ),
  );
  if (index === undefined || enhanced === undefined || rank === undefined)
    throw new Error('three bands were asked for');
  const pixel = index.value?.composites[0]?.pixels[0] ?? null;
  return {
    ndvi: indexOf(index.value),
    evi: indexOf(enhanced.value),
    reliability: (rank.value?.composites ?? []).map(
      ({ day, pixels: [one] }): Value => ({ day, value: one?.value ?? null }),
    ),
    // A tile without a composite yet has a pixel that was never observed.
    pixel: pixel ?? (index.value === null ? null : { ...place, value: 0 }),
    pixelMeters: index.value?.pixelMeters ?? 0,
    sources: [index, enhanced, rank].map(({ source }): Source => source),
  };
}

/** Stored values as an index. Valid are -2,000 to 10,000; the fill value is -3,000. */
function indexOf(subset: ModisSubset | null): Value[] {
  return (subset?.composites ?? []).map(({ day, pixels: [pixel] }) => ({
    day,
    value:
      pixel !== undefined && pixel.value >= -2_000 && pixel.value <= 10_000
        ? round(pixel.value * VEGETATION_INDEX.scale)
        : null,
  }));
}

/**
 * The composite of the same days, this many years before. Composites begin anew each 1 January, so the date is the same
 * except for leap days.
 */
async function sameDays(place: Place, day: string, years: number, { upstreams }: RunContext<'modis'>) {
  const then = `${Number(day.slice(0, 4)) - years}${day.slice(4)}`.replace('-02-29', '-02-28');
  const { product, ndvi: band } = VEGETATION_INDEX;
  const { value, source } = await upstreams.modis.pixels({
    product,
    band,
    ...place,
    first: daysFrom(then, -1),
    last: daysFrom(then, 1),
    reachKm: 0,
  });
  return { value: indexOf(value)[0]?.value ?? null, source };
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
