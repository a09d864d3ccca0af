import { isoDate, latitude, longitude, numberBetween } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import { POWER_GRID } from '../../upstreams/adapters/power.ts';
import { defineService } from '../define.ts';
import { image, noPicture } from '../shared/earth/map-picture.ts';
import { mayStillCome, observePower } from '../shared/earth/power-cell.ts';

/** Maps of rain by satellites (IMERG) are another product. */
const NO_PICTURE = noPicture('NASA POWER (MERRA-2) has no public map of days.');

export default defineService({
  path: 'earthdata-precipitation',
  name: 'Precipitation',
  tag: 'Satellite Intelligence',
  priceUsd: '0.25',
  featured: true,
  summary:
    'Precipitation of a day at a point in millimeters, and of the days before it, from NASA POWER (MERRA-2).',
  keywords:
    'rain rained raining rainfall rainy precipitation snow snowfall shower showers wet drizzle drought millimeters inches yesterday how much fell monsoon dry umbrella weather past day flurries downpour alps mountains',
  input: z.object({
    lat: latitude,
    lon: longitude,
    date: isoDate.optional().describe('Day in UTC, YYYY-MM-DD; the newest that is published unless given'),
    hoursBack: numberBetween(
      24,
      2_160,
      'How far back the sum reaches, in hours: 24 to 2,160, in whole days',
    ).default(24),
  }),
  output: z.object({
    data: z
      .object({
        precipitationMm24hr: z.number().describe('Millimeters that fell on the day, from 0 to 24 h UTC'),
        precipitationMmHr: z
          .number()
          .describe('The same as a mean rate in millimeters an hour: the day’s sum by 24'),
        precipitationMmPeriod: z
          .number()
          .nullable()
          .describe('Millimeters over periodDays; null when one of the days has no value'),
        periodDays: z
          .number()
          .int()
          .describe('Days of the sum, the observed one included: hoursBack by 24, rounded up'),
        days: z
          .array(
            z.object({
              date: z.string().describe('Day in UTC'),
              precipitationMm: z
                .number()
                .nullable()
                .describe('Millimeters of the day; null where there is no value'),
            }),
          )
          .describe('The days of the period, oldest first'),
        observedAt: z.string().describe('The day that the value is of (YYYY-MM-DD, UTC)'),
        mostRecentGranuleDate: z.string().describe('The same day, by its older name'),
        qualityLabel: z.string().describe('What the value was made from; the source flags no single value'),
        dataResolutionDeg: z.number().describe('Degrees of latitude of a cell'),
        dataResolutionLonDeg: z.number().describe('Degrees of longitude of a cell'),
        gridLat: z.number().describe('Latitude of the middle of the cell that holds the point'),
        gridLon: z.number().describe('Longitude of the middle of the cell that holds the point'),
        distanceKm: z.number().describe('From the point asked for to the middle of the cell'),
        image,
      })
      .describe('The value, and where and when it was observed'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: 37.77, lon: -122.42 },
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon', hours: 'hoursBack' },
  needs: ['power'],
  timeoutMs: 25_000,
  async run({ lat, lon, date, hoursBack }, context) {
    const periodDays = Math.ceil(hoursBack / 24);
    const seen = await observePower(
      { lat, lon, parameters: ['PRECTOTCORR'], date: date ?? null, daysBefore: periodDays - 1 },
      context,
    );
    const millimeters = seen.newest?.values[0] ?? null;
    if (seen.newest === null || millimeters === null) {
      const waits = date === undefined || mayStillCome(date, context.nowMs());
      throw noAnswer(
        waits ? 'NOT_PUBLISHED' : 'NO_DATA',
        waits
          ? `NASA POWER has not published ${date ?? 'the last two weeks'} here yet; it takes some days.`
          : `NASA POWER has no value for ${lat}, ${lon} on ${date}.`,
        'date',
      );
    }
    const { day } = seen.newest;
    const period = seen.days.filter((one) => one.day <= day).slice(-periodDays);
    const known = period.flatMap(({ values: [value] }) => value ?? []);
    const complete = period.length === periodDays && known.length === periodDays;
    const notes: string[] = [];
    if (date === undefined) notes.push(`No date was given: the newest published day is ${day}.`);
    if (!complete) notes.push('precipitationMmPeriod is null: not every day of the period has a value.');
    return answer(
      {
        data: {
          precipitationMm24hr: millimeters,
          precipitationMmHr: thousandths(millimeters / 24),
          precipitationMmPeriod: complete ? thousandths(known.reduce((sum, one) => sum + one, 0)) : null,
          periodDays,
          days: period.map((one) => ({ date: one.day, precipitationMm: one.values[0] ?? null })),
          observedAt: day,
          mostRecentGranuleDate: day,
          qualityLabel: `model reanalysis (${seen.madeFrom}), bias-corrected; no flag for a single value`,
          dataResolutionDeg: POWER_GRID.latDegrees,
          dataResolutionLonDeg: POWER_GRID.lonDegrees,
          gridLat: seen.cell.lat,
          gridLon: seen.cell.lon,
          distanceKm: seen.distanceKm,
          image: NO_PICTURE.image,
        },
        poweredBy: 'NASA POWER (MERRA-2)',
      },
      {
        method:
          'PRECTOTCORR of the cell that holds the point, a sum over the day in UTC; the hourly rate is a mean, no measurement. It is a reanalysis and no picture of a rain satellite such as IMERG.',
        sources: [seen.source],
        notes: [...notes, ...NO_PICTURE.notes],
      },
    );
  },
});

function thousandths(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
