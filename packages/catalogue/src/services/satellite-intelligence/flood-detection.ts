import { isoDate, latitude, longitude } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import { returnLevels } from '../../quant/return-levels.ts';
import { FLOOD_MAPS } from '../../upstreams/adapters/gibs-maps.ts';
import { RIVER_RECORD, type RiverDischarge } from '../../upstreams/adapters/openmeteoflood.ts';
import { defineService } from '../define.ts';
import type { MapPictures } from '../map-pictures.ts';
import { distanceKm, type Place } from '../shared/earth/great-circle.ts';
import {
  boxAround,
  image,
  noPicture,
  pictureOf,
  type Shown,
  USUAL_REACH_KM,
} from '../shared/earth/map-picture.ts';
import { assertObserved, dayOf, daysBetween, daysFrom } from '../shared/earth/observation-day.ts';

const RECORD_YEARS = 20;
const FORECAST_DAYS = 10;
/** How many days before and after a day of the year are compared with it. */
const SEASON_DAYS = 15;
const FEWEST_DAYS_A_YEAR = 350;
const FEWEST_YEARS = 10;
/** The discharge in cubic meters a second below which a cell has no significant river. */
const BROOK_M3S = 1;
const NOTHING_M3S = 0.05;

export default defineService({
  path: 'flood-detection',
  name: 'Flood Detection',
  tag: 'Satellite Intelligence',
  priceUsd: '0.25',
  summary:
    'The discharge of the river at a point, now and ten days ahead, against its floods of 2, 5 and 20 years.',
  keywords:
    'flood floods flooded flooding river rivers overflow overflows water level high discharge inundation dam burst bank banks rise rising swollen stream next week forecast warning risk dyke levee rhine danube mississippi deluge submerged',
  input: z.object({
    lat: latitude,
    lon: longitude,
    date: isoDate
      .optional()
      .describe('Day in UTC, YYYY-MM-DD, from 1984 on; today and the days ahead unless given'),
  }),
  output: z.object({
    data: z
      .object({
        floodRisk: z
          .enum(['low', 'moderate', 'high', 'severe'])
          .describe('Below the 2-year flood, from it, from the 5-year and from the 20-year flood on'),
        riverDischargeM3s: z.number().describe('Cubic meters a second on observedAt'),
        percentile: z
          .number()
          .describe('Percent of the days around this time of the year, in the record, that had less'),
        peak: z
          .object({
            date: z.string().describe('Day of the peak'),
            riverDischargeM3s: z.number().describe('Cubic meters a second on that day'),
          })
          .describe(
            'The most from observedAt to ten days ahead, which floodRisk is of; of a past day, that day’s',
          ),
        returnLevelsM3s: z
          .object({
            years2: z.number().describe('Reached once in 2 years'),
            years5: z.number().describe('Reached once in 5 years'),
            years20: z.number().describe('Reached once in 20 years'),
          })
          .describe('Floods of the record in cubic meters a second'),
        forecast: z
          .array(
            z.object({
              date: z.string().describe('Day'),
              riverDischargeM3s: z
                .number()
                .nullable()
                .describe('Cubic meters a second; null where there is none'),
            }),
          )
          .describe('The days ahead; empty for a past day'),
        product: z
          .literal('GloFAS river discharge')
          .describe('The model whose discharge it is; image.layer names the satellites of the picture'),
        quality: z.string().describe('What the values are: the source flags no single one'),
        observedAt: z.string().describe('Day of riverDischargeM3s (YYYY-MM-DD, UTC)'),
        recordYears: z.number().int().describe('Whole years that the levels are from'),
        dataResolutionKm: z.number().describe('Side of a cell of the model'),
        gridLat: z.number().describe('Latitude of the middle of the cell'),
        gridLon: z.number().describe('Longitude of the middle of the cell'),
        distanceKm: z.number().describe('From the point asked for to the middle of the cell'),
        image,
      })
      .describe('The river at the point'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: 48.2, lon: 15.6 },
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon' },
  needs: ['openmeteoflood'],
  mayUse: ['pictures'],
  timeoutMs: 25_000,
  async run({ lat, lon, date }, { upstreams, nowMs, pictures }) {
    const today = dayOf(nowMs());
    if (date !== undefined) assertObserved(date, nowMs(), RIVER_RECORD);
    const day = date ?? today;
    const lastYear = Number(today.slice(0, 4)) - 1;
    const ask = (first: string, last: string, settled: boolean) =>
      upstreams.openmeteoflood.discharge({ lat, lon, first, last, settled });
    const [record, recent] = await Promise.all([
      ask(`${lastYear - RECORD_YEARS + 1}-01-01`, `${lastYear}-12-31`, true),
      ask(day, day === today ? daysFrom(day, FORECAST_DAYS) : day, daysBetween(day, today) > 30),
    ]);
    const years = maximaOf(record.value);
    const now = recent.value.days.find((one) => one.day === day)?.m3s ?? null;
    // Where nothing flows there is no flood: a threshold of zero would be reached every day.
    if (years.length < FEWEST_YEARS || returnLevels(years).level(2) < NOTHING_M3S) {
      throw noAnswer(
        'NO_RIVER',
        `${lat}, ${lon} is sea, ice or without a river: the model has no discharge there.`,
        'lat',
      );
    }
    if (now === null)
      throw noAnswer('NOT_PUBLISHED', `The model has no discharge of ${day} here yet.`, 'date');
    const { level } = returnLevels(years);
    const peak = recent.value.days.reduce<{ day: string; m3s: number }>(
      (most, one) => (one.m3s !== null && one.m3s > most.m3s ? { day: one.day, m3s: one.m3s } : most),
      { day, m3s: now },
    );
    const levels = {
      years2: hundredths(level(2)),
      years5: hundredths(level(5)),
      years20: hundredths(level(20)),
    };
    const shown = waterSeen(pictures, { lat, lon }, day, today);
    const notes = [
      'Discharge tells that a river is high, not which ground it covers. The cell’s river may be another than the one you mean: compare the distance.',
      ...shown.notes,
    ];
    if (level(2) < BROOK_M3S) notes.push('The cell holds a brook at most: its levels say little.');
    return answer(
      {
        data: {
          floodRisk: riskOf(peak.m3s, levels),
          riverDischargeM3s: now,
          percentile: percentileOf(now, day, record.value),
          peak: { date: peak.day, riverDischargeM3s: peak.m3s },
          returnLevelsM3s: levels,
          forecast: recent.value.days
            .filter((one) => one.day > day)
            .map((one) => ({ date: one.day, riverDischargeM3s: one.m3s })),
          product: 'GloFAS river discharge' as const,
          quality: 'hydrological model (GloFAS), no gauge; no flag for a single value',
          observedAt: day,
          recordYears: years.length,
          dataResolutionKm: 5,
          gridLat: recent.value.lat,
          gridLon: recent.value.lon,
          distanceKm: distanceKm({ lat, lon }, recent.value),
          image: shown.image,
        },
        poweredBy: 'Copernicus GloFAS through Open-Meteo',
      },
      {
        method: `Daily discharge of the cell; levels from the greatest day of each whole year of the last ${RECORD_YEARS}, by a Gumbel distribution fitted with L-moments (as GloFAS does); the percentile is among the days within ${SEASON_DAYS} days of this time of the year.`,
        sources: [
          { ...recent.source, asOf: `${day}T00:00:00.000Z` },
          { ...record.source, asOf: `${lastYear}-12-31T00:00:00.000Z` },
        ],
        notes,
      },
    );
  },
});

/** The satellites' own map of flood water, which is no part of the model: the newest whole day up to the one asked for. */
function waterSeen(pictures: MapPictures | undefined, place: Place, day: string, today: string): Shown {
  const map = FLOOD_MAPS.find(({ firstDay }) => day >= firstDay);
  if (map === undefined) return noPicture(`the maps of flood water begin on ${FLOOD_MAPS.at(-1)?.firstDay}.`);
  return pictureOf(pictures, {
    map,
    time: day === today ? daysFrom(today, -1) : day,
    box: boxAround(place, USUAL_REACH_KM),
    marker: place,
  });
}

/** The greatest discharge of each year that is known nearly day by day. */
function maximaOf({ days }: RiverDischarge): number[] {
  const byYear = new Map<string, number[]>();
  for (const { day, m3s } of days) {
    if (m3s === null) continue;
    const year = day.slice(0, 4);
    const known = byYear.get(year);
    if (known === undefined) byYear.set(year, [m3s]);
    else known.push(m3s);
  }
  return [...byYear.values()]
    .filter((known) => known.length >= FEWEST_DAYS_A_YEAR)
    .map((known) => Math.max(...known));
}

function percentileOf(m3s: number, day: string, { days }: RiverDischarge): number {
  const ordinal = (of: string) => daysBetween(`${of.slice(0, 4)}-01-01`, of);
  const season = days.filter((one) => {
    const apart = Math.abs(ordinal(one.day) - ordinal(day));
    return one.m3s !== null && Math.min(apart, 365 - apart) <= SEASON_DAYS;
  });
  const below = season.filter((one) => (one.m3s ?? 0) < m3s).length;
  return Math.round((1_000 * below) / Math.max(1, season.length)) / 10;
}

function riskOf(m3s: number, levels: { years2: number; years5: number; years20: number }) {
  if (m3s >= levels.years20) return 'severe' as const;
  if (m3s >= levels.years5) return 'high' as const;
  return m3s >= levels.years2 ? ('moderate' as const) : ('low' as const);
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
