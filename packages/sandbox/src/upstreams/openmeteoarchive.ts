/** Open-Meteo's archive: soil moisture of past days, null at sea and on the newest days. */
import type { FastifyInstance } from 'fastify';
import { dayName, readOpenMeteo, refuse } from './openmeteo.ts';
import { listOf, type Query, textOf } from './query.ts';
import { soilWetness } from './rain-and-soil.ts';
import type { World } from './world.ts';

const LAG_DAYS = 2;
const DAY_MS = 86_400_000;
/** The water that saturated soil holds, in cubic meters per cubic meter. */
const POROSITY = 0.46;

export function openmeteoarchive(app: FastifyInstance, { seed, nowMs }: World): void {
  app.get<{ Querystring: Query }>('/v1/archive', ({ query }, reply) => {
    const asked = readOpenMeteo(query, nowMs(), {
      cellDegrees: 0.1,
      firstDay: '1940-01-01',
      forecastDays: 0,
    });
    if (typeof asked === 'string') return refuse(reply, asked);
    const names = listOf(textOf(query, 'daily'), 20);
    const unknown = names.find((name) => name !== 'soil_moisture_0_to_7cm_mean');
    if (unknown !== undefined)
      return refuse(
        reply,
        `Data corrupted at path ''. Cannot initialize ForecastVariableDaily from invalid String value ${unknown}.`,
      );
    const { latitude, longitude, first, last } = asked;
    const days = Array.from({ length: last - first + 1 }, (_, at) => first + at);
    const newest = Math.floor(nowMs() / DAY_MS) - LAG_DAYS;
    const values = days.map((day) => {
      const wetness = day > newest ? null : soilWetness(seed, day, latitude, longitude);
      return wetness === null ? null : Math.round(wetness.top * POROSITY * 1_000) / 1_000;
    });
    return {
      latitude,
      longitude,
      generationtime_ms: 0.1,
      utc_offset_seconds: 0,
      timezone: 'GMT',
      timezone_abbreviation: 'GMT',
      elevation: 100,
      daily_units: { time: 'iso8601', soil_moisture_0_to_7cm_mean: 'm³/m³' },
      daily: { time: days.map(dayName), soil_moisture_0_to_7cm_mean: values },
    };
  });
}
