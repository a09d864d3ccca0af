/** Open-Meteo's river discharge for cells of 0.05 degrees, from 1984 until 210 days ahead. It is null at sea. */
import type { FastifyInstance } from 'fastify';
import { patches } from './globe.ts';
import { isLand } from './land.ts';
import { keyOf, smooth } from './noise.ts';
import { dayName, readOpenMeteo, refuse } from './openmeteo.ts';
import { listOf, type Query, textOf } from './query.ts';
import type { World } from './world.ts';

/** The river discharge on a day, counted from 1970-01-01, in cubic meters a second; null at sea. */
export function riverM3s(seed: number, day: number, latitude: number, longitude: number): number | null {
  if (!isLand(latitude, longitude)) return null;
  const usual = 10 ** (0.8 + 0.7 * patches(keyOf(seed, 'rivers'), latitude, longitude, 0.5));
  const weather = smooth(keyOf(seed, `river:${latitude}:${longitude}`), day / 11);
  const season = 0.35 * Math.cos(2 * Math.PI * ((day / 365.25) % 1) - (latitude >= 0 ? 1.5 : 4.6));
  return Math.round(usual * Math.exp(0.45 * weather + season) * 100) / 100;
}

export function openmeteoflood(app: FastifyInstance, { seed, nowMs }: World): void {
  app.get<{ Querystring: Query }>('/v1/flood', ({ query }, reply) => {
    const asked = readOpenMeteo(query, nowMs(), {
      cellDegrees: 0.05,
      firstDay: '1984-01-01',
      forecastDays: 210,
    });
    if (typeof asked === 'string') return refuse(reply, asked);
    const unknown = listOf(textOf(query, 'daily'), 20).find((name) => name !== 'river_discharge');
    if (unknown !== undefined)
      return refuse(
        reply,
        `Data corrupted at path ''. Cannot initialize VariableOrDerived from invalid String value ${unknown}.`,
      );
    const { latitude, longitude, first, last } = asked;
    const days = Array.from({ length: last - first + 1 }, (_, at) => first + at);
    return {
      latitude,
      longitude,
      generationtime_ms: 0.4,
      utc_offset_seconds: 0,
      timezone: 'GMT',
      timezone_abbreviation: 'GMT',
      daily_units: { time: 'iso8601', river_discharge: 'm³/s' },
      daily: {
        time: days.map(dayName),
        river_discharge: days.map((day) => riverM3s(seed, day, latitude, longitude)),
      },
    };
  });
}
