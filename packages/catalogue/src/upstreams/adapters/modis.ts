import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';
import { wireNumber } from '../wire-number.ts';

/** The radius of the sphere on which the sinusoidal grid of MODIS is drawn, in meters. */
const GRID_RADIUS_M = 6_371_007.181;

/** The most composites that one request may ask for. */
export const MODIS_MAX_COMPOSITES = 10;

/** A product of vegetation indices: its bands, and how the numbers in its pixels are read. */
export interface VegetationProduct {
  product: string;
  title: string;
  firstDay: string;
  /** How many days a composite covers. */
  everyDays: number;
  /** How many days after one composite the next begins. */
  stepDays: number;
  ndvi: string;
  evi: string;
  reliability: string;
  /** A whole pixel value of 10,000 is an index of 1. */
  scale: number;
  /** What the pixel's own rank means; https://lpdaac.usgs.gov/products/mod13q1v061/ and vnp13a1v002. */
  quality: Readonly<Record<number, 'good' | 'marginal' | 'snow or ice' | 'cloudy'>>;
}
export const VEGETATION_INDEX = {
  product: 'MOD13Q1',
  title: 'MODIS vegetation index MOD13Q1 (Terra)',
  firstDay: '2000-02-18',
  everyDays: 16,
  stepDays: 16,
  ndvi: '250m_16_days_NDVI',
  evi: '250m_16_days_EVI',
  reliability: '250m_16_days_pixel_reliability',
  scale: 0.0001,
  quality: { 0: 'good', 1: 'marginal', 2: 'snow or ice', 3: 'cloudy' },
} as const satisfies VegetationProduct;
/** The successor of Terra's product: from another satellite, coarser, and twice as often. */
export const VIIRS_VEGETATION_INDEX = {
  product: 'VNP13A1',
  title: 'VIIRS vegetation index VNP13A1 (Suomi NPP)',
  firstDay: '2012-01-17',
  everyDays: 16,
  stepDays: 8,
  ndvi: '500_m_16_days_NDVI',
  evi: '500_m_16_days_EVI',
  reliability: '500_m_16_days_pixel_reliability',
  scale: 0.0001,
  quality: {
    0: 'good',
    1: 'good',
    2: 'good',
    3: 'marginal',
    4: 'marginal',
    5: 'marginal',
    6: 'marginal',
    7: 'cloudy',
    8: 'snow or ice',
    9: 'cloudy',
    10: 'marginal',
    11: 'marginal',
  },
} as const satisfies VegetationProduct;
export const LAND_COVER = {
  product: 'MCD12Q1',
  title: 'MODIS land cover MCD12Q1 (Terra and Aqua)',
  firstDay: '2001-01-01',
  band: 'LC_Type1',
} as const;

export interface ModisPixel {
  /** Degrees, of the pixel's middle. */
  lat: number;
  lon: number;
  /** As stored, unscaled; fill values included. */
  value: number;
}

export interface ModisComposite {
  /** The first day of the period (YYYY-MM-DD). */
  day: string;
  pixels: ModisPixel[];
}

export interface ModisSubset {
  /** Side of a pixel in meters. */
  pixelMeters: number;
  /** Oldest first. */
  composites: ModisComposite[];
}

const subset = z
  .looseObject({
    xllcorner: wireNumber,
    yllcorner: wireNumber,
    cellsize: wireNumber.pipe(z.number().positive()),
    nrows: wireNumber.pipe(z.number().int().min(1).max(201)),
    ncols: wireNumber.pipe(z.number().int().min(1).max(201)),
    subset: z
      .array(
        z.looseObject({
          calendar_date: z.iso.date(),
          band: z.string(),
          data: z.array(z.number()).max(40_401),
        }),
      )
      .max(200),
  })
  .transform((raw, context): ModisSubset => {
    const { nrows, ncols, cellsize } = raw;
    if (raw.subset.some(({ data }) => data.length !== nrows * ncols)) {
      context.addIssue({ code: 'custom', message: 'another number of pixels than rows and columns' });
      return z.NEVER;
    }
    // Rows run from the north; the corner is the south-western one.
    const middle = (at: number) => {
      const northing = raw.yllcorner + (nrows - Math.floor(at / ncols) - 0.5) * cellsize;
      const easting = raw.xllcorner + ((at % ncols) + 0.5) * cellsize;
      const lat = northing / GRID_RADIUS_M;
      const lon = easting / (GRID_RADIUS_M * Math.cos(lat));
      return { lat: degrees(lat), lon: degrees(lon) };
    };
    const composites = raw.subset.map(({ calendar_date: day, data }) => ({
      day,
      pixels: data.map((value, at) => ({ ...middle(at), value })),
    }));
    return { pixelMeters: cellsize, composites: composites.sort((a, b) => a.day.localeCompare(b.day)) };
  });

function degrees(radians: number): number {
  const value = (radians * 180) / Math.PI;
  return Math.round((value > 180 ? value - 360 : value < -180 ? value + 360 : value) * 1e6) / 1e6;
}

/** `A`, the year and the day of the year. */
function modisDate(day: string): string {
  const year = day.slice(0, 4);
  const ordinal = (Date.parse(`${day}T00:00:00Z`) - Date.parse(`${year}-01-01T00:00:00Z`)) / 86_400_000 + 1;
  return `A${year}${String(ordinal).padStart(3, '0')}`;
}

/**
 * MODIS land products by pixel, from the archive of ORNL. There are no tiles of the open sea.
 * https://modis.ornl.gov/rst/ui/
 */
export const modis = defineUpstream({
  name: 'modis',
  title: 'ORNL DAAC MODIS subsets',
  baseUrl: 'https://modis.ornl.gov/rst',
  licence: 'NASA open data, credit asked: ORNL DAAC, MODIS and VIIRS Land Products Global Subsetting',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: 'ORNL DAAC, MODIS and VIIRS Land Products Global Subsetting',
    url: 'https://modis.ornl.gov',
  },
  key: 'none',
  requestsPerMinute: 60,
  timeoutMs: 20_000,
  open: (http) => ({
    /**
     * The pixels around a point in the composites that begin from `first` to `last` (YYYY-MM-DD), at most 10 of them. Null
     * where the product has no tile: at sea.
     */
    pixels(asked: {
      product: string;
      band: string;
      lat: number;
      lon: number;
      first: string;
      last: string;
      /** How far around the point, in whole kilometers; 0 is the point's own pixel. */
      reachKm: number;
    }): Promise<Reply<ModisSubset | null>> {
      return http.find({
        path: `/api/v1/${asked.product}/subset`,
        query: {
          latitude: asked.lat,
          longitude: asked.lon,
          band: asked.band,
          startDate: modisDate(asked.first),
          endDate: modisDate(asked.last),
          kmAboveBelow: asked.reachKm,
          kmLeftRight: asked.reachKm,
        },
        schema: subset.refine(
          ({ composites }) => composites.every(({ day }) => day >= asked.first && day <= asked.last),
          'composites of another time',
        ),
        freshMs: 24 * 3_600_000,
        staleMs: 24 * 3_600_000,
      });
    },
  }),
  probe: (api) =>
    api.pixels({
      product: VEGETATION_INDEX.product,
      band: VEGETATION_INDEX.ndvi,
      lat: 48,
      lon: 11,
      first: '2024-06-01',
      last: '2024-06-20',
      reachKm: 0,
    }),
});
