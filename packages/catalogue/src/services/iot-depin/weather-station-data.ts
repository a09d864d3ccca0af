import { latitude, longitude, numberBetween, outsiderText } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { MAX_CHOICES } from '@farebox/core/words/choices';
import { noAnswer, notFound } from '@farebox/core/words/failure';
import { z } from 'zod';
import type { Measured, StationObservation, WeatherStation } from '../../upstreams/adapters/nws.ts';
import { defineService, type RunContext } from '../define.ts';
import { distanceKm } from '../shared/earth/great-circle.ts';

/** How many stations are asked, nearest first, until one has an observation. */
const MAX_TRIED = 3;
/** An older observation says nothing about now. */
const MAX_AGE_MS = 3 * 3_600_000;

/** Stations that a caller may begin with who names neither one nor a place: at large airports. */
const STATIONS = {
  KATL: 'Atlanta',
  KBOS: 'Boston',
  KDCA: 'Washington',
  KDEN: 'Denver',
  KDFW: 'Dallas and Fort Worth',
  KIAH: 'Houston',
  KJFK: 'New York',
  KLAS: 'Las Vegas',
  KLAX: 'Los Angeles',
  KMIA: 'Miami',
  KMSP: 'Minneapolis',
};
const CHOICES = Object.entries(STATIONS).map(([value, city]) => ({
  field: 'stationId',
  value,
  about: `The airport of ${city}; or give lat and lon`,
}));

const measured = (description: string, unit: string) =>
  z
    .object({
      value: z.number().describe(description),
      unit: z.literal(unit).describe('Of value'),
      quality: z
        .string()
        .describe(
          'Flag of the source: V passed its checks, C is coarse, S subjective, Q questioned, X rejected, Z unchecked',
        ),
    })
    .nullable()
    .describe(`${description}; null where the station did not measure it`);

