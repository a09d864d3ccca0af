import { isoDate, latitude, longitude } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { noAnswer, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { POWER_GRID, type PowerDay } from '../../upstreams/adapters/power.ts';
import { defineService, type RunContext } from '../define.ts';
import { distanceKm, type Place } from '../shared/earth/great-circle.ts';
import { image, noPicture } from '../shared/earth/map-picture.ts';
import { mayStillCome, observePower } from '../shared/earth/power-cell.ts';

/** Maps of soil moisture by satellites (SMAP) are another product, in another unit. */
const NO_PICTURE = noPicture('NASA POWER (MERRA-2) has no public map of days.');
const share = (what: string) =>
  z
    .number()
    .min(0)
    .max(1)
    .nullable()
    .describe(`${what}, as a fraction of saturation: 0 is dry, 1 is saturated`);

export default defineService({
  path: 'earthdata-soil-moisture',
  name: 'Soil Moisture',
  tag: 'Satellite Intelligence',
  priceUsd: '0.25',
  summary:
    'Moisture of the ground at a point: wetness fractions from NASA POWER, and m³/m³ where a source is licensed.',
  keywords:
    'soil moisture wet dry ground earth irrigation irrigate watering water field farm crops drought agriculture garden mud muddy farmer planting thirsty',
  input: z.object({
    lat: latitude,
    lon: longitude,
    date: isoDate.optional().describe('Day in UTC, YYYY-MM-DD; the newest that is published unless given'),
  }),
  output: z.object({
    data: z
      .object({
        soilMoistureM3M3: z
          .number()
          .nullable()
          .describe(
            'Cubic meters of water in a cubic meter of soil, 0 to 7 cm; null, with the reason in the notes',
          ),
        soilMoistureDistanceKm: z
          .number()
          .nullable()
          .describe('From the point to the middle of the cell of soilMoistureM3M3; null with it'),
        surfaceWetnessFraction: share('The surface, 0 to 5 cm'),
        rootZoneWetnessFraction: share('The root zone, 0 to 100 cm'),
        profileWetnessFraction: share('The whole profile down to bedrock'),
        retrievalQuality: z
          .string()
          .describe('What the values were made from; the source flags no single value'),
        measurementDate: z.string().describe('The day that the values are of (YYYY-MM-DD, UTC)'),
        observedAt: z.string().describe('The same day'),
        dataResolutionDeg: z.number().describe('Degrees of latitude of a cell of the wetness'),
        dataResolutionLonDeg: z.number().describe('Degrees of longitude of a cell of the wetness'),
        gridLat: z.number().describe('Latitude of the middle of the cell that holds the point'),
        gridLon: z.number().describe('Longitude of the middle of the cell that holds the point'),
        distanceKm: z.number().describe('From the point asked for to the middle of the cell'),
        image,
      })
      .describe('The value, and where and when it was observed'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: 41.6, lon: -93.6 },
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon' },
  needs: ['power'],
  uses: ['openmeteoarchive'],
  timeoutMs: 25_000,
  async run({ lat, lon, date }, context) {
    // Rain is published on the same day for land and sea. Where rain has a value and the soil has none, there is no
    // land.
    const seen = await observePower(
      {
        lat,
        lon,
        parameters: ['GWETTOP', 'GWETROOT', 'GWETPROF', 'PRECTOTCORR'],
        date: date ?? null,
        daysBefore: date === undefined ? 0 : 4,
      },
      context,
    );
    if (seen.newest === null) {
      throw noAnswer(
        date === undefined || mayStillCome(date, context.nowMs()) ? 'NOT_PUBLISHED' : 'NO_DATA',
        `NASA POWER has nothing for ${lat}, ${lon} on ${date ?? 'any of the last days'}; new days take some days to come.`,
        'date',
      );
    }
    const { day, values } = seen.newest;
    const [top = null, root = null, profile = null] = values;
    if ((top === null && root === null && profile === null) || seen.days.every(isWater)) {
      throw noAnswer('NOT_LAND', `${lat}, ${lon} is sea or open water: there is no soil in its cell.`, 'lat');
    }
    const volume = await volumeOf({ lat, lon }, day, context);
    return answer(
      {
        data: {
          soilMoistureM3M3: volume.m3m3,
          soilMoistureDistanceKm: volume.distanceKm,
          surfaceWetnessFraction: top,
          rootZoneWetnessFraction: root,
          profileWetnessFraction: profile,
          retrievalQuality: `model reanalysis (${seen.madeFrom}); no flag for a single value`,
          measurementDate: day,
          observedAt: day,
          dataResolutionDeg: POWER_GRID.latDegrees,
          dataResolutionLonDeg: POWER_GRID.lonDegrees,
          gridLat: seen.cell.lat,
          gridLon: seen.cell.lon,
          distanceKm: seen.distanceKm,
          image: NO_PICTURE.image,
        },
        poweredBy:
          volume.source === null ? 'NASA POWER (MERRA-2)' : 'NASA POWER (MERRA-2), Open-Meteo (ERA5-Land)',
      },
      {
        method:
          'GWETTOP, GWETROOT and GWETPROF of the cell that holds the point: fractions of saturation, not to be read as m³/m³. soilMoistureM3M3 is the day’s mean from 0 to 7 cm by another model.',
        sources: volume.source === null ? [seen.source] : [seen.source, volume.source],
        notes: [
          ...(date === undefined ? [`No date was given: the newest published day is ${day}.`] : []),
          ...volume.notes,
          ...NO_PICTURE.notes,
        ],
      },
    );
  },
});

/** Saturated to the last digit from the surface down to bedrock: this is how the model marks water. */
function isWater({ values: [top, root, profile] }: PowerDay): boolean {
  return top === 1 && root === 1 && profile === 1;
}

/** Soil moisture by volume, where the operator has a licence for a source of it. */
async function volumeOf(
  place: Place,
  day: string,
  { upstreams }: RunContext<'openmeteoarchive'>,
): Promise<{ m3m3: number | null; distanceKm: number | null; source: Source | null; notes: string[] }> {
  const none = (why: string, source: Source | null = null) => ({
    m3m3: null,
    distanceKm: null,
    source,
    notes: [`soilMoistureM3M3 is null: ${why}`],
  });
  try {
    const { value, source } = await upstreams.openmeteoarchive.soilMoisture({ ...place, day });
    const asOf = { ...source, asOf: `${day}T00:00:00.000Z` };
    if (value.surfaceM3M3 === null) return none(`its source has no value for ${day} here.`, asOf);
    return { m3m3: value.surfaceM3M3, distanceKm: distanceKm(place, value), source: asOf, notes: [] };
  } catch (error) {
    if (!(error instanceof UpstreamUnavailable)) throw error;
    return none(
      error.reason === 'not_configured'
        ? 'this server has no licensed source of it.'
        : 'its source does not answer at the moment.',
    );
  }
}
