/**
 * NASA GIBS: tiles by WMTS, maps by WMS, and the dates of a layer. Pictures bear the word "SANDBOX". `gibs-paint.ts` says what
 * they show.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import { findLayer, type Layer, newestTime, period, timeName, timeNamed, timeOnGrid } from './gibs-layers.ts';
import { paintingOf } from './gibs-paint.ts';
import { encodeJpeg, encodePng, letter, paint } from './picture.ts';
import { type Query, textOf } from './query.ts';
import type { World } from './world.ts';

const MAX_SIDE_PIXELS = 2_048;

/** The deepest zoom of the tile matrix sets in EPSG:4326. */
const GEOGRAPHIC_ZOOMS: Readonly<Record<string, number>> = {
  '2km': 5,
  '1km': 6,
  '500m': 7,
  '250m': 8,
  '31.25m': 11,
};
const QUALITIES = ['best', 'std', 'nrt', 'all'];

/** The edges of a map in degrees. */
interface Box {
  west: number;
  south: number;
  east: number;
  north: number;
}

interface TileRoute {
  Params: {
    projection: string;
    quality: string;
    layer: string;
    time: string;
    set: string;
    zoom: string;
    row: string;
    file: string;
  };
}

export function gibs(app: FastifyInstance, { seed, nowMs }: World): void {
  const picture = (reply: FastifyReply, ...shown: Shown) => {
    const [, , , , jpeg] = shown;
    return reply.type(jpeg ? 'image/jpeg' : 'image/png').send(pictureOf(seed, nowMs(), shown));
  };

  app.get<TileRoute>(
    '/wmts/:projection/:quality/:layer/default/:time/:set/:zoom/:row/:file',
    ({ params }, reply) => {
      const layer = findLayer(params.layer);
      const projection = params.projection;
      if (!QUALITIES.includes(params.quality) || (projection !== 'epsg4326' && projection !== 'epsg3857')) {
        return refuse(reply, 404, 'InvalidParameterValue', 'projection', 'No such endpoint');
      }
      if (layer === undefined)
        return refuse(reply, 400, 'InvalidParameterValue', 'LAYER', 'LAYER does not exist');
      const set = projection === 'epsg4326' ? layer.geographicSet : layer.mercatorSet;
      if (params.set !== set) {
        return refuse(
          reply,
          400,
          'InvalidParameterValue',
          'TILEMATRIXSET',
          'TILEMATRIXSET is invalid for LAYER',
        );
      }
      const [, column, ext] = /^(\d+)\.(\w+)$/.exec(params.file) ?? [];
      if (
        column === undefined ||
        layer.ext === 'mvt' ||
        (ext !== layer.ext && !(layer.ext === 'jpg' && ext === 'jpeg'))
      ) {
        return refuse(reply, 400, 'InvalidParameterValue', 'FORMAT', 'FORMAT is invalid for LAYER');
      }
      const [zoom, row, col] = [wholeNumber(params.zoom), wholeNumber(params.row), wholeNumber(column)];
      const tile =
        projection === 'epsg4326' ? geographicTile(set, zoom, row, col) : mercatorTile(set, zoom, row, col);
      if (tile === null) return refuse(reply, 400, 'TileOutOfRange', 'TILEROW', 'The tile is out of range');
      const timeMs = timeNamed(layer, params.time, nowMs());
      if (timeMs === null)
        return refuse(reply, 404, 'InvalidParameterValue', 'TIME', 'No picture for this time');
      return picture(reply, [layer], timeMs, tile.box, [tile.side, tile.side], layer.ext === 'jpg');
    },
  );

  app.get<{ Params: { projection: string; layer: string; range: string } }>(
    '/wmts/:projection/:quality/1.0.0/:layer/default/:set/all/:range',
    ({ params }, reply) => {
      const layer = findLayer(params.layer);
      const [, from, to] = /^(.+)--(.+)\.xml$/.exec(params.range) ?? [];
      if (layer === undefined || from === undefined || to === undefined) {
        return refuse(reply, 400, 'InvalidParameterValue', 'LAYER', 'LAYER or range is invalid');
      }
      const bound = (asked: string, otherwise: number) => (asked === 'all' ? otherwise : Date.parse(asked));
      const start = Math.max(Date.parse(layer.firstDay), bound(from, 0));
      const end = Math.min(newestTime(layer, nowMs()), bound(to, nowMs()));
      if (Number.isNaN(start) || Number.isNaN(end)) {
        return refuse(reply, 400, 'InvalidParameterValue', 'TIME', 'The range is invalid');
      }
      const newest = timeOnGrid(layer, end);
      const domain =
        start > newest ? '' : `${timeName(layer, start)}/${timeName(layer, newest)}/${period(layer)}`;
      return reply
        .type('application/xml')
        .send(
          `<?xml version="1.0" encoding="UTF-8"?>\n<Domains xmlns="http://demo.geo-solutions.it/share/wmts-multidim/wmts_multi_dimensional.xsd" xmlns:ows="http://www.opengis.net/ows/1.1">\n  <SpaceDomain><BoundingBox crs="urn:ogc:def:crs:OGC:1.3:CRS84" minx="-180" miny="-90" maxx="180" maxy="90"/></SpaceDomain>\n  <DimensionDomain>\n    <ows:Identifier>time</ows:Identifier>\n    <Domain>${domain}</Domain>\n    <Size>${domain === '' ? 0 : 1}</Size>\n  </DimensionDomain>\n</Domains>\n`,
        );
    },
  );

  app.get<{ Params: { file: string } }>('/layer-metadata/v1.0/:file', ({ params }, reply) => {
    const layer = findLayer(params.file.replace(/\.json$/, ''));
    if (layer === undefined)
      return refuse(reply, 404, 'InvalidParameterValue', 'LAYER', 'LAYER does not exist');
    return {
      id: layer.id,
      title: `${layer.id.replace(/_/g, ' ')} (SANDBOX)`,
      subtitle: 'Sandbox',
      layerPeriod: typeof layer.cadence === 'string' ? 'Daily' : 'Subdaily',
      startDate: layer.firstDay,
      ongoing: true,
      conceptIds: [],
    };
  });

  app.get<{ Params: { projection: string; quality: string }; Querystring: Query }>(
    '/wms/:projection/:quality/wms.cgi',
    ({ params, query: asked }, reply) => {
      const query: Query = Object.fromEntries(
        Object.entries(asked).map(([name, value]) => [name.toUpperCase(), value]),
      );
      const wrong = (locator: string, message: string, status = 400) =>
        refuse(reply, status, 'InvalidParameterValue', locator, message);
      if (textOf(query, 'REQUEST')?.toLowerCase() !== 'getmap')
        return wrong('REQUEST', 'Only GetMap is served here');
      const layers = (textOf(query, 'LAYERS') ?? '').split(',').flatMap((id) => findLayer(id) ?? []);
      const [layer] = layers;
      if (layer === undefined || layers.length !== (textOf(query, 'LAYERS') ?? '').split(',').length)
        return wrong('LAYERS', 'Invalid layer(s) given in the LAYERS parameter');
      const version = textOf(query, 'VERSION');
      const reference = textOf(query, version === '1.3.0' ? 'CRS' : 'SRS')?.toUpperCase();
      if (version !== '1.1.1' && version !== '1.3.0')
        return wrong('VERSION', 'VERSION must be 1.1.1 or 1.3.0');
      if (params.projection !== 'epsg4326' || reference !== 'EPSG:4326') {
        return wrong(version === '1.3.0' ? 'CRS' : 'SRS', 'Only EPSG:4326 is served here');
      }
      const edges = (textOf(query, 'BBOX') ?? '').split(',').map(Number);
      const [first, second, third, fourth] = edges;
      if (
        edges.length !== 4 ||
        edges.some(Number.isNaN) ||
        first === undefined ||
        second === undefined ||
        third === undefined ||
        fourth === undefined
      ) {
        return wrong('BBOX', 'Invalid values for BBOX');
      }
      // In version 1.3.0 the axes of EPSG:4326 are latitude first, then longitude.
      const box: Box =
        version === '1.3.0'
          ? { south: first, west: second, north: third, east: fourth }
          : { west: first, south: second, east: third, north: fourth };
      if (box.west >= box.east || box.south >= box.north || box.north > 90 || box.south < -90) {
        return wrong('BBOX', 'Invalid values for BBOX');
      }
      const width = Number(textOf(query, 'WIDTH'));
      const height = Number(textOf(query, 'HEIGHT'));
      for (const side of [width, height]) {
        if (!Number.isInteger(side) || side < 1 || side > MAX_SIDE_PIXELS)
          return wrong('WIDTH', 'Invalid image size');
      }
      const format = textOf(query, 'FORMAT')?.toLowerCase();
      if (format !== 'image/png' && format !== 'image/jpeg')
        return wrong('FORMAT', 'Unsupported output format');
      const time = textOf(query, 'TIME') ?? 'default';
      // WMS answers the newest picture that is not after the given time. WMTS wants the exact time.
      const wanted = time === 'default' ? nowMs() : Date.parse(time);
      if (Number.isNaN(wanted)) return wrong('TIME', 'Invalid TIME');
      const top = layers.at(-1) ?? layer;
      const timeMs = Math.min(timeOnGrid(top, wanted), newestTime(top, nowMs()));
      if (timeMs < Date.parse(top.firstDay)) return wrong('TIME', 'No picture for this time', 404);
      return picture(
        reply,
        [layer, ...layers.slice(1)],
        timeMs,
        box,
        [width, height],
        format === 'image/jpeg',
      );
    },
  );
}

