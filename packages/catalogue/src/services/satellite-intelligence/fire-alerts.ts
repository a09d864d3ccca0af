import { latitude, limit, longitude, numberBetween, outsiderText } from '@farebox/core/service/fields';
import type { Source } from '@farebox/core/words/answer';
import { z } from 'zod';
import {
  FIRMS_MAX_DAYS,
  FIRMS_SATELLITES,
  type FireDetection,
  type FirmsSatellite,
} from '../../upstreams/adapters/firms.ts';
import { FIRE_MAPS } from '../../upstreams/adapters/gibs-maps.ts';
import { defineService, type RunContext } from '../define.ts';
import { pricedAnswer } from '../figures.ts';
import type { PictureBox } from '../map-pictures.ts';
import { boxesAround, distanceKm, type EarthBox, split } from '../shared/earth/great-circle.ts';
import { boxAround, image, pictureOf } from '../shared/earth/map-picture.ts';
import { dayOf, daysFrom, invalid } from '../shared/earth/observation-day.ts';

const MAX_DAYS = 10;
const DAY_HOURS = 24;
const WHOLE_EARTH: EarthBox = { west: -180, south: -90, east: 180, north: 90 };

const degrees = z.preprocess(
  (value) => (typeof value === 'string' && value.trim() !== '' ? Number(value) : value),
  z.number(),
);

/** What is no number is refused as it is. */
function daysOf(hours: unknown): unknown {
  return typeof hours === 'number' || typeof hours === 'string'
    ? Math.ceil(Number(hours) / DAY_HOURS)
    : hours;
}

