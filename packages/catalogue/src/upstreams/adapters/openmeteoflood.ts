import { defineUpstream, type Reply } from '../define.ts';
import { dailyColumns, OPEN_METEO_KEY } from './open-meteo-place.ts';

/** The first day of the record. */
export const RIVER_RECORD = { title: 'GloFAS river discharge', firstDay: '1984-01-01' } as const;

export interface RiverDischarge {
  /** The middle of the model's cell. */
  lat: number;
  lon: number;
  /** Oldest first; cubic meters a second, null where there is no river cell or no value. */
  days: { day: string; m3s: number | null }[];
}

const discharge = dailyColumns({ river_discharge: 'm³/s' })
  .transform(
    ({ lat, lon, times, columns }): RiverDischarge => ({
      lat,
      lon,
      days: times.map((day, at) => ({ day, m3s: columns.river_discharge[at] ?? null })),
    }),
  )
  .refine(
    ({ days }) => days.every(({ m3s }) => m3s === null || (m3s >= 0 && m3s < 1e7)),
    'no discharge of a river',
  );

/**
 * River discharge by the Global Flood Awareness System, in cells of 5 km, past and forecast. Its `river_discharge_mean`
 * and `_p75` are statistics over the members of a forecast, not a climate. https://open-meteo.com/en/docs/flood-api
 */
export const openmeteoflood = defineUpstream({
  name: 'openmeteoflood',
  title: 'Open-Meteo river discharge',
  baseUrl: 'https://customer-flood-api.open-meteo.com',
  licence:
    'Open-Meteo (CC BY 4.0), contains modified Copernicus Emergency Management Service information (GloFAS)',
  terms: {
    commercialUse: 'allowed',
    note: 'Only by a paid plan: it comes with the key that is required here.',
    attribution: 'Open-Meteo (CC BY 4.0), Copernicus Emergency Management Service',
    url: 'https://open-meteo.com/en/terms',
  },
  documentation: {
    at: 'https://github.com/open-meteo/open-meteo/blob/ba13de1c/openapi/flood.yml',
    readOn: '2026-11-29',
  },
  key: 'required',
  keyFrom: 'https://open-meteo.com/en/pricing',
  authorize: OPEN_METEO_KEY,
  requestsPerMinute: 300,
  timeoutMs: 12_000,
  open: (http) => ({
    /** The days from `first` to `last` (YYYY-MM-DD, both included), which may lie ahead. `settled`: none of them will change. */
    discharge(asked: {
      lat: number;
      lon: number;
      first: string;
      last: string;
      settled: boolean;
    }): Promise<Reply<RiverDischarge>> {
      return http.get({
        path: '/v1/flood',
        query: {
          latitude: asked.lat,
          longitude: asked.lon,
          daily: 'river_discharge',
          start_date: asked.first,
          end_date: asked.last,
        },
        schema: discharge,
        freshMs: asked.settled ? 30 * 86_400_000 : 3 * 3_600_000,
        staleMs: asked.settled ? 30 * 86_400_000 : 3 * 3_600_000,
      });
    },
  }),
  probe: (api) =>
    api.discharge({ lat: 48.1, lon: 16.6, first: '2024-06-01', last: '2024-06-02', settled: true }),
});