type Shown = [
  /** The lowest first. */
  layers: readonly [Layer, ...Layer[]],
  timeMs: number,
  box: Box,
  size: [width: number, height: number],
  jpeg: boolean,
];

function pictureOf(seed: number, nowMs: number, [layers, timeMs, box, size, jpeg]: Shown): Buffer {
  const [width, height] = size;
  const { valueAt, palette, dots } = paintingOf(seed, layers, timeMs, box, nowMs);
  const map = paint(width, height, 8, (x, y) => {
    const longitude = box.west + ((box.east - box.west) * x) / width;
    const latitude = box.north - ((box.north - box.south) * y) / height;
    return valueAt(latitude, ((longitude + 540) % 360) - 180);
  });
  // The JPEG coder keeps dots of 8 x 8 pixels sharp. In a narrow picture the word stands in two lines.
  const lines = width >= 8 * 44 ? ['SANDBOX'] : ['SAND', 'BOX'];
  const dot = width >= 8 * 26 ? 8 : 1;
  for (const [at, line] of lines.entries()) letter(map, line, dot, dot * (1 + at * 8), dot, 255);
  const edges = [box.west, box.south, box.east, box.north].map((edge) => edge.toFixed(2)).join(',');
  const top = layers.at(-1) ?? layers[0];
  const notes = [top.id, timeName(top, timeMs), edges];
  if (!jpeg) {
    for (const [at, note] of notes.entries()) letter(map, note, 4, height - 30 + at * 10, 1, 230);
  }
  // Dots are drawn after the lettering, so that it hides no fire.
  for (const { latitude, longitude, value } of dots) {
    const x = Math.floor(((longitude - box.west) / (box.east - box.west)) * width);
    const y = Math.floor(((box.north - latitude) / (box.north - box.south)) * height);
    for (let row = Math.max(0, y - 2); row <= Math.min(height - 1, y + 2); row++)
      map.pixels.fill(value, row * width + Math.max(0, x - 2), row * width + Math.min(width, x + 3));
  }
  return jpeg ? encodeJpeg(map, notes.join(' ')) : encodePng(map, notes.join(' '), palette);
}

