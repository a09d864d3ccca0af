import { latitude, longitude, text } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { noAnswer, notFound, ServiceFailure } from '@farebox/core/words/failure';
import { z } from 'zod';
import {
  type Box,
  DEFAULT_LAYER,
  findLayer,
  type ImageryLayer,
  LAYERS,
  newestTimes,
  seesPoint,
  tileAt,
  timeName,
  timeOnGrid,
  wholeBox,
} from '../../upstreams/adapters/gibs-layers.ts';
import { findMap } from '../../upstreams/adapters/gibs-maps.ts';
import { defineService, type RunContext } from '../define.ts';
import { image, noPicture, pictureOf, type Shown } from '../shared/earth/map-picture.ts';

type Context = RunContext<'gibs'>;

const LONGER_SIDE_PX = 512;
const THUMBNAIL_PX = 128;
/** How far the box around a point reaches on every side. */
const REACH_DEGREES = 5;
const SMALLEST_SIDE_DEGREES = 0.02;
/** The newest times that are tried before giving up, where no date is asked for. */
const NEWEST_TRIED = 4;
const DAY_MS = 86_400_000;

const degrees = z.preprocess(
  (value) => (typeof value === 'string' && value.trim() !== '' ? Number(value) : value),
  z.number(),
);

export default defineService({
  path: 'weather-imagery',
  name: 'Weather Imagery',
  tag: 'Satellite Intelligence',
  priceUsd: '0.15',
  summary:
    'A satellite picture of a place and time from NASA GIBS: verified image and tile links, size and hash.',
  keywords:
    'satellite image images picture pictures photo photograph imagery clouds cloud storm hurricane cyclone typhoon view see from space look snapshot map tile goes himawari night lights earth true color',
  input: z.object({
    lat: latitude.optional(),
    lon: longitude.optional(),
    layer: text(120, `Imagery layer id: ${LAYERS.map(({ id }) => id).join(', ')}`).default(DEFAULT_LAYER.id),
    date: z
      .union([z.iso.date(), z.iso.datetime({ offset: true })])
      .optional()
      .describe('Day (YYYY-MM-DD), or time (ISO 8601) for layers of minutes; the newest unless given'),
    bbox: z
      .preprocess(
        (value) => (typeof value === 'string' ? value.split(',') : value),
        z.tuple([degrees, degrees, degrees, degrees]),
      )
      .optional()
      .describe('Box in degrees: west, south, east, north, as a list or as text with commas'),
  }),
  output: z.object({
    data: z
      .object({
        imageUrl: z.string().describe('The picture of the box (PNG)'),
        thumbnailUrl: z.string().describe('The same, smaller; not fetched by this server'),
        tileUrl: z.string().describe('The map tile in the middle of the box'),
        tileBbox: z.array(z.number()).describe('Box of the tile: west, south, east, north in degrees'),
        layer: z
          .string()
          .describe('The layer; another than the one asked for where that has no picture of the time'),
        date: z.string().describe('The time that the picture shows: a day, or a moment in UTC'),
        bbox: z.array(z.number()).describe('west, south, east, north in degrees'),
        bboxFrom: z.enum(['request', 'around lat and lon', 'whole layer']).describe('Where the box is from'),
        width: z.number().int().describe('Pixels'),
        height: z.number().int().describe('Pixels'),
        resolution: z.string().describe('The finest that the layer has at the equator'),
        degreesPerPixel: z.number().describe('Degrees for a pixel of the picture'),
        satellite: z.string().describe('The satellite or the product that the picture is of'),
        imageBytes: z.number().int().describe('Size of the picture in bytes'),
        sha256: z.string().describe('Of the picture when this server fetched it, in hex'),
        image,
      })
      .describe('The picture'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: 29, lon: -90, layer: 'GOES-East_ABI_Band13_Clean_Infrared' },
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon', time: 'date' },
  adapt(body) {
    const { west, south, east, north } = body;
    const sides = [west, south, east, north];
    return body.bbox === undefined && sides.every((side) => side !== undefined)
      ? { ...body, bbox: sides }
      : body;
  },
  needs: ['gibs'],
  mayUse: ['pictures'],
  timeoutMs: 25_000,
  async run(input, context) {
    const asked = findLayer(input.layer);
    if (asked === null) {
      throw notFound(
        'layer',
        `No layer "${input.layer}". There are: ${LAYERS.map(({ id }) => id).join(', ')}.`,
      );
    }
    const { box, from } = boxOf(asked, input);
    const centerLat = (box[1] + box[3]) / 2;
    const centerLon = (box[0] + box[2]) / 2;
    if (!seesPoint(asked, centerLat, centerLon)) {
      throw noAnswer(
        'OUT_OF_COVERAGE',
        `${asked.satellite} does not see ${centerLat}, ${centerLon}: it stands above longitude ${asked.diskLongitude}.`,
        input.bbox === undefined ? 'lon' : 'bbox',
      );
    }

    const notes: string[] = [];
    const [widthDegrees, heightDegrees] = [box[2] - box[0], box[3] - box[1]];
    const degreesPerPixel = Math.max(widthDegrees, heightDegrees) / LONGER_SIDE_PX;
    const size = {
      widthPx: Math.max(1, Math.round(widthDegrees / degreesPerPixel)),
      heightPx: Math.max(1, Math.round(heightDegrees / degreesPerPixel)),
    };
    const across = Math.max(widthDegrees, heightDegrees);
    const tileOf = ({ matrixSet }: ImageryLayer) => tileAt(matrixSet, centerLat, centerLon, across);
    const { layer, tile, found } = await tileIn(asked, input.date, tileOf, notes, context);
    const picture = await context.upstreams.gibs.map(layer, found.time, box, size);
    if (picture.value === null) {
      throw noAnswer('NO_IMAGERY', `GIBS does not draw ${layer.id} for ${found.time} in this box.`, 'date');
    }
    if (picture.value.singleColor === true) {
      if (!layer.emptyIsAnswer) {
        throw noAnswer(
          'EMPTY_IMAGE',
          `${layer.id} shows nothing in this box at ${found.time}: one color throughout.`,
        );
      }
      notes.push('The picture is of one color: the layer shows nothing in this box (no rain, no flood).');
    }
    if (from === 'whole layer')
      notes.push('Neither lat and lon nor bbox was given: the box is all that the layer shows.');

    const shown = shownHere(layer, found.time, box, input, context);
    notes.push(...shown.notes);

    return answer(
      {
        data: {
          imageUrl: picture.source.url,
          thumbnailUrl: smaller(picture.source.url, size),
          tileUrl: found.source.url,
          tileBbox: [...tile.box],
          layer: layer.id,
          date: found.time,
          bbox: [...box],
          bboxFrom: from,
          width: size.widthPx,
          height: size.heightPx,
          resolution: layer.matrixSet,
          degreesPerPixel,
          satellite: layer.satellite,
          imageBytes: picture.value.bytes,
          sha256: picture.value.sha256,
          image: shown.image,
        },
        poweredBy: 'NASA GIBS (ESDIS)',
      },
      {
        method:
          'WMS GetMap 1.1.1 in EPSG:4326. That the time exists was checked with the WMTS tile in the middle of the box, since WMS silently takes the nearest time; the picture was fetched and hashed.',
        sources: [
          { ...picture.source, asOf: found.asOf },
          { ...found.source, asOf: found.asOf },
        ],
        notes,
      },
    );
  },
});

/** The same picture at an address of ours, with a ring where lat and lon are. */
function shownHere(
  { id }: ImageryLayer,
  time: string,
  [west, south, east, north]: Box,
  { lat, lon }: Asked,
  { pictures }: Context,
): Shown {
  const map = findMap(id);
  if (map === null) return noPicture(`there is no map ${id}.`);
  const marker = lat === undefined || lon === undefined ? null : { lat, lon };
  return pictureOf(pictures, { map, time, box: { west, south, east, north }, marker });
}

type Asked = {
  lat?: number | undefined;
  lon?: number | undefined;
  bbox?: [number, number, number, number] | undefined;
};

function boxOf(
  layer: ImageryLayer,
  asked: Asked,
): { box: Box; from: 'request' | 'around lat and lon' | 'whole layer' } {
  if (asked.bbox !== undefined) {
    const [west, south, east, north] = asked.bbox;
    if (west < -180 || east > 180 || south < -90 || north > 90) {
      throw invalid('bbox', 'bbox must lie within -180, -90, 180, 90 (west, south, east, north).');
    }
    if (east - west < SMALLEST_SIDE_DEGREES || north - south < SMALLEST_SIDE_DEGREES) {
      throw invalid(
        'bbox',
        `bbox is west, south, east, north, each side at least ${SMALLEST_SIDE_DEGREES} degrees; cut a box across the antimeridian in two.`,
      );
    }
    return { box: asked.bbox, from: 'request' };
  }
  const { lat, lon } = asked;
  if (lat === undefined && lon === undefined) return { box: wholeBox(layer), from: 'whole layer' };
  if (lat === undefined || lon === undefined) {
    throw invalid(lat === undefined ? 'lat' : 'lon', 'lat and lon belong together.');
  }
  // Near an edge of the map the box is moved instead of cut, and still holds the point.
  const west = micro(Math.min(Math.max(lon - REACH_DEGREES, -180), 180 - 2 * REACH_DEGREES));
  const south = micro(Math.min(Math.max(lat - REACH_DEGREES, -90), 90 - 2 * REACH_DEGREES));
  return {
    box: [west, south, micro(west + 2 * REACH_DEGREES), micro(south + 2 * REACH_DEGREES)],
    from: 'around lat and lon',
  };
}

/** To a millionth of a degree, a tenth of a meter: binary fractions have no place in an address. */
function micro(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

/** The times to try, best first. */
function timesOf(layer: ImageryLayer, date: string | undefined, nowMs: number, notes: string[]): string[] {
  if (date === undefined) {
    return newestTimes(layer, nowMs, NEWEST_TRIED).map((time) => timeName(layer, time));
  }
  const askedMs = Date.parse(date);
  if (askedMs > nowMs) throw invalid('date', `date ${date} lies in the future.`);
  const wholeDay = date.length === 10;
  if (typeof layer.cadence === 'string' || !wholeDay) {
    const onGrid = timeName(layer, timeOnGrid(layer, askedMs));
    if (onGrid !== date) notes.push(`The layer’s time that ${date} belongs to is ${onGrid}.`);
    if (layer.cadence === 'day' && onGrid === new Date(nowMs).toISOString().slice(0, 10)) {
      notes.push('The mosaic of today is still growing: parts of it may be empty.');
    }
    return [onGrid];
  }
  const newestMs = newestTimes(layer, nowMs, 1)[0] ?? askedMs;
  const chosenMs = Math.max(askedMs, Math.min(askedMs + DAY_MS / 2, newestMs));
  const chosen = timeName(layer, timeOnGrid(layer, chosenMs));
  notes.push(
    `The layer has many pictures a day and date names none: ${chosen} was taken. Give a time to choose.`,
  );
  return [chosen];
}

interface FoundTile {
  layer: ImageryLayer;
  tile: ReturnType<typeof tileAt>;
  found: NonNullable<Awaited<ReturnType<typeof findTile>>>;
}

/**
 * The tile of the layer that was asked for, or of its alternative where that layer has ended or not begun.
 *
 * @throws noAnswer when neither has one
 */
async function tileIn(
  asked: ImageryLayer,
  date: string | undefined,
  tileOf: (layer: ImageryLayer) => ReturnType<typeof tileAt>,
  notes: string[],
  context: Context,
): Promise<FoundTile> {
  const other = asked.alternative === undefined ? null : findLayer(asked.alternative);
  for (const layer of other === null ? [asked] : [asked, other]) {
    const said: string[] = [];
    const times = timesOf(layer, date, context.nowMs(), said);
    const tile = tileOf(layer);
    const found = await findTile(layer, times, tile, context);
    if (found === null) continue;
    notes.push(...said);
    if (layer !== asked)
      notes.push(`GIBS has no ${asked.id} for this time: ${layer.id} of ${layer.satellite} stands for it.`);
    return { layer, tile, found };
  }
  const times = timesOf(asked, date, context.nowMs(), []);
  const span = times.length === 1 ? times[0] : `${times[times.length - 1]} to ${times[0]}`;
  const neither = other === null ? '' : `, nor of ${other.id}`;
  throw noAnswer('NO_IMAGERY', `GIBS has no ${asked.id} for ${span}${neither}.`, 'date');
}

async function findTile(
  layer: ImageryLayer,
  times: readonly string[],
  tile: ReturnType<typeof tileAt>,
  { upstreams }: Context,
): Promise<{ time: string; asOf: string; source: Source } | null> {
  for (const time of times) {
    for (const format of layer.tileFormats) {
      const { value, source } = await upstreams.gibs.tile(layer, time, format, tile);
      if (value !== null) return { time, asOf: new Date(time).toISOString(), source };
    }
  }
  return null;
}

function smaller(url: string, size: { widthPx: number; heightPx: number }): string {
  const thumbnail = new URL(url);
  const scale = THUMBNAIL_PX / LONGER_SIDE_PX;
  thumbnail.searchParams.set('WIDTH', String(Math.max(1, Math.round(size.widthPx * scale))));
  thumbnail.searchParams.set('HEIGHT', String(Math.max(1, Math.round(size.heightPx * scale))));
  return thumbnail.toString();
}

function invalid(field: string, message: string): ServiceFailure {
  return new ServiceFailure({ status: 400, code: 'INVALID_REQUEST', message, field });
}
