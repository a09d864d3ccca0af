import { isoDate, latitude, longitude } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import { CHLOROPHYLL } from '../../upstreams/adapters/erddap.ts';
import { defineService } from '../define.ts';
import { distanceKm } from '../shared/earth/great-circle.ts';
import { image, noPicture } from '../shared/earth/map-picture.ts';
import { assertObserved } from '../shared/earth/observation-day.ts';

const KM_PER_DEGREE = 111.195;
/** Maps of chlorophyll by NASA are other products: other satellites, another algorithm. */
const NO_PICTURE = noPicture('NOAA’s analysis has no map at NASA GIBS.');

export default defineService({
  path: 'earthdata-ocean-color',
  name: 'Ocean Color',
  tag: 'Satellite Intelligence',
  priceUsd: '0.25',
  featured: true,
  summary:
    'Chlorophyll in the sea near a point, measured by VIIRS: the nearest cell without clouds, with its distance.',
  keywords:
    'ocean color colour sea water chlorophyll algae algal bloom plankton phytoplankton marine fish fishing coast red tide lake green murky biology',
  input: z.object({
    lat: latitude,
    lon: longitude,
    date: isoDate
      .optional()
      .describe('Day in UTC, YYYY-MM-DD; the newest clear day of the last eight unless given'),
  }),
  output: z.object({
    data: z
      .object({
        chlorophyllMgM3: z
          .number()
          .positive()
          .describe('Chlorophyll in milligrams in a cubic meter of water'),
        trophicState: z
          .enum(['oligotrophic', 'mesotrophic', 'eutrophic'])
          .describe('Below 0.1, up to 1, and from 1 mg/m³ on'),
        quality: z
          .enum(['measured at the point', 'measured nearby'])
          .describe(
            'Whether the cell that holds the point was clear; clouds and glint are masked by the source',
          ),
        measurementDate: z.string().describe('The analysis that the value belongs to (ISO 8601)'),
        observedAt: z.string().describe('The same time'),
        clearCells: z.number().int().describe('Clear cells of that day in the box that was looked through'),
        dataResolutionKm: z.number().describe('Side of a cell at the equator'),
        gridLat: z.number().describe('Latitude of the middle of the cell used'),
        gridLon: z.number().describe('Longitude of the middle of the cell used'),
        distanceKm: z.number().describe('From the point asked for to the middle of the cell used'),
        image,
      })
      .describe('The value, and where and when it was observed'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: 36.2, lon: -123.5 },
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon' },
  needs: ['erddap'],
  timeoutMs: 25_000,
  async run({ lat, lon, date }, { upstreams, nowMs }) {
    if (date !== undefined) assertObserved(date, nowMs(), CHLOROPHYLL);
    const point = { lat, lon };
    const { value, source, cellDegrees } = await upstreams.erddap.chlorophyll({
      ...point,
      day: date ?? null,
    });
    const days = value?.times.filter((time) => date === undefined || time.startsWith(date)) ?? [];
    if (value === null || days.length === 0) {
      throw noAnswer(
        'OUT_OF_RANGE',
        `${CHLOROPHYLL.title} has nothing for ${lat}, ${lon} on ${date ?? 'its newest days'}; new days take some days to come, and the poles are not covered.`,
        date === undefined ? 'lat' : 'date',
      );
    }
    const byDay = days
      .toSorted()
      .toReversed()
      .map((time) =>
        value.cells
          .filter((cell) => cell.time === time)
          .map((cell) => ({ ...cell, distanceKm: distanceKm(point, cell) }))
          .toSorted((a, b) => a.distanceKm - b.distanceKm),
      );
    const clear = byDay.find((cells) => cells.length > 0) ?? [];
    const [cell] = clear;
    const holdsPoint = cell !== undefined && cell.distanceKm <= (cellDegrees * KM_PER_DEGREE) / Math.SQRT2;
    if (!holdsPoint) {
      // Under clouds the color does not distinguish land from sea. The temperature is known everywhere at sea.
      const { value: surface } = await upstreams.erddap.seaSurfaceTemperature({ ...point, day: null });
      if (surface?.celsius === null)
        throw noAnswer('NOT_SEA', `${lat}, ${lon} is land or inland water.`, 'lat');
    }
    if (cell === undefined) {
      throw noAnswer(
        'CLOUDS',
        `Clouds hide the sea around ${lat}, ${lon} on ${date ?? `all of the ${days.length} newest days`}.`,
        'date',
      );
    }
    return answer(
      {
        data: {
          chlorophyllMgM3: cell.mgM3,
          trophicState: trophicStateOf(cell.mgM3),
          quality: holdsPoint ? ('measured at the point' as const) : ('measured nearby' as const),
          measurementDate: cell.time,
          observedAt: cell.time,
          clearCells: clear.length,
          dataResolutionKm: Math.round(cellDegrees * KM_PER_DEGREE * 100) / 100,
          gridLat: cell.lat,
          gridLon: cell.lon,
          distanceKm: cell.distanceKm,
          image: NO_PICTURE.image,
        },
        poweredBy: `${CHLOROPHYLL.title} through NOAA CoastWatch ERDDAP`,
      },
      {
        method: `${CHLOROPHYLL.variable} of the nearest cell that is not masked, within ${CHLOROPHYLL.reachDegrees} degrees, on the newest day that has one. Close to coasts and river mouths the algorithm reads too high.`,
        sources: [{ ...source, asOf: cell.time }],
        notes: [
          ...(date === undefined
            ? [`No date was given: the newest day with clear water is ${cell.time.slice(0, 10)}.`]
            : []),
          ...NO_PICTURE.notes,
        ],
      },
    );
  },
});

function trophicStateOf(mgM3: number): 'oligotrophic' | 'mesotrophic' | 'eutrophic' {
  return mgM3 < 0.1 ? 'oligotrophic' : mgM3 < 1 ? 'mesotrophic' : 'eutrophic';
}
