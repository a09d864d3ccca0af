import type { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';
import { currentValues, OPEN_METEO_KEY, type OpenMeteoCurrent } from './open-meteo-place.ts';

/** What is asked for, with the unit that each must come in. */
const UNITS = {
  us_aqi: 'USAQI',
  european_aqi: 'EAQI',
  pm10: 'μg/m³',
  pm2_5: 'μg/m³',
  carbon_monoxide: 'μg/m³',
  nitrogen_dioxide: 'μg/m³',
  sulphur_dioxide: 'μg/m³',
  ozone: 'μg/m³',
  aerosol_optical_depth: '',
} as const;
export type AirQuality = OpenMeteoCurrent<keyof typeof UNITS>;

const current = currentValues(UNITS).refine(
  ({ values }) => Object.values(values).every((value) => value === null || (value >= 0 && value < 1e6)),
  'a concentration below zero',
);

/** Air quality by the models of the Copernicus Atmosphere Monitoring Service. https://open-meteo.com/en/docs/air-quality-api */
export const openmeteoair = defineUpstream({
  name: 'openmeteoair',
  title: 'Open-Meteo air quality',
  baseUrl: 'https://customer-air-quality-api.open-meteo.com',
  licence: 'Open-Meteo (CC BY 4.0), contains modified Copernicus Atmosphere Monitoring Service information',
  terms: {
    commercialUse: 'allowed',
    note: 'Only by a paid plan: it comes with the key that is required here.',
    attribution: 'Open-Meteo (CC BY 4.0), Copernicus Atmosphere Monitoring Service',
    url: 'https://open-meteo.com/en/terms',
  },
  documentation: {
    at: 'https://github.com/open-meteo/open-meteo/blob/ba13de1c/openapi/air-quality.yml',
    readOn: '2026-11-29',
  },
  key: 'required',
  keyFrom: 'https://open-meteo.com/en/pricing',
  authorize: OPEN_METEO_KEY,
  requestsPerMinute: 300,
  open: (http) => ({
    /** The air of the current hour at the model's cell nearest to a point, on land and sea. */
    current: ({ lat, lon }: { lat: number; lon: number }): Promise<Reply<AirQuality>> =>
      http.get({
        path: '/v1/air-quality',
        query: { latitude: lat, longitude: lon, current: Object.keys(UNITS).join(','), timezone: 'GMT' },
        schema: current satisfies z.ZodType<AirQuality>,
        freshMs: 900_000,
        staleMs: 900_000,
      }),
  }),
  probe: (api) => api.current({ lat: 48, lon: 11 }),
});
