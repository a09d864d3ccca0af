/** NASA POWER: the daily values of a point, from cells of 0.5 by 0.625 degrees. A missing value is the fill value. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { listOf, numberOf, type Query, textOf } from './query.ts';
import { rainMm, soilWetness } from './rain-and-soil.ts';
import type { World } from './world.ts';

const DAY_MS = 86_400_000;
const FILL = -999;
const FIRST_DAY = Date.UTC(1981, 0, 1) / DAY_MS;
/** The number of days until the values of a day are published. */
const LAG_DAYS = 4;
const MAX_DAYS = 20_000;

const PARAMETERS: Readonly<Record<string, { units: string; longname: string }>> = {
  PRECTOTCORR: { units: 'mm/day', longname: 'Precipitation Corrected' },
  GWETTOP: { units: '1', longname: 'Surface Soil Wetness' },
  GWETROOT: { units: '1', longname: 'Root Zone Soil Wetness' },
  GWETPROF: { units: '1', longname: 'Profile Soil Moisture' },
};

export function power(app: FastifyInstance, { seed, nowMs }: World): void {
  function valueAt(parameter: string, day: number, latitude: number, longitude: number): number {
    if (day > Math.floor(nowMs() / DAY_MS) - LAG_DAYS) return FILL;
    if (parameter === 'PRECTOTCORR') return rainMm(seed, day, latitude, longitude);
    const wetness = soilWetness(seed, day, latitude, longitude);
    if (wetness === null) return FILL;
    return parameter === 'GWETTOP' ? wetness.top : parameter === 'GWETROOT' ? wetness.root : wetness.profile;
  }

  app.get<{ Querystring: Query }>('/api/temporal/daily/point', ({ query }, reply) => {
    const latitude = numberOf(query, 'latitude');
    const longitude = numberOf(query, 'longitude');
    const parameters = listOf(textOf(query, 'parameters'), 20);
    const first = dayNamed(textOf(query, 'start'));
    const last = dayNamed(textOf(query, 'end'));
    const unknown = parameters.filter((name) => PARAMETERS[name] === undefined);
    if (parameters.length === 0 || unknown.length > 0) {
      return refuse(reply, `One of your parameters is incorrect: ${unknown.join(', ')}`);
    }
    if (!within(latitude, 90) || !within(longitude, 180))
      return refuse(reply, 'Please provide a valid point');
    if (first === null || last === null || last < first || last - first > MAX_DAYS || first < FIRST_DAY) {
      return refuse(reply, 'The time extent is not valid: start and end as YYYYMMDD, from 19810101 on');
    }
    if (textOf(query, 'community') === undefined) return refuse(reply, 'community is required');
    const [cellLatitude, cellLongitude] = [
      Math.round(latitude / 0.5) * 0.5,
      Math.round(longitude / 0.625) * 0.625,
    ];
    const days = Array.from({ length: last - first + 1 }, (_, at) => first + at);
    return {
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [longitude, latitude, 100] },
      properties: {
        parameter: Object.fromEntries(
          parameters.map((name) => [
            name,
            Object.fromEntries(
              days.map((day) => [nameOf(day), valueAt(name, day, cellLatitude, cellLongitude)]),
            ),
          ]),
        ),
      },
      header: {
        title: 'NASA/POWER Source Native Resolution Daily Data (SANDBOX)',
        api: { version: 'v2.8.0', name: 'POWER Daily API' },
        sources: ['MERRA2'],
        fill_value: FILL,
        time_standard: 'UTC',
        start: nameOf(first),
        end: nameOf(last),
      },
      messages: [],
      parameters: Object.fromEntries(parameters.map((name) => [name, PARAMETERS[name]])),
      times: { data: 0.1, process: 0.01 },
    };
  });
}

function within(value: number | null | undefined, bound: number): value is number {
  return value !== null && value !== undefined && Math.abs(value) <= bound;
}

function dayNamed(text: string | undefined): number | null {
  const [, year, month, day] = /^(\d{4})(\d{2})(\d{2})$/.exec(text ?? '') ?? [];
  const ms = Date.parse(`${year}-${month}-${day}T00:00:00Z`);
  return Number.isNaN(ms) ? null : ms / DAY_MS;
}

function nameOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10).replace(/-/g, '');
}

function refuse(reply: FastifyReply, message: string) {
  return reply.code(422).send({
    header:
      'The POWER Daily API failed to complete your request: please review the "messages" field for details.',
    messages: [message],
  });
}
