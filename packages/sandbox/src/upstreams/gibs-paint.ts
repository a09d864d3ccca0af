/**
 * Paints the sandbox's maps. Fires, vegetation, land cover, the sea's temperature and floods have the same values that the
 * sandbox's other sources answer. Maps of all other layers show only land and sea.
 */
import { seaCelsius } from './erddap.ts';
import { fireIn } from './firms.ts';
import type { Layer } from './gibs-layers.ts';
import { isLand } from './land.ts';
import { greenness, landClass } from './modis.ts';
import { riverM3s } from './openmeteoflood.ts';
import type { Palette } from './picture.ts';

const DAY_MS = 86_400_000;
const SEA = 60;
const LAND = 120;
const FIRE = 250;
const FLOOD = 249;
/** Numbers of the palette from here on are for the lettering and for marks. The number below is for uncovered places. */
const LETTERS_FROM = 224;
/** A cell of the river model is shown as flooded above this discharge, in cubic meters a second. */
const FLOOD_M3S = 30;

interface Painting {
  /** The number in the palette for a place, given in degrees north and east. */
  valueAt(latitude: number, longitude: number): number;
  palette: Palette;
  dots: readonly { latitude: number; longitude: number; value: number }[];
}

interface Box {
  west: number;
  south: number;
  east: number;
  north: number;
}

type Color = readonly [red: number, green: number, blue: number];

/** A palette of 256 greys, some of them replaced by the given colors. */
function paletteOf(colors: ReadonlyMap<number, Color> = new Map()): Palette {
  const palette = new Uint8Array(256 * 3);
  for (let at = 0; at < 256; at++) palette.set(colors.get(at) ?? [at, at, at], at * 3);
  return palette;
}

/** The colors of the numbers from 0 to 200, which change evenly from one color to another. */
function rampOf(from: Color, to: Color): Map<number, Color> {
  const between = (at: number, channel: 0 | 1 | 2) =>
    Math.round(from[channel] + ((to[channel] - from[channel]) * at) / 200);
  return new Map(
    Array.from({ length: 201 }, (_, at) => [at, [between(at, 0), between(at, 1), between(at, 2)]]),
  );
}

const ramped = (share: number) => Math.round(200 * Math.max(0, Math.min(1, share)));
const ground = (latitude: number, longitude: number) => (isLand(latitude, longitude) ? LAND : SEA);

/** The colors of the IGBP's classes 1 to 17: forests green, grass and crops yellow, cities red, ice white, water blue. */
const CLASS_COLORS: readonly Color[] = [
  ...([
    [5, 80, 40],
    [10, 110, 60],
    [40, 130, 60],
    [70, 150, 70],
    [100, 160, 90],
    [150, 140, 80],
  ] as const),
  ...([
    [190, 170, 110],
    [150, 180, 80],
    [190, 200, 90],
    [210, 205, 120],
    [60, 150, 140],
  ] as const),
  ...([
    [230, 200, 60],
    [200, 40, 40],
    [220, 190, 90],
    [240, 240, 250],
    [215, 205, 180],
    [40, 90, 170],
  ] as const),
];

/**
 * The painting of a map of some layers. Only the topmost one decides what is shown; below it lies a map of land and sea.
 *
 * @param layers the lowest first
 * @param timeMs the time of the topmost layer's picture
 */
export function paintingOf(
  seed: number,
  layers: readonly Layer[],
  timeMs: number,
  box: Box,
  nowMs: number,
): Painting {
  const day = Math.floor(timeMs / DAY_MS);
  const id = layers.at(-1)?.id ?? '';
  const plain = { valueAt: ground, palette: paletteOf(), dots: [] };
  if (id.includes('Thermal_Anomalies')) {
    return {
      ...plain,
      palette: paletteOf(new Map([[FIRE, [255, 40, 0]]])),
      dots: firesIn(seed, day, box, nowMs),
    };
  }
  if (id === 'MODIS_Terra_L3_NDVI_16Day') {
    return {
      ...plain,
      palette: paletteOf(rampOf([180, 150, 100], [0, 80, 20])),
      valueAt: (latitude, longitude) =>
        isLand(latitude, longitude)
          ? ramped((greenness(seed, day, latitude, longitude) + 0.1) / 1.05)
          : LETTERS_FROM - 1,
    };
  }
  if (id === 'MODIS_Combined_L3_IGBP_Land_Cover_Type_Annual') {
    return {
      ...plain,
      palette: paletteOf(new Map(CLASS_COLORS.map((color, at) => [at + 1, color]))),
      valueAt: (latitude, longitude) => landClass(seed, latitude, longitude),
    };
  }
  if (id === 'GHRSST_L4_MUR_Sea_Surface_Temperature') {
    return {
      ...plain,
      palette: paletteOf(rampOf([20, 30, 160], [230, 60, 30])),
      valueAt: (latitude, longitude) =>
        isLand(latitude, longitude)
          ? LETTERS_FROM - 1
          : ramped((seaCelsius(seed, timeMs, latitude, longitude) + 2) / 34),
    };
  }
  if (id.includes('Combined_Flood')) {
    return {
      ...plain,
      palette: paletteOf(new Map([[FLOOD, [200, 30, 90]]])),
      valueAt: (latitude, longitude) =>
        (riverM3s(seed, day, middle(latitude), middle(longitude)) ?? 0) > FLOOD_M3S
          ? FLOOD
          : ground(latitude, longitude),
    };
  }
  return plain;
}

/** The middle of the cell of 0.05 degrees that holds a latitude or longitude, as in the sandbox's river model. */
function middle(degrees: number): number {
  return Math.round((Math.floor(degrees / 0.05) + 0.5) * 0.05 * 1e4) / 1e4;
}

function firesIn(seed: number, day: number, box: Box, nowMs: number) {
  const found: { latitude: number; longitude: number; value: number }[] = [];
  for (let row = Math.floor(box.south); row < box.north; row++) {
    for (let column = Math.floor(box.west); column < box.east; column++) {
      const fire = fireIn(seed, day, row, column);
      if (fire === null || day * DAY_MS + fire.minute * 60_000 > nowMs) continue;
      const { latitude, longitude } = fire;
      if (latitude >= box.south && latitude <= box.north && longitude >= box.west && longitude <= box.east)
        found.push({ latitude, longitude, value: FIRE });
    }
  }
  return found;
}
