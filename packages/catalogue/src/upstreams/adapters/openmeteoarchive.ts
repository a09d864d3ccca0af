import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';
import { dailyColumns, OPEN_METEO_KEY } from './open-meteo-place.ts';

export interface SoilMoisture {
  /** The middle of the model's cell. */
  lat: number;
  lon: number;
  /** Cubic meters of water in a cubic meter of soil, mean of the day; null at sea and where there is none yet. */
  surfaceM3M3: number | null;
}

const columns = dailyColumns({ soil_moisture_0_to_7cm_mean: 'm³/m³' }).transform(
  ({ lat, lon, columns: { soil_moisture_0_to_7cm_mean: values } }): SoilMoisture => ({
    lat,
    lon,
    surfaceM3M3: values[0] ?? null,
  }),
);
const plausible = columns.pipe(
  z.object({ lat: z.number(), lon: z.number(), surfaceM3M3: z.number().min(0).max(1).nullable() }),
);

/** Past weather by the reanalyses ERA5 and ERA5-Land. https://open-meteo.com/en/docs/historical-weather-api */
export const openmeteoarchive = defineUpstream({
  name: 'openmeteoarchive',
  title: 'Open-Meteo historical weather',
  baseUrl: 'https://customer-archive-api.open-meteo.com',
  licence: 'Open-Meteo (CC BY 4.0), contains modified Copernicus Climate Change Service information',
  terms: {
    commercialUse: 'allowed',
    note: 'Only by a paid plan: it comes with the key that is required here.',
    attribution: 'Open-Meteo (CC BY 4.0), Copernicus Climate Change Service',
    url: 'https://open-meteo.com/en/terms',
  },
  documentation: {
    at: 'https://github.com/open-meteo/open-meteo/blob/ba13de1c/openapi/historical-weather.yml',
    readOn: '2026-11-29',
  },
  key: 'required',
  keyFrom: 'https://open-meteo.com/en/pricing',
  authorize: OPEN_METEO_KEY,
  requestsPerMinute: 120,
  timeoutMs: 8_000,
  open: (http) => ({
    /** Soil moisture from 0 to 7 cm on a day (YYYY-MM-DD, UTC). */
    soilMoisture: ({
      lat,
      lon,
      day,
    }: {
      lat: number;
      lon: number;
      day: string;
    }): Promise<Reply<SoilMoisture>> =>
      http.get({
        path: '/v1/archive',
        query: {
          latitude: lat,
          longitude: lon,
          start_date: day,
          end_date: day,
          daily: 'soil_moisture_0_to_7cm_mean',
          timezone: 'GMT',
        },
        schema: plausible,
        freshMs: 6 * 3_600_000,
        staleMs: 86_400_000,
      }),
  }),
  probe: (api) => api.soilMoisture({ lat: 48, lon: 11, day: '2024-06-01' }),
});