export default defineService({
  path: 'fire-alerts',
  name: 'Fire Alerts',
  tag: 'Satellite Intelligence',
  priceUsd: '0.15',
  featured: true,
  summary:
    'Fires that satellites saw around a point or in a box: place, time, power, confidence and distance.',
  keywords:
    'fire fires wildfire wildfires bushfire forest blaze burning burn burns flames hotspot hotspots smoke evacuate evacuation arson heat viirs modis firms near ablaze arsonist firefighters evacuated heat anomaly',
  input: z.object({
    lat: latitude.optional(),
    lon: longitude.optional(),
    radiusKm: numberBetween(1, 1_000, 'Radius around the point in kilometers, 1 to 1,000').default(100),
    days: z
      .preprocess(
        (value) => (typeof value === 'string' ? Number(value) : value),
        z.number().int().min(1).max(MAX_DAYS),
      )
      .default(1)
      .describe('Days back from now, 1 to 10, of 24 hours each; 10 begin at midnight UTC'),
    bbox: z
      .preprocess(
        (value) => (typeof value === 'string' ? value.split(',') : value),
        z.tuple([degrees, degrees, degrees, degrees]),
      )
      .optional()
      .describe(
        'Box in degrees instead of a point: west, south, east, north; west above east crosses the antimeridian',
      ),
    satellite: z
      .enum(FIRMS_SATELLITES)
      .default('VIIRS_NOAA20_NRT')
      .describe('Whose detections: VIIRS on three satellites (375 m), or MODIS (1 km)'),
    limit: limit(100, 500),
  }),
  output: z.object({
    data: z
      .object({
        count: z.number().int().describe('Fires that were found, of which at most limit are listed'),
        fires: z
          .array(
            z.object({
              lat: z.number().describe('Latitude of the pixel’s middle'),
              lon: z.number().describe('Longitude of the pixel’s middle'),
              brightness: z.number().describe('Brightness temperature in kelvin'),
              confidence: z.enum(['low', 'nominal', 'high']).describe('Quality flag of the source'),
              confidenceAsGiven: outsiderText(20).describe(
                'The flag as the source writes it: a letter, or percent',
              ),
              frp: z
                .number()
                .nullable()
                .describe('Fire radiative power in megawatts; null where it was not retrieved'),
              satellite: outsiderText(60).describe('Satellite, as the source names it'),
              instrument: outsiderText(60).describe('VIIRS or MODIS'),
              acqDate: z.string().describe('Day of the picture in UTC'),
              acqTime: z.string().describe('Time of the picture in UTC, HH:MM'),
              observedAt: z.string().describe('Both as ISO 8601'),
              daynight: z
                .enum(['day', 'night'])
                .nullable()
                .describe('Whether the sun was up; null if not said'),
              pixelKm: z
                .array(z.number())
                .describe('Size of the pixel across and along the track, in kilometers'),
              distanceKm: z.number().nullable().describe('From the point asked for; null without one'),
            }),
          )
          .describe('Nearest first around a point, else strongest first'),
        dataDate: z
          .string()
          .nullable()
          .describe('Newest detection among them (ISO 8601); null without fires'),
        from: z.string().describe('Beginning of the time that was looked through (ISO 8601)'),
        to: z.string().describe('End of that time: now'),
        searched: z.enum(['around lat and lon', 'bbox', 'whole Earth']).describe('Where was looked'),
        boxes: z
          .array(z.array(z.number()))
          .describe('The boxes that were asked for: west, south, east, north; two at the antimeridian'),
        resolutionKm: z.number().describe('Side of a pixel below the satellite'),
        image,
      })
      .describe('What was found'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: -11.2, lon: 22.4, radiusKm: 200, days: 2 },
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon', radius: 'radiusKm', source: 'satellite' },
  adapt(body) {
    const { west, south, east, north, hours, ...rest } = body;
    const sides = [west, south, east, north];
    return {
      ...rest,
      ...(body.bbox === undefined && sides.every((side) => side !== undefined) ? { bbox: sides } : {}),
      ...(body.days === undefined && hours !== undefined ? { days: daysOf(hours) } : {}),
    };
  },
  needs: ['firms'],
  mayUse: ['pictures'],
  timeoutMs: 25_000,
  async run(input, context) {
    const { searched, boxes } = areaOf(input);
    const now = context.nowMs();
    // Ten days of the whole Earth are hundreds of thousands of fires, and that many requests of the key's quota.
    if (searched === 'whole Earth' && input.days > 1) {
      throw invalid('days', 'The whole Earth is told for 1 day; give lat and lon, or bbox, for more.');
    }
    // Ten calendar days need two requests; ten times 24 hours would touch an eleventh day.
    const oldest = Date.parse(`${daysFrom(dayOf(now), 1 - MAX_DAYS)}T00:00:00Z`);
    const fromMs = Math.max(now - input.days * DAY_HOURS * 3_600_000, oldest);
    const { fires, sources } = await firesIn(boxes, fromMs, now, input.satellite, context);
    const point =
      input.lat === undefined || input.lon === undefined ? null : { lat: input.lat, lon: input.lon };
    const found = fires
      .map((fire) => ({ ...fire, distanceKm: point === null ? null : distanceKm(point, fire) }))
      .filter((fire) => fire.distanceKm === null || searched === 'bbox' || fire.distanceKm <= input.radiusKm)
      .toSorted((a, b) =>
        a.distanceKm !== null && b.distanceKm !== null
          ? a.distanceKm - b.distanceKm
          : (b.frpMw ?? -1) - (a.frpMw ?? -1),
      );
    const newest =
      found
        .map(({ at }) => at)
        .toSorted()
        .at(-1) ?? null;
    // The map of a day that has just begun has nothing on it: without a fire yesterday’s is shown.
    const day = dayOf(newest === null ? now - DAY_HOURS * 3_600_000 : Date.parse(newest));
    const shown = pictureOf(context.pictures, {
      map: FIRE_MAPS[input.satellite],
      time: day,
      box: pictureBoxOf(input),
      marker: point ?? found.find(({ at }) => at.startsWith(day)) ?? null,
    });
    const notes: string[] = [...shown.notes];
    if (shown.image !== null && input.days > 1)
      notes.push('The picture is of one day; fires of the others are not on it.');
    if (searched === 'whole Earth')
      notes.push('Neither lat and lon nor bbox was given: the whole Earth was asked for.');
    if (found.length === 0) {
      notes.push('No fire was detected. Clouds hide fires, and so do hours without an overpass.');
    }
    if (found.length > input.limit)
      notes.push(`${found.length - input.limit} more are counted and not listed.`);
    return pricedAnswer(
      {
        data: {
          count: found.length,
          fires: found.slice(0, input.limit).map(listed),
          dataDate: newest,
          from: new Date(fromMs).toISOString(),
          to: new Date(now).toISOString(),
          searched,
          boxes: boxes.map(({ west, south, east, north }) => [west, south, east, north]),
          resolutionKm: input.satellite === 'MODIS_NRT' ? 1 : 0.375,
          image: shown.image,
        },
        poweredBy: 'NASA FIRMS (LANCE)',
      },
      {
        method: `Detections of ${input.satellite} by area and day, then by the time between from and to and, around a point, by the distance along a great circle. At most ${FIRMS_MAX_DAYS} days are asked for at once. A detection is a hot pixel: industry and volcanoes are among them.`,
        sources: sources.map((source) => ({ ...source, asOf: newest })),
        notes,
      },
    );
  },
});

function listed({ at, ...fire }: FireDetection & { distanceKm: number | null }) {
  return {
    lat: fire.lat,
    lon: fire.lon,
    brightness: fire.brightnessKelvin,
    confidence: fire.confidence,
    confidenceAsGiven: fire.confidenceAsGiven,
    frp: fire.frpMw,
    satellite: fire.satellite,
    instrument: fire.instrument,
    acqDate: at.slice(0, 10),
    acqTime: at.slice(11, 16),
    observedAt: at,
    daynight: fire.daynight,
    pixelKm: [fire.scanKm, fire.trackKm],
    distanceKm: fire.distanceKm,
  };
}

/** All detections in the boxes and the time, requested in spans of days that the source allows. */
async function firesIn(
  boxes: readonly EarthBox[],
  fromMs: number,
  toMs: number,
  satellite: FirmsSatellite,
  { upstreams }: RunContext<'firms'>,
): Promise<{ fires: FireDetection[]; sources: Source[] }> {
  const fires: FireDetection[] = [];
  const sources: Source[] = [];
  // Of the oldest day only a part is within the time; older detections are dropped below.
  for (let first = dayOf(fromMs); first <= dayOf(toMs); first = daysFrom(first, FIRMS_MAX_DAYS)) {
    const days = Math.min(FIRMS_MAX_DAYS, 1 + (Date.parse(dayOf(toMs)) - Date.parse(first)) / 86_400_000);
    for (const box of boxes) {
      const { value, source } = await upstreams.firms.fires({ satellite, box, first, days });
      fires.push(...value.filter(({ at }) => Date.parse(at) >= fromMs && Date.parse(at) <= toMs));
      sources.push(source);
    }
  }
  return { fires, sources };
}

function areaOf({
  bbox,
  lat,
  lon,
  radiusKm,
}: {
  bbox?: [number, number, number, number] | undefined;
  lat?: number | undefined;
  lon?: number | undefined;
  radiusKm: number;
}): { searched: 'around lat and lon' | 'bbox' | 'whole Earth'; boxes: EarthBox[] } {
  if (bbox !== undefined) {
    const [west, south, east, north] = bbox;
    if (
      Math.abs(west) > 180 ||
      Math.abs(east) > 180 ||
      Math.abs(south) > 90 ||
      Math.abs(north) > 90 ||
      south >= north
    ) {
      throw invalid(
        'bbox',
        'bbox is west, south, east, north in degrees, within -180, -90, 180, 90, south below north.',
      );
    }
    return { searched: 'bbox', boxes: split({ west, south, east, north }) };
  }
  if (lat === undefined && lon === undefined) return { searched: 'whole Earth', boxes: [WHOLE_EARTH] };
  if (lat === undefined || lon === undefined) {
    throw invalid(lat === undefined ? 'lat' : 'lon', 'lat and lon belong together.');
  }
  return { searched: 'around lat and lon', boxes: boxesAround({ lat, lon }, radiusKm) };
}

/** The box that the picture shows: what was searched. */
function pictureBoxOf({
  bbox,
  lat,
  lon,
  radiusKm,
}: {
  bbox?: [number, number, number, number] | undefined;
  lat?: number | undefined;
  lon?: number | undefined;
  radiusKm: number;
}): PictureBox {
  if (bbox !== undefined) {
    const [west, south, east, north] = bbox;
    return { west, south, east, north };
  }
  return lat === undefined || lon === undefined ? WHOLE_EARTH : boxAround({ lat, lon }, radiusKm);
}
