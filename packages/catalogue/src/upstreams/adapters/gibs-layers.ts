/** The layers of GIBS, with their grids of times and tiles. Pure: it sends no requests. */

export type MatrixSet = '2km' | '1km' | '500m' | '250m';

export interface ImageryLayer {
  /** The id as GIBS spells it. */
  id: string;
  satellite: string;
  matrixSet: MatrixSet;
  /** The formats in which tiles may be stored. If the sources disagree, each is tried. */
  tileFormats: readonly ('png' | 'jpg')[];
  /** The interval between its times. `8-day`: composites that start anew each 1 January. */
  cadence: 'day' | '8-day' | { minutes: number };
  /** How long after a time its picture is usually available. */
  lagMinutes: number;
  /** The longitude below a geostationary satellite, which sees one disk only; null: the whole Earth. */
  diskLongitude: number | null;
  /** Whether an empty picture is an answer (no rain, no flood) or a missing picture. */
  emptyIsAnswer: boolean;
  /** The layer of another satellite that shows the same where this one has ended or not begun. */
  alternative?: string;
}

const DAY_MINUTES = 1_440;
const daily = {
  cadence: 'day',
  // Today's mosaic is still being assembled pass by pass, so yesterday's is the newest complete one.
  lagMinutes: DAY_MINUTES,
  diskLongitude: null,
  emptyIsAnswer: false,
} as const;
const geostationary = { cadence: { minutes: 10 }, lagMinutes: 40, emptyIsAnswer: false } as const;

const TERRA_PHOTO = 'MODIS_Terra_CorrectedReflectance_TrueColor';
const NOAA20_PHOTO = 'VIIRS_NOAA20_CorrectedReflectance_TrueColor';

/** Terra was planned to observe until the end of 2025 (LP DAAC); what it took before stays. */
export const DEFAULT_LAYER = trueColor(NOAA20_PHOTO, 'NOAA-20 (VIIRS)', TERRA_PHOTO);

/** Layers whose matrix set and cadence are known. https://nasa-gibs.github.io/gibs-api-docs/available-visualizations/ */
export const LAYERS: readonly ImageryLayer[] = [
  DEFAULT_LAYER,
  trueColor('VIIRS_SNPP_CorrectedReflectance_TrueColor', 'Suomi NPP (VIIRS)'),
  trueColor(TERRA_PHOTO, 'Terra (MODIS)', NOAA20_PHOTO),
  {
    id: 'VIIRS_SNPP_DayNightBand_ENCC',
    satellite: 'Suomi NPP (VIIRS)',
    matrixSet: '500m',
    tileFormats: ['png'],
    ...daily,
  },
  geoColor('GOES-East', -75.2),
  geoColor('GOES-West', -137.2),
  infrared('GOES-East_ABI', 'GOES-East (ABI)', -75.2),
  infrared('GOES-West_ABI', 'GOES-West (ABI)', -137.2),
  infrared('Himawari_AHI', 'Himawari (AHI)', 140.7),
  {
    id: 'IMERG_Precipitation_Rate_30min',
    satellite: 'GPM constellation (IMERG)',
    matrixSet: '2km',
    tileFormats: ['png'],
    cadence: { minutes: 30 },
    lagMinutes: 360,
    diskLongitude: null,
    emptyIsAnswer: true,
  },
  {
    id: 'GHRSST_L4_MUR_Sea_Surface_Temperature',
    satellite: 'Several (GHRSST MUR analysis)',
    matrixSet: '1km',
    tileFormats: ['png'],
    ...daily,
    lagMinutes: 2 * DAY_MINUTES,
  },
  {
    id: 'MODIS_Terra_NDVI_8Day',
    satellite: 'Terra (MODIS)',
    matrixSet: '250m',
    tileFormats: ['png'],
    ...daily,
    cadence: '8-day',
    lagMinutes: 10 * DAY_MINUTES,
  },
  flood('MODIS_Combined_Flood_1-Day', 'Terra and Aqua (MODIS)', 'VIIRS_Combined_Flood_1-Day'),
  flood('MODIS_Combined_Flood_2-Day', 'Terra and Aqua (MODIS)', 'VIIRS_Combined_Flood_2-Day'),
  flood('VIIRS_Combined_Flood_1-Day', 'Suomi NPP and NOAA-20 (VIIRS)', 'MODIS_Combined_Flood_1-Day'),
  flood('VIIRS_Combined_Flood_2-Day', 'Suomi NPP and NOAA-20 (VIIRS)', 'MODIS_Combined_Flood_2-Day'),
];

function trueColor(id: string, satellite: string, alternative?: string): ImageryLayer {
  const layer: ImageryLayer = { id, satellite, matrixSet: '250m', tileFormats: ['jpg'], ...daily };
  return alternative === undefined ? layer : { ...layer, alternative };
}

function flood(id: string, satellite: string, alternative: string): ImageryLayer {
  const shown = { matrixSet: '250m', tileFormats: ['png'], ...daily, emptyIsAnswer: true } as const;
  return { id, satellite, ...shown, alternative };
}

