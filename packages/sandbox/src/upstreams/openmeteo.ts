/** The parts that the stand-ins of Open-Meteo's APIs share: the customer's key, the cell, the days and refusals. */
import type { FastifyReply } from 'fastify';
import { numberOf, type Query, textOf } from './query.ts';

const DAY_MS = 86_400_000;
/** The keys that the sandbox accepts. Open-Meteo's addresses for customers want a key. */
const KEY = /^sandbox-\w+/;

export interface OpenMeteoRequest {
  /** The middle of the model's cell, in degrees. */
  latitude: number;
  longitude: number;
  /** The first and the last day, counted from 1970-01-01 in UTC. */
  first: number;
  last: number;
}

/** Reads key, place and days from a query. Returns the reason as text if one of them is not valid. */
export function readOpenMeteo(
  query: Query,
  nowMs: number,
  model: { cellDegrees: number; firstDay: string; forecastDays: number },
): OpenMeteoRequest | string {
  if (!KEY.test(textOf(query, 'apikey') ?? '')) return 'The supplied API key is invalid.';
  const latitude = numberOf(query, 'latitude');
  const longitude = numberOf(query, 'longitude');
  if (latitude == null || Math.abs(latitude) > 90)
    return `Latitude must be in range of -90 to 90°. Given: ${textOf(query, 'latitude')}.`;
  if (longitude == null || Math.abs(longitude) > 180)
    return `Longitude must be in range of -180 to 180°. Given: ${textOf(query, 'longitude')}.`;
  const today = Math.floor(nowMs / DAY_MS);
  const named = (name: string, otherwise: number) => {
    const text = textOf(query, name);
    return text === undefined ? otherwise : Date.parse(`${text}T00:00:00Z`) / DAY_MS;
  };
  const first = named('start_date', today - (numberOf(query, 'past_days') ?? 0));
  const last = named('end_date', today + (numberOf(query, 'forecast_days') ?? 7) - 1);
  const allowed = { first: Date.parse(model.firstDay) / DAY_MS, last: today + model.forecastDays };
  if (!(first >= allowed.first && last <= allowed.last && first <= last))
    return `Parameter 'start_date' or 'end_date' is out of allowed range from ${dayName(allowed.first)} to ${dayName(allowed.last)}`;
  const middle = (value: number) =>
    Math.round((Math.floor(value / model.cellDegrees) + 0.5) * model.cellDegrees * 1e4) / 1e4;
  return {
    latitude: Math.min(90, middle(latitude)),
    longitude: Math.min(180, middle(longitude)),
    first,
    last,
  };
}

export function dayName(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

export function refuse(reply: FastifyReply, reason: string) {
  return reply.code(400).send({ error: true, reason });
}
