import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';

/** Cells of MERRA-2, which POWER provides at their own resolution: centers at whole multiples of these. */
export const POWER_GRID = { latDegrees: 0.5, lonDegrees: 0.625 } as const;
/** The first day of the record. */
export const POWER_FIRST_DAY = '1981-01-01';

export type PowerParameter = 'PRECTOTCORR' | 'GWETTOP' | 'GWETROOT' | 'GWETPROF';

export interface PowerDay {
  /** YYYY-MM-DD, in UTC. */
  day: string;
  /** In the order of the requested parameters; null when there is no value, or none yet. */
  values: (number | null)[];
}

export interface PowerSeries {
  /** Oldest first. */
  days: PowerDay[];
  /** What the values were made from, as POWER names it, such as `MERRA2`. */
  madeFrom: string[];
  /** By parameter. */
  units: Record<string, string>;
}

/** Anything below this is a fill value, whatever the header says: no quantity of POWER is that far below zero. */
const FILL_BELOW = -900;
/** Such as `IMERG`: a name, and no sentence. */
const NAME_OF_A_SOURCE = /^[\w.() -]{1,60}$/;

const series = z.looseObject({
  properties: z.looseObject({
    parameter: z.record(z.string(), z.record(z.string().regex(/^\d{8}$/), z.number().nullable())),
  }),
  header: z.looseObject({
    fill_value: z.number(),
    sources: z.array(z.string()).max(20).nullish(),
    // Days of local solar time would be different days.
    time_standard: z.literal('UTC'),
  }),
  parameters: z.record(z.string(), z.looseObject({ units: z.string() })),
});

const compact = (day: string) => day.replace(/-/g, '');

/**
 * NASA POWER: daily values of a point, on land and sea. The newest days hold fill values until they are published,
 * which takes days. https://power.larc.nasa.gov/docs/services/api/temporal/daily/
 */
export const power = defineUpstream({
  name: 'power',
  title: 'NASA POWER',
  baseUrl: 'https://power.larc.nasa.gov',
  licence: 'NASA open data, credit asked: NASA Langley Research Center POWER Project',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: 'NASA Langley Research Center POWER Project',
    url: 'https://power.larc.nasa.gov',
  },
  key: 'none',
  requestsPerMinute: 60,
  timeoutMs: 15_000,
  open: (http) => ({
    /**
     * The days from `first` to `last` (YYYY-MM-DD, both included) of the cell that holds a point.
     *
     * @throws UpstreamUnavailable also when a parameter is missing from the reply
     */
    async daily(asked: {
      parameters: readonly PowerParameter[];
      lat: number;
      lon: number;
      first: string;
      last: string;
      /** Whether all of it was published long ago, so that it may be cached for longer. */
      settled: boolean;
    }): Promise<Reply<PowerSeries>> {
      const { parameters, first, last } = asked;
      return http.get({
        path: '/api/temporal/daily/point',
        query: {
          parameters: parameters.join(','),
          community: 'AG',
          longitude: asked.lon,
          latitude: asked.lat,
          start: compact(first),
          end: compact(last),
          format: 'JSON',
          'time-standard': 'UTC',
        },
        schema: series.transform((raw, context): PowerSeries => {
          const columns = parameters.map((name) => raw.properties.parameter[name]);
          if (columns.some((column) => column === undefined)) {
            context.addIssue({ code: 'custom', message: `not all of ${parameters.join(', ')}` });
            return z.NEVER;
          }
          const names = Object.keys(columns[0] ?? {}).sort();
          return {
            days: names.map((name) => ({
              day: `${name.slice(0, 4)}-${name.slice(4, 6)}-${name.slice(6)}`,
              values: columns.map((column) => {
                const value = column?.[name] ?? null;
                return value === null || value <= FILL_BELOW || value === raw.header.fill_value
                  ? null
                  : value;
              }),
            })),
            madeFrom: (raw.header.sources ?? []).filter((name) => NAME_OF_A_SOURCE.test(name)),
            units: Object.fromEntries(
              Object.entries(raw.parameters).map(([name, { units }]) => [name, units]),
            ),
          };
        }),
        freshMs: asked.settled ? 30 * 86_400_000 : 6 * 3_600_000,
        staleMs: 86_400_000,
      });
    },
  }),
  probe: (api) =>
    api.daily({
      parameters: ['PRECTOTCORR'],
      lat: 0,
      lon: 25,
      first: '2024-06-01',
      last: '2024-06-01',
      settled: true,
    }),
});
