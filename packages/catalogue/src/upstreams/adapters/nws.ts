import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';

export interface WeatherStation {
  /** Such as KATL. */
  id: string;
  name: string;
  lat: number;
  lon: number;
}

/** A value that the service measured, in its own unit; null where there is none. */
export type Measured = { value: number; quality: string } | null;

export interface StationObservation {
  /** ISO 8601. */
  at: string;
  lat: number;
  lon: number;
  elevationM: number | null;
  description: string;
  temperatureC: Measured;
  dewpointC: Measured;
  humidityPercent: Measured;
  pressurePa: Measured;
  windSpeedKmh: Measured;
  windGustKmh: Measured;
  windDirectionDegrees: Measured;
  visibilityM: Measured;
  precipitationLastHourMm: Measured;
}

const DAY_MS = 86_400_000;
const FIVE_MINUTES_MS = 300_000;

const point = z.looseObject({
  type: z.literal('Point'),
  coordinates: z.tuple([z.number().min(-180).max(180), z.number().min(-90).max(90)]),
});

/** A value in another unit makes the reply unreadable. */
const measured = (unit: string) =>
  z
    .looseObject({
      unitCode: z.literal(`wmoUnit:${unit}`),
      value: z.number().nullable(),
      qualityControl: z.string().max(4).optional(),
    })
    .nullish()
    .transform(
      (given): Measured =>
        given === null || given === undefined || given.value === null
          ? null
          : { value: given.value, quality: given.qualityControl ?? '' },
    );

const observation = z
  .looseObject({
    geometry: point,
    properties: z.looseObject({
      timestamp: z.string().refine((text) => !Number.isNaN(Date.parse(text)), 'not a time'),
      textDescription: z.string().max(500).nullish(),
      elevation: z.looseObject({ value: z.number().nullable() }).nullish(),
      temperature: measured('degC'),
      dewpoint: measured('degC'),
      relativeHumidity: measured('percent'),
      barometricPressure: measured('Pa'),
      windSpeed: measured('km_h-1'),
      windGust: measured('km_h-1'),
      windDirection: measured('degree_(angle)'),
      visibility: measured('m'),
      precipitationLastHour: measured('mm'),
    }),
  })
  .transform(({ geometry, properties }): StationObservation => {
    const [lon, lat] = geometry.coordinates;
    return {
      at: new Date(properties.timestamp).toISOString(),
      lat,
      lon,
      elevationM: properties.elevation?.value ?? null,
      description: properties.textDescription ?? '',
      temperatureC: properties.temperature,
      dewpointC: properties.dewpoint,
      humidityPercent: properties.relativeHumidity,
      pressurePa: properties.barometricPressure,
      windSpeedKmh: properties.windSpeed,
      windGustKmh: properties.windGust,
      windDirectionDegrees: properties.windDirection,
      visibilityM: properties.visibility,
      precipitationLastHourMm: properties.precipitationLastHour,
    };
  });

const stations = z
  .looseObject({
    features: z
      .array(
        z.looseObject({
          geometry: point,
          properties: z.looseObject({
            stationIdentifier: z.string().regex(/^[A-Z0-9]{3,12}$/),
            name: z.string().max(200),
          }),
        }),
      )
      .max(500),
  })
  .transform(({ features }) =>
    features.map(({ geometry, properties }): WeatherStation => {
      const [lon, lat] = geometry.coordinates;
      return { id: properties.stationIdentifier, name: properties.name, lat, lon };
    }),
  );

/** The cell of an office's forecast grid, 2.5 km wide, that holds a point. */
const gridCell = z.looseObject({
  properties: z.looseObject({
    gridId: z.string().regex(/^[A-Z]{3}$/),
    gridX: z.number().int().min(0).max(10_000),
    gridY: z.number().int().min(0).max(10_000),
  }),
});

const station = z
  .looseObject({
    geometry: point,
    properties: z.looseObject({ stationIdentifier: z.string(), name: z.string().max(200) }),
  })
  .transform(({ geometry, properties }): WeatherStation => {
    const [lon, lat] = geometry.coordinates;
    return { id: properties.stationIdentifier, name: properties.name, lat, lon };
  });

/** The United States' National Weather Service: stations, and what they observed last. https://www.weather.gov/documentation/services-web-api */
export const nws = defineUpstream({
  name: 'nws',
  title: 'NOAA National Weather Service',
  baseUrl: 'https://api.weather.gov',
  licence: 'US government work, in the public domain. Credit: NOAA National Weather Service',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: 'NOAA National Weather Service',
    url: 'https://www.weather.gov/disclaimer',
  },
  documentation: {
    at: 'https://github.com/weather-gov/api/blob/694ed0f/assets/openapi.yaml',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 120,
  timeoutMs: 10_000,
  open: (http) => ({
    /**
     * Stations around a point; null outside the country. At most four decimals are asked for: others are redirected. So is the
     * shorter way, `/points/{point}/stations`, which is deprecated: the cell of the forecast's grid names the stations.
     */
    async stationsNear({ lat, lon }: { lat: number; lon: number }): Promise<Reply<WeatherStation[] | null>> {
      const cell = await http.find({
        path: `/points/${written(lat)},${written(lon)}`,
        headers: { accept: 'application/geo+json' },
        schema: gridCell,
        freshMs: DAY_MS,
        staleMs: 7 * DAY_MS,
      });
      if (cell.value === null) return { ...cell, value: null };
      const { gridId, gridX, gridY } = cell.value.properties;
      return http.find({
        path: `/gridpoints/${gridId}/${gridX},${gridY}/stations`,
        headers: { accept: 'application/geo+json' },
        schema: stations,
        freshMs: DAY_MS,
        staleMs: 7 * DAY_MS,
      });
    },

    /** A station by its id; null when there is none. */
    station: (id: string): Promise<Reply<WeatherStation | null>> =>
      http.find({
        path: `/stations/${encodeURIComponent(id)}`,
        headers: { accept: 'application/geo+json' },
        schema: station,
        freshMs: DAY_MS,
        staleMs: 7 * DAY_MS,
      }),

    /** What a station observed last; null when it has observed nothing. */
    async latest(id: string): Promise<Reply<StationObservation | null>> {
      const reply = await http.find({
        path: `/stations/${encodeURIComponent(id)}/observations/latest`,
        headers: { accept: 'application/geo+json' },
        schema: observation,
        freshMs: FIVE_MINUTES_MS,
        staleMs: 2 * FIVE_MINUTES_MS,
      });
      return { ...reply, source: { ...reply.source, asOf: reply.value?.at ?? null } };
    },
  }),
  probe: (api) => api.stationsNear({ lat: 33.64, lon: -84.43 }),
});

/** Degrees as they stand in a path: at most four decimals, and no zeros at their end. */
function written(degrees: number): string {
  return String(Math.round(degrees * 10_000) / 10_000);
}
