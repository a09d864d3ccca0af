import { isoDate, latitude, longitude } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { noAnswer, ServiceFailure } from '@farebox/core/words/failure';
import { z } from 'zod';
import { SST_DATASET } from '../../upstreams/adapters/erddap.ts';
import { SEA_TEMPERATURE_MAP } from '../../upstreams/adapters/gibs-maps.ts';
import { defineService } from '../define.ts';
import { boxAround, image, pictureOf } from '../shared/earth/map-picture.ts';

const FIRST_DAY = '2002-06-01';
/** Fronts and eddies are some hundred kilometers large. */
const PICTURE_REACH_KM = 280;

export default defineService({
  path: 'earthdata-sst',
  name: 'Sea Surface Temperature',
  tag: 'Satellite Intelligence',
  priceUsd: '0.25',
  summary: 'Sea surface temperature at a point, in Celsius and Kelvin, from the daily 1 km MUR analysis.',
  keywords:
    'sea surface temperature ocean water warm cold swim swimming beach surf surfing diving el nino coral bleaching heatwave marine heat degrees lake sst bath',
  input: z.object({
    lat: latitude,
    lon: longitude,
    date: isoDate.optional().describe('Day of the analysis in UTC, YYYY-MM-DD; the newest unless given'),
  }),
  output: z.object({
    data: z
      .object({
        temperatureCelsius: z.number().describe('Degrees Celsius'),
        temperatureKelvin: z.number().describe('Kelvin'),
        analysisDate: z.string().describe('The analysis that the value belongs to (ISO 8601)'),
        dataResolutionKm: z.number().describe('Size of a grid cell in km'),
        coverageNote: z.string().describe('What the analysis covers'),
        gridLat: z.number().describe('Latitude of the grid cell used'),
        gridLon: z.number().describe('Longitude of the grid cell used'),
        image,
      })
      .describe('The value'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: 36.8, lon: -122 },
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon' },
  needs: ['erddap'],
  mayUse: ['pictures'],
  timeoutMs: 25_000,
  async run(input, { upstreams, nowMs, pictures }) {
    const today = new Date(nowMs()).toISOString().slice(0, 10);
    if (input.date !== undefined && input.date > today) {
      throw new ServiceFailure({
        status: 400,
        code: 'INVALID_REQUEST',
        message: `date ${input.date} lies in the future; today is ${today} in UTC.`,
        field: 'date',
      });
    }
    const { value, source } = await upstreams.erddap.seaSurfaceTemperature({
      lat: input.lat,
      lon: input.lon,
      day: input.date ?? null,
    });
    if (value === null) {
      throw noAnswer(
        'OUT_OF_RANGE',
        `${SST_DATASET.title} has nothing for ${input.lat}, ${input.lon} on ${input.date ?? 'its newest day'}: it covers latitudes -89.99 to 89.99 from ${FIRST_DAY} until a few days ago.`,
        input.date === undefined ? 'lat' : 'date',
      );
    }
    const day = value.time.slice(0, 10);
    // The server returns the nearest analysis. An analysis of another day than the requested one is not an answer.
    if (input.date !== undefined && day !== input.date) {
      throw noAnswer('NO_ANALYSIS', `There is no analysis for ${input.date}; the nearest is ${day}.`, 'date');
    }
    if (value.celsius === null) {
      throw noAnswer(
        'NOT_SEA',
        `${input.lat}, ${input.lon} is land or masked in ${SST_DATASET.title}.`,
        'lat',
      );
    }
    const place = { lat: input.lat, lon: input.lon };
    const shown = pictureOf(pictures, {
      map: SEA_TEMPERATURE_MAP,
      time: day,
      box: boxAround(place, PICTURE_REACH_KM),
      marker: place,
    });
    return answer(
      {
        data: {
          temperatureCelsius: hundredths(value.celsius),
          temperatureKelvin: hundredths(value.celsius + 273.15),
          analysisDate: value.time,
          dataResolutionKm: SST_DATASET.resolutionKm,
          coverageNote:
            'Foundation temperature (without the daily warming of the skin) of the nearest 0.01 degree cell; under clouds the analysis interpolates from other satellites and days.',
          gridLat: value.lat,
          gridLon: value.lon,
          image: shown.image,
        },
        poweredBy: `${SST_DATASET.title} through NOAA CoastWatch ERDDAP`,
      },
      {
        method: `Value of ${SST_DATASET.variable} in ${SST_DATASET.id} at the nearest grid cell; Kelvin = Celsius + 273.15.`,
        sources: [source],
        notes: [
          ...(input.date === undefined ? [`No date was given: the newest analysis is of ${day}.`] : []),
          ...shown.notes,
        ],
      },
    );
  },
});

function hundredths(degrees: number): number {
  return Math.round(degrees * 100) / 100;
}
