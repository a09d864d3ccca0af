import { z } from 'zod';
import { defineUpstream } from '../define.ts';
import { isPng, type Picture, readPicture } from '../picture.ts';
import { type Box, DEFAULT_LAYER, type ImageryLayer, type Tile, tileAt } from './gibs-layers.ts';
import type { MapLayer } from './gibs-maps.ts';

/** When GIBS cannot draw something, it also answers 200 with an XML `ServiceException`; that gives null, as a 400 or 404 does. */
function pictureAs<T>(read: (content: Uint8Array) => T | null) {
  return z.instanceof(Uint8Array).transform((content, context): T | null => {
    const found = read(content);
    if (found !== null) return found;
    const start = Buffer.from(content.subarray(0, 2_000)).toString('utf8');
    if (isException(start)) return null;
    context.addIssue({ code: 'custom', message: 'neither a picture nor an exception report' });
    return z.NEVER;
  });
}

function isException(text: string): boolean {
  return /^\s*<[\s\S]*Exception/.test(text.slice(0, 2_000));
}

/** Of a tile, only the facts are kept. */
const tileFacts = pictureAs<Picture>(readPicture);
const pngBytes = pictureAs<Uint8Array>((content) => (isPng(content) ? content : null));

/** The facts of bytes that are kept as they came: they are read again and again, and to read them takes a while. */
const factsOf = new WeakMap<Uint8Array, Picture | null>();

function factsOnce(content: Uint8Array): Picture | null {
  const known = factsOf.get(content);
  if (known !== undefined) return known;
  const facts = readPicture(content);
  factsOf.set(content, facts);
  return facts;
}

/**
 * The times of a layer between two others: `start/end/period` or single ones, with commas between them. An exception report
 * is none.
 */
const domain = z.string().transform((content, context): string[] => {
  const [, listed] = /<Domain>([^<]*)<\/Domain>/.exec(content) ?? [];
  if (listed !== undefined || /<Domain\s*\/>/.test(content))
    return (listed ?? '').split(',').filter((each) => each.trim() !== '');
  if (isException(content)) return [];
  context.addIssue({ code: 'custom', message: 'no description of the times of a layer' });
  return z.NEVER;
});

const ABSENT_ON = [400, 404];
/** A picture of 512 pixels is at most a megabyte as PNG. */
const MAX_REPLY_BYTES = 4 * 1024 * 1024;
/** A picture of a past time changes little: the mosaic of a day fills up within hours. */
const DAILY = { freshMs: 3_600_000, staleMs: 23 * 3_600_000 };
const SUB_DAILY = { freshMs: 600_000, staleMs: 3_600_000 };

function freshness(layer: ImageryLayer) {
  return typeof layer.cadence === 'string' ? DAILY : SUB_DAILY;
}

/**
 * NASA's Global Imagery Browse Services, in plain latitude and longitude (EPSG:4326). The address of every picture is
 * the `source.url` of its reply. https://nasa-gibs.github.io/gibs-api-docs/
 */
export const gibs = defineUpstream({
  name: 'gibs',
  title: 'NASA GIBS',
  baseUrl: 'https://gibs.earthdata.nasa.gov',
  licence:
    'NASA open data: "We acknowledge the use of imagery provided by services from NASA GIBS, part of ESDIS"',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: 'NASA GIBS, part of ESDIS',
    url: 'https://nasa-gibs.github.io/gibs-api-docs/',
  },
  documentation: {
    at: 'https://github.com/nasa-gibs/gibs-api-docs/blob/13b6638/docs/access-basics.md',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 240,
  timeoutMs: 12_000,
  maxReplyBytes: MAX_REPLY_BYTES,
  open: (http) => ({
    /** A tile (WMTS). It shows exactly the requested time, or is null when that time does not exist. */
    tile: (layer: ImageryLayer, time: string, format: 'png' | 'jpg', { z: level, row, col }: Tile) =>
      http.find({
        path: `/wmts/epsg4326/best/${layer.id}/default/${time}/${layer.matrixSet}/${level}/${row}/${col}.${format}`,
        schema: tileFacts,
        as: 'bytes',
        absentOn: ABSENT_ON,
        ...freshness(layer),
      }),
    /**
     * The facts about a picture of a box (WMS 1.1.1, so west before south). It snaps to the nearest time, so ask for the
     * tile first.
     */
    async map(layer: ImageryLayer, time: string, box: Box, size: { widthPx: number; heightPx: number }) {
      const { value, source } = await http.find({
        path: '/wms/epsg4326/best/wms.cgi',
        query: mapQuery(layer.id, time, box, size),
        // The same address as of `drawn`: what is kept of it must be the same too.
        schema: pngBytes,
        as: 'bytes',
        absentOn: ABSENT_ON,
        ...freshness(layer),
      });
      return { value: value === null ? null : factsOnce(value), source };
    },
    /** Whether there is a map of exactly this time (WMTS DescribeDomains): WMS would draw the nearest without a word. */
    async isPublished(map: MapLayer, time: string): Promise<boolean> {
      const { value } = await http.find({
        path: `/wmts/epsg4326/best/1.0.0/${map.id}/default/${map.matrixSet}/all/${time}--${time}.xml`,
        schema: domain,
        as: 'text',
        absentOn: ABSENT_ON,
        countsOnce: true,
        ...SUB_DAILY,
      });
      return value?.some((each) => holdsTime(each, time)) ?? false;
    },
    /** The PNG of a box, as `map`, with all that belongs to it drawn over each other. Null when GIBS does not draw it. */
    drawn: (map: MapLayer, time: string, box: Box, size: { widthPx: number; heightPx: number }) =>
      http.find({
        path: '/wms/epsg4326/best/wms.cgi',
        query: mapQuery(map.drawn.join(','), time, box, size),
        schema: pngBytes,
        as: 'bytes',
        absentOn: ABSENT_ON,
        countsOnce: true,
        ...SUB_DAILY,
      }),
  }),
  probe: (api) => api.tile(DEFAULT_LAYER, '2024-06-01', 'jpg', tileAt(DEFAULT_LAYER.matrixSet, 0, 0, 288)),
});

/** Whether a part of a domain, `start/end/period` or a single time, holds a time. */
function holdsTime(part: string, time: string): boolean {
  const [start = '', end = start] = part.trim().split('/');
  const at = Date.parse(time);
  return at >= Date.parse(start) && at <= Date.parse(end);
}

function mapQuery(layers: string, time: string, box: Box, size: { widthPx: number; heightPx: number }) {
  return {
    SERVICE: 'WMS',
    REQUEST: 'GetMap',
    VERSION: '1.1.1',
    LAYERS: layers,
    STYLES: '',
    SRS: 'EPSG:4326',
    BBOX: box.join(','),
    WIDTH: size.widthPx,
    HEIGHT: size.heightPx,
    FORMAT: 'image/png',
    TRANSPARENT: 'TRUE',
    TIME: time,
  };
}
