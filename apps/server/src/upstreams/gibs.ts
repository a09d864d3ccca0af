import { z } from 'zod';
import { defineUpstream } from './define.ts';
import { type Box, DEFAULT_LAYER, type ImageryLayer, type Tile, tileAt } from './gibs-layers.ts';
import { type Picture, readPicture } from './picture.ts';

/**
 * Keeps only the facts about a picture. When GIBS cannot draw something, it also answers 200 with an XML
 * `ServiceException`; that gives null, as a 400 or 404 does.
 */
const picture = z.instanceof(Uint8Array).transform((content, context): Picture | null => {
  const read = readPicture(content);
  if (read !== null) return read;
  const start = Buffer.from(content.subarray(0, 2_000)).toString('utf8');
  if (/^\s*<[\s\S]*Exception/.test(start)) return null;
  context.addIssue({ code: 'custom', message: 'neither a picture nor an exception report' });
  return z.NEVER;
});

const ABSENT_ON = [400, 404];
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
  key: 'none',
  requestsPerMinute: 240,
  timeoutMs: 12_000,
  open: (http) => ({
    /** A tile (WMTS). It shows exactly the requested time, or is null when that time does not exist. */
    tile: (layer: ImageryLayer, time: string, format: 'png' | 'jpg', { z: level, row, col }: Tile) =>
      http.find({
        path: `/wmts/epsg4326/best/${layer.id}/default/${time}/${layer.matrixSet}/${level}/${row}/${col}.${format}`,
        schema: picture,
        as: 'bytes',
        absentOn: ABSENT_ON,
        ...freshness(layer),
      }),
    /**
     * A picture of a box (WMS 1.1.1, so west before south). It snaps to the nearest time, so ask for the tile first.
     */
    map: (layer: ImageryLayer, time: string, box: Box, size: { widthPx: number; heightPx: number }) =>
      http.find({
        path: '/wms/epsg4326/best/wms.cgi',
        query: mapQuery(layer, time, box, size),
        schema: picture,
        as: 'bytes',
        absentOn: ABSENT_ON,
        ...freshness(layer),
      }),
  }),
  probe: (api) => api.tile(DEFAULT_LAYER, '2024-06-01', 'jpg', tileAt(DEFAULT_LAYER.matrixSet, 0, 0, 288)),
});

function mapQuery(layer: ImageryLayer, time: string, box: Box, size: { widthPx: number; heightPx: number }) {
  return {
    SERVICE: 'WMS',
    REQUEST: 'GetMap',
    VERSION: '1.1.1',
    LAYERS: layer.id,
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
