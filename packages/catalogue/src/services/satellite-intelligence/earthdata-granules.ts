import {
  isoDate,
  latitude,
  limit,
  longitude,
  numberBetween,
  outsiderText,
  text,
} from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { z } from 'zod';
import type { GranuleBox } from '../../upstreams/adapters/cmr.ts';
import { defineService } from '../define.ts';
import { dayOf, daysFrom, invalid } from '../shared/earth/observation-day.ts';

/** One collection for each of the other services: rain, sea temperature, soil moisture, ocean color and the surface. */
const DEFAULT_COLLECTIONS = [
  'GPM_3IMERGDF',
  'MUR-JPL-L4-GLOB-v4.1',
  'SPL3SMP_E',
  'PACE_OCI_L3M_CHL',
  'MOD09GA',
];
const DEFAULT_DAYS = 30;
/** How far the box around a point reaches on every side. */
const REACH_DEGREES = 0.5;

const degrees = z.preprocess(
  (value) => (typeof value === 'string' && value.trim() !== '' ? Number(value) : value),
  z.number(),
);

export default defineService({
  path: 'earthdata-granules',
  name: 'Earthdata Granules',
  tag: 'Satellite Intelligence',
  priceUsd: '0.25',
  summary:
    'Lists the satellite files that NASA has for a place and time: ids, times, clouds, outlines and download addresses.',
  keywords:
    'granule granules satellite file files scene scenes data dataset datasets download landsat modis sentinel viirs nasa archive catalog catalogue exist available raw product hdf coverage imagery list',
  input: z.object({
    bbox: z
      .preprocess(
        (value) => (typeof value === 'string' ? value.split(',') : value),
        z.tuple([degrees, degrees, degrees, degrees]),
      )
      .optional()
      .describe(
        'Box in degrees: west, south, east, north, as a list or as text with commas; west above east crosses the antimeridian',
      ),
    lat: latitude.optional(),
    lon: longitude.optional(),
    startDate: isoDate
      .optional()
      .describe('First day in UTC, YYYY-MM-DD; 30 days before the last unless given'),
    endDate: isoDate.optional().describe('Last day in UTC, YYYY-MM-DD; today unless given'),
    collection: text(
      80,
      'Short name of a collection, such as "MOD09GA"; a list of five unless given',
    ).optional(),
    platform: text(60, 'Satellite, as NASA names it, such as "Terra"').optional(),
    maxCloudCover: numberBetween(
      0,
      100,
      'The most cloud cover in percent; leaves out files that do not say',
    ).optional(),
    limit: limit(10, 50),
  }),
  output: z.object({
    data: z
      .object({
        totalHits: z.number().int().describe('Files that fit, of which the newest are listed'),
        granules: z
          .array(
            z.object({
              id: outsiderText(200).describe('Concept id in the repository'),
              title: outsiderText(500).describe('Name of the file’s record'),
              collection: outsiderText(200).describe('Short name of its collection'),
              version: outsiderText(60).describe('Version of the collection'),
              platform: outsiderText(200).nullable().describe('Satellite; null where the file does not say'),
              instrument: outsiderText(200)
                .nullable()
                .describe('Instrument; null where the file does not say'),
              startDate: z.string().describe('Beginning of the observation (ISO 8601)'),
              endDate: z.string().describe('End of the observation (ISO 8601)'),
              cloudCover: z.number().nullable().describe('Percent; null where the file does not say'),
              bbox: z
                .array(z.number())
                .nullable()
                .describe('west, south, east, north in degrees; west above east crosses the antimeridian'),
              downloadUrls: z.array(outsiderText(2000)).describe('Addresses of its data over HTTPS'),
              thumbnailUrl: outsiderText(2000)
                .nullable()
                .describe('Address of a preview; null where there is none'),
              dataCenter: outsiderText(200).describe('Who keeps the file'),
              sizeMb: z.number().nullable().describe('Megabytes of 1,048,576 bytes'),
            }),
          )
          .describe('The newest files'),
        bbox: z.array(z.number()).nullable().describe('The box that was searched; null: the whole Earth'),
        startDate: z.string().describe('First day that was searched'),
        endDate: z.string().describe('Last day that was searched'),
        collections: z.array(z.string()).describe('Short names that were searched'),
        downloadRequires: z
          .literal('earthdata-login')
          .describe('The files need a free account at NASA Earthdata'),
      })
      .describe('What fits, newest first'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: 37.77, lon: -122.42, collection: 'MOD09GA', limit: 3 },
  aliases: {
    latitude: 'lat',
    longitude: 'lon',
    lng: 'lon',
    shortName: 'collection',
    dataset: 'collection',
    dateStart: 'startDate',
    dateEnd: 'endDate',
    cloudCover: 'maxCloudCover',
  },
  adapt(body) {
    const { west, south, east, north } = body;
    const sides = [west, south, east, north];
    return body.bbox === undefined && sides.every((side) => side !== undefined)
      ? { ...body, bbox: sides }
      : body;
  },
  needs: ['cmr'],
  timeoutMs: 20_000,
  async run(input, { upstreams, nowMs }) {
    const box = boxOf(input);
    const today = dayOf(nowMs());
    const last = input.endDate ?? today;
    if (last > today)
      throw invalid('endDate', `endDate ${last} lies in the future; today is ${today} in UTC.`);
    const first = input.startDate ?? daysFrom(last, -DEFAULT_DAYS);
    if (first > last) throw invalid('startDate', `startDate ${first} is after endDate ${last}.`);
    const collections = input.collection === undefined ? DEFAULT_COLLECTIONS : [input.collection];
    const { value, source } = await upstreams.cmr.granules({
      collections,
      box,
      first,
      last,
      platform: input.platform ?? null,
      maxCloudCoverPercent: input.maxCloudCover ?? null,
      limit: input.limit,
    });
    const notes: string[] = [];
    if (input.collection === undefined)
      notes.push('No collection was given: the five named in collections were searched.');
    if (box === null) notes.push('Neither bbox nor lat and lon was given: the whole Earth was searched.');
    if (value.hits === 0)
      notes.push('Nothing fits. A collection that the repository does not know looks the same.');
    return answer(
      {
        data: {
          totalHits: value.hits,
          granules: value.granules.map((granule) => ({
            id: granule.id,
            title: granule.title,
            collection: granule.collection,
            version: granule.version,
            platform: granule.platform,
            instrument: granule.instrument,
            startDate: granule.start,
            endDate: granule.end,
            cloudCover: granule.cloudCoverPercent,
            bbox: granule.box === null ? null : sidesOf(granule.box),
            downloadUrls: granule.dataUrls,
            thumbnailUrl: granule.browseUrl,
            dataCenter: granule.dataCenter,
            sizeMb: granule.sizeBytes === null ? null : Math.round(granule.sizeBytes / 104_857.6) / 10,
          })),
          bbox: box === null ? null : sidesOf(box),
          startDate: first,
          endDate: last,
          collections,
          downloadRequires: 'earthdata-login' as const,
        },
        poweredBy: 'NASA Common Metadata Repository',
      },
      {
        method:
          'Granule search by collection, box and time, newest first; times and clouds are the files’ own.',
        sources: [{ ...source, asOf: value.granules[0]?.end ?? null }],
        notes,
      },
    );
  },
});

function sidesOf({ west, south, east, north }: GranuleBox): number[] {
  return [west, south, east, north];
}

function boxOf({
  bbox,
  lat,
  lon,
}: {
  bbox?: [number, number, number, number] | undefined;
  lat?: number | undefined;
  lon?: number | undefined;
}): GranuleBox | null {
  if (bbox !== undefined) {
    const [west, south, east, north] = bbox;
    if (
      Math.abs(west) > 180 ||
      Math.abs(east) > 180 ||
      Math.abs(south) > 90 ||
      Math.abs(north) > 90 ||
      south > north
    ) {
      throw invalid(
        'bbox',
        'bbox is west, south, east, north in degrees, within -180, -90, 180, 90, south below north.',
      );
    }
    return { west, south, east, north };
  }
  if (lat === undefined && lon === undefined) return null;
  if (lat === undefined || lon === undefined) {
    throw invalid(lat === undefined ? 'lat' : 'lon', 'lat and lon belong together.');
  }
  const inside = (east: number) => round(east < -180 ? east + 360 : east > 180 ? east - 360 : east);
  return {
    west: inside(lon - REACH_DEGREES),
    south: round(Math.max(-90, lat - REACH_DEGREES)),
    east: inside(lon + REACH_DEGREES),
    north: round(Math.min(90, lat + REACH_DEGREES)),
  };
}

/** Rounds, so that addresses contain no rounding errors of binary fractions. */
function round(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
