/** Open-Meteo's air quality in the current hour of a cell. Concentrations are in micrograms per cubic meter. */
import type { FastifyInstance } from 'fastify';
import { patches } from './globe.ts';
import { isLand } from './land.ts';
import { keyOf } from './noise.ts';
import { readOpenMeteo, refuse } from './openmeteo.ts';
import { listOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const HOUR_MS = 3_600_000;
const UNITS: Readonly<Record<string, string>> = {
  us_aqi: 'USAQI',
  european_aqi: 'EAQI',
  pm10: 'μg/m³',
  pm2_5: 'μg/m³',
  carbon_monoxide: 'μg/m³',
  nitrogen_dioxide: 'μg/m³',
  sulphur_dioxide: 'μg/m³',
  ozone: 'μg/m³',
  aerosol_optical_depth: '',
};

/** Fine dust (PM2.5) in an hour, counted from 1970, in micrograms per cubic meter: less over the sea than over land. */
export function fineDust(seed: number, hour: number, latitude: number, longitude: number): number {
  const place = patches(keyOf(seed, 'dust'), latitude, longitude, 4);
  const weather = patches(keyOf(seed, `dust:${Math.floor(hour / 6)}`), latitude, longitude, 8);
  const usual = isLand(latitude, longitude) ? 12 : 4;
  return Math.round(usual * Math.exp(0.6 * place + 0.3 * weather) * 10) / 10;
}

/** The air quality index of the US EPA (2024) for fine dust. */
function usIndex(dust: number): number {
  const steps = [
    [0, 9, 0, 50],
    [9, 35.4, 50, 100],
    [35.4, 55.4, 100, 150],
    [55.4, 125.4, 150, 200],
    [125.4, 225.4, 200, 300],
  ] as const;
  const [low, high, from, to] = steps.find(([, top]) => dust <= top) ?? [225.4, 325.4, 300, 500];
  return Math.min(500, Math.round(from + ((to - from) * (dust - low)) / (high - low)));
}

export function openmeteoair(app: FastifyInstance, { seed, nowMs }: World): void {
  app.get<{ Querystring: Query }>('/v1/air-quality', ({ query }, reply) => {
    const asked = readOpenMeteo(query, nowMs(), {
      cellDegrees: 0.4,
      firstDay: '2022-08-01',
      forecastDays: 7,
    });
    if (typeof asked === 'string') return refuse(reply, asked);
    const names = listOf(textOf(query, 'current'), 40);
    const unknown = names.find((name) => UNITS[name] === undefined);
    if (unknown !== undefined)
      return refuse(
        reply,
        `Data corrupted at path ''. Cannot initialize VariableOrDerived from invalid String value ${unknown}.`,
      );
    const { latitude, longitude } = asked;
    const hour = Math.floor(nowMs() / HOUR_MS);
    const dust = fineDust(seed, hour, latitude, longitude);
    const values: Record<string, number> = {
      us_aqi: usIndex(dust),
      european_aqi: Math.round(dust * 1.6),
      pm10: Math.round(dust * 16) / 10,
      pm2_5: dust,
      carbon_monoxide: Math.round(90 + 6 * dust),
      nitrogen_dioxide: Math.round(dust * 8) / 10,
      sulphur_dioxide: Math.round(dust * 2) / 10,
      ozone: Math.round(75 - dust / 2),
      aerosol_optical_depth: Math.round(dust) / 100,
    };
    return {
      latitude,
      longitude,
      generationtime_ms: 0.1,
      utc_offset_seconds: 0,
      timezone: 'GMT',
      timezone_abbreviation: 'GMT',
      elevation: 100,
      current_units: {
        time: 'iso8601',
        interval: 'seconds',
        ...Object.fromEntries(names.map((name) => [name, UNITS[name]])),
      },
      current: {
        time: new Date(hour * HOUR_MS).toISOString().slice(0, 16),
        interval: 3_600,
        ...Object.fromEntries(names.map((name) => [name, values[name]])),
      },
    };
  });
}