export default defineService({
  path: 'weather-station-data',
  name: 'Weather Station Data',
  tag: 'IoT & DePIN',
  priceUsd: '0.10',
  summary:
    'The latest observation of the nearest official weather station in the United States, with units, quality flags and distance.',
  keywords:
    'weather station temperature wind speed gust humidity pressure forecast outside now current conditions airport noaa nws cold hot warm chicago york degrees storm observation today city visibility hot sunny cloudy barometer dew point heat wave blizzard phoenix boston',
  input: z
    .object({
      stationId: z
        .string()
        .trim()
        .toUpperCase()
        .regex(/^[A-Z0-9]{3,12}$/, 'must be a station of the National Weather Service, such as KATL')
        .optional()
        .describe('A station of the US National Weather Service, such as KATL; or give lat and lon'),
      lat: latitude.optional(),
      lon: longitude.optional(),
      radiusKm: numberBetween(
        1,
        200,
        'How far the station may be from lat and lon, in kilometers; 10 unless given',
      ).default(10),
    })
    .refine(
      ({ stationId, lat, lon }) => stationId !== undefined || (lat !== undefined && lon !== undefined),
      { path: ['stationId'], message: 'is required (or lat and lon instead)' },
    )
    .meta({ anyOf: [{ required: ['stationId'] }, { required: ['lat', 'lon'] }] }),
  output: z.object({
    data: z
      .object({
        stationId: z.string().describe('The station'),
        stationName: outsiderText(200).nullable().describe('What the source calls it'),
        location: z
          .object({
            lat: z.number().describe('Degrees north'),
            lon: z.number().describe('Degrees east'),
            elevationM: z.number().nullable().describe('Meters above sea level'),
          })
          .describe('Of the station'),
        distanceKm: z.number().nullable().describe('From lat and lon; null where a station was named'),
        readings: z
          .object({
            temperature: measured('Of the air', 'celsius'),
            dewpoint: measured('Dew point', 'celsius'),
            humidity: measured('Relative humidity', 'percent'),
            pressure: measured('Air pressure at the station', 'hPa'),
            windSpeed: measured('Mean wind', 'km/h'),
            windGust: measured('Strongest gust', 'km/h'),
            windDirection: measured('Where the wind comes from, clockwise from north', 'degrees'),
            visibility: measured('How far one can see', 'm'),
            precipitation: measured('Of the last hour', 'mm'),
          })
          .describe('What it measured'),
        description: outsiderText(500).describe('The sky, in the source’s words; may be empty'),
        timestamp: z.string().describe('When it was observed (ISO 8601)'),
        quality: z
          .enum(['verified', 'preliminary'])
          .describe(
            'verified: every value has passed the source’s checks; preliminary: one has not, or not yet',
          ),
      })
      .describe('The observation'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: 33.75, lon: -84.39, radiusKm: 50 },
  choices: CHOICES,
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon', radius: 'radiusKm', station: 'stationId' },
  needs: ['nws'],
  timeoutMs: 25_000,
  async run(input, context) {
    const { candidates, sources, notes } = await candidatesOf(input, context);
    for (const { station, awayKm } of candidates) {
      const { value, source } = await context.upstreams.nws.latest(station.id);
      if (value === null || context.nowMs() - Date.parse(value.at) > MAX_AGE_MS) {
        notes.push(`${station.id} has observed nothing in the last three hours.`);
        continue;
      }
      return answer(
        { data: shown(station, value, awayKm), poweredBy: 'NOAA National Weather Service' },
        {
          method:
            'The latest observation of the station; pressure from pascals. Among stations around a point the nearest one along a great circle that has observed something in three hours.',
          sources: [source, ...sources],
          notes,
        },
      );
    }
    throw noAnswer('NO_OBSERVATION', notes.join(' '), input.stationId === undefined ? 'lat' : 'stationId');
  },
});

interface Candidate {
  station: WeatherStation;
  awayKm: number | null;
}

async function candidatesOf(
  input: {
    stationId?: string | undefined;
    lat?: number | undefined;
    lon?: number | undefined;
    radiusKm: number;
  },
  { upstreams }: RunContext<'nws'>,
): Promise<{ candidates: Candidate[]; sources: Source[]; notes: string[] }> {
  if (input.stationId !== undefined) {
    const { value, source } = await upstreams.nws.station(input.stationId);
    if (value === null)
      throw notFound('stationId', 'The National Weather Service has no such station.', CHOICES);
    return { candidates: [{ station: value, awayKm: null }], sources: [source], notes: [] };
  }
  const { lat, lon } = input;
  if (lat === undefined || lon === undefined) throw new Error('neither a station nor a place');
  const { value, source } = await upstreams.nws.stationsNear({ lat, lon });
  if (value === null)
    throw noAnswer('OUT_OF_COVERAGE', 'The National Weather Service covers the United States alone.', 'lat');
  const all = value
    .map((station) => ({ station, awayKm: distanceKm({ lat, lon }, station) }))
    .toSorted((a, b) => a.awayKm - b.awayKm);
  const near = all.filter(({ awayKm }) => awayKm <= input.radiusKm);
  if (near.length === 0) {
    const [nearest] = all;
    const hint =
      nearest === undefined ? '' : ` The nearest, ${nearest.station.id}, is ${nearest.awayKm} km away.`;
    const choices = all.slice(0, MAX_CHOICES).map(({ station, awayKm }) => ({
      field: 'stationId',
      value: station.id,
      about: `${awayKm} km away`,
    }));
    const message = `There is no station within ${input.radiusKm} km.${hint}`;
    throw noAnswer('NO_STATION', message, 'radiusKm', choices);
  }
  return { candidates: near.slice(0, MAX_TRIED), sources: [source], notes: [] };
}

function shown(station: WeatherStation, seen: StationObservation, awayKm: number | null) {
  const of = <const Unit extends string>(value: Measured, unit: Unit, scale = 1) =>
    value === null
      ? null
      : { value: Math.round(value.value * scale * 100) / 100, unit, quality: value.quality };
  const readings = {
    temperature: of(seen.temperatureC, 'celsius'),
    dewpoint: of(seen.dewpointC, 'celsius'),
    humidity: of(seen.humidityPercent, 'percent'),
    pressure: of(seen.pressurePa, 'hPa', 0.01),
    windSpeed: of(seen.windSpeedKmh, 'km/h'),
    windGust: of(seen.windGustKmh, 'km/h'),
    windDirection: of(seen.windDirectionDegrees, 'degrees'),
    visibility: of(seen.visibilityM, 'm'),
    precipitation: of(seen.precipitationLastHourMm, 'mm'),
  };
  const checked = Object.values(readings).every((each) => each === null || each.quality === 'V');
  return {
    stationId: station.id,
    stationName: station.name,
    location: { lat: seen.lat, lon: seen.lon, elevationM: seen.elevationM },
    distanceKm: awayKm,
    readings,
    description: seen.description,
    timestamp: seen.at,
    quality: checked ? ('verified' as const) : ('preliminary' as const),
  };
}