function geoColor(satellite: string, diskLongitude: number): ImageryLayer {
  return {
    id: `${satellite}_ABI_GeoColor`,
    satellite: `${satellite} (ABI)`,
    matrixSet: '1km',
    tileFormats: ['png', 'jpg'],
    ...geostationary,
    diskLongitude,
  };
}

function infrared(prefix: string, satellite: string, diskLongitude: number): ImageryLayer {
  return {
    id: `${prefix}_Band13_Clean_Infrared`,
    satellite,
    matrixSet: '2km',
    tileFormats: ['png'],
    ...geostationary,
    diskLongitude,
  };
}

/** Finds a layer by its id in any case, with hyphens or underscores: clients write `GOES_East` for `GOES-East`. */
export function findLayer(id: string): ImageryLayer | null {
  const key = (spelling: string) => spelling.toLowerCase().replace(/[-_\s]/g, '');
  const wanted = key(id);
  return LAYERS.find((layer) => key(layer.id) === wanted) ?? null;
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** The layer's last time at or before `atMs`, in milliseconds since 1970. */
export function timeOnGrid(layer: ImageryLayer, atMs: number): number {
  if (layer.cadence === 'day') return Math.floor(atMs / DAY_MS) * DAY_MS;
  if (layer.cadence === '8-day') {
    const newYearMs = Date.UTC(new Date(atMs).getUTCFullYear(), 0, 1);
    return newYearMs + Math.floor((atMs - newYearMs) / (8 * DAY_MS)) * 8 * DAY_MS;
  }
  const stepMs = layer.cadence.minutes * MINUTE_MS;
  return Math.floor(atMs / stepMs) * stepMs;
}

/** The newest `count` times that should have been published by `nowMs`, newest first. */
export function newestTimes(layer: ImageryLayer, nowMs: number, count: number): number[] {
  const times = [timeOnGrid(layer, nowMs - layer.lagMinutes * MINUTE_MS)];
  for (let last = times[0] ?? 0; times.length < count; ) {
    last = timeOnGrid(layer, last - 1);
    times.push(last);
  }
  return times;
}

/** A time as GIBS writes it: a day for layers of days, to the second for the others. */
export function timeName(layer: ImageryLayer, atMs: number): string {
  const iso = new Date(atMs).toISOString();
  return typeof layer.cadence === 'string' ? iso.slice(0, 10) : `${iso.slice(0, 19)}Z`;
}

/** Degrees: west, south, east, north. */
export type Box = readonly [number, number, number, number];

export interface Tile {
  z: number;
  row: number;
  col: number;
  box: Box;
}

const DEEPEST: Record<MatrixSet, number> = { '2km': 5, '1km': 6, '500m': 7, '250m': 8 };
/** The edge of a tile of level 0, in degrees; every level halves it. */
const LEVEL_0_DEGREES = 288;

/**
 * The tile of the EPSG:4326 pyramid that holds a point, at the deepest level where one tile is still at least
 * `sideDegrees` wide.
 */
export function tileAt(set: MatrixSet, lat: number, lon: number, sideDegrees: number): Tile {
  const z = Math.min(DEEPEST[set], Math.max(0, Math.floor(Math.log2(LEVEL_0_DEGREES / sideDegrees))));
  const span = LEVEL_0_DEGREES / 2 ** z;
  // The outermost edges belong to the last tile, because no tile begins there.
  const col = Math.min(Math.floor((lon + 180) / span), Math.ceil(360 / span) - 1);
  const row = Math.min(Math.floor((90 - lat) / span), Math.ceil(180 / span) - 1);
  const west = -180 + col * span;
  const north = 90 - row * span;
  return { z, row, col, box: [west, north - span, west + span, north] };
}

/** How far from the point below it a geostationary satellite still gives a usable picture, in degrees of arc. */
const DISK_REACH_DEGREES = 75;

/** Whether the layer's satellite sees a point. */
export function seesPoint(layer: ImageryLayer, lat: number, lon: number): boolean {
  if (layer.diskLongitude === null) return true;
  const rad = Math.PI / 180;
  const cosine = Math.cos(lat * rad) * Math.cos((lon - layer.diskLongitude) * rad);
  return cosine >= Math.cos(DISK_REACH_DEGREES * rad);
}

/** Everything that the layer shows, cut off at the antimeridian if a disk reaches beyond it. */
export function wholeBox(layer: ImageryLayer): Box {
  if (layer.diskLongitude === null) return [-180, -90, 180, 90];
  const [west, east] = [layer.diskLongitude - DISK_REACH_DEGREES, layer.diskLongitude + DISK_REACH_DEGREES];
  return [tenths(Math.max(-180, west)), -DISK_REACH_DEGREES, tenths(Math.min(180, east)), DISK_REACH_DEGREES];
}

/** Rounds to tenths, so that addresses contain no rounding errors of binary fractions. */
function tenths(degrees: number): number {
  return Math.round(degrees * 10) / 10;
}