/** A whole number; NaN if the text is not digits alone. Comparisons with NaN are false, so that such a tile is out of range. */
function wholeNumber(digits: string): number {
  return /^\d+$/.test(digits) ? Number(digits) : Number.NaN;
}

/** A tile in EPSG:4326, or null if it is out of range. It has 512 pixels a side and spans 288 degrees at zoom 0. */
function geographicTile(
  set: string,
  zoom: number,
  row: number,
  col: number,
): { box: Box; side: number } | null {
  const span = 288 / 2 ** zoom;
  const inside =
    zoom <= (GEOGRAPHIC_ZOOMS[set] ?? -1) && col < Math.ceil(360 / span) && row < Math.ceil(180 / span);
  if (!inside) return null;
  const west = -180 + col * span;
  const north = 90 - row * span;
  return { box: { west, north, east: west + span, south: north - span }, side: 512 };
}

/** A tile in web mercator (EPSG:3857), or null if it is out of range. It has 256 pixels a side. */
function mercatorTile(
  set: string,
  zoom: number,
  row: number,
  col: number,
): { box: Box; side: number } | null {
  const deepest = Number(/_Level(\d+)$/.exec(set)?.[1]);
  const tiles = 2 ** zoom;
  if (!(zoom <= deepest && col < tiles && row < tiles)) return null;
  const longitude = (x: number) => (x / tiles) * 360 - 180;
  const latitude = (y: number) => (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / tiles))) * 180) / Math.PI;
  return {
    box: { west: longitude(col), east: longitude(col + 1), north: latitude(row), south: latitude(row + 1) },
    side: 256,
  };
}

function refuse(reply: FastifyReply, status: number, code: string, locator: string, message: string) {
  return reply
    .code(status)
    .type('text/xml')
    .send(
      `<?xml version="1.0" encoding="UTF-8"?>\n<ExceptionReport xmlns="http://www.opengis.net/ows/1.1" version="1.1.0" xml:lang="en">\n  <Exception exceptionCode="${code}" locator="${locator}">\n    <ExceptionText>${message}</ExceptionText>\n  </Exception>\n</ExceptionReport>\n`,
    );
}
