import { latitude, longitude } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import { LAND_COVER_MAP } from '../../upstreams/adapters/gibs-maps.ts';
import { LAND_COVER } from '../../upstreams/adapters/modis.ts';
import { defineService } from '../define.ts';
import { distanceKm } from '../shared/earth/great-circle.ts';
import { boxAround, image, pictureOf, USUAL_REACH_KM } from '../shared/earth/map-picture.ts';
import { invalid } from '../shared/earth/observation-day.ts';

const FIRST_YEAR = Number(LAND_COVER.firstDay.slice(0, 4));
/** How many years back the newest map is searched. */
const YEARS_LATE = 4;

/** The scheme of the International Geosphere-Biosphere Programme, by the number in the pixel. */
const CLASSES: Readonly<Record<number, string>> = {
  1: 'evergreen needleleaf forest',
  2: 'evergreen broadleaf forest',
  3: 'deciduous needleleaf forest',
  4: 'deciduous broadleaf forest',
  5: 'mixed forest',
  6: 'closed shrubland',
  7: 'open shrubland',
  8: 'woody savanna',
  9: 'savanna',
  10: 'grassland',
  11: 'permanent wetland',
  12: 'cropland',
  13: 'urban and built-up',
  14: 'cropland and natural vegetation mosaic',
  15: 'permanent snow and ice',
  16: 'barren',
  17: 'water',
};

export default defineService({
  path: 'land-use',
  name: 'Land Use',
  tag: 'Satellite Intelligence',
  priceUsd: '0.15',
  summary:
    'Land cover of the ground around a point, by class and percent, from the yearly MODIS map of 500 m pixels.',
  keywords:
    'land cover use ground forest farmland cropland urban city desert grassland parcel terrain classification classify type built wetland trees zoning soil what is there map area surface deforestation',
  input: z.object({
    lat: latitude,
    lon: longitude,
    year: z
      .preprocess(
        (value) => (typeof value === 'string' ? Number(value) : value),
        z.number().int().min(1_900).max(2_200),
      )
      .optional()
      .describe('Year of the map; the newest there is unless given'),
    radiusKm: z
      .preprocess(
        (value) => (typeof value === 'string' ? Number(value) : value),
        z.number().int().min(1).max(20),
      )
      .default(2)
      .describe('How far around the point in whole kilometers, 1 to 20'),
  }),
  output: z.object({
    data: z
      .object({
        classes: z
          .record(z.string(), z.number())
          .describe(
            'Percent of the classified pixels within the radius, by class; those with none are left out',
          ),
        dominantType: z.string().describe('The class with the most pixels'),
        typeAtPoint: z
          .string()
          .nullable()
          .describe('Class of the pixel that holds the point; null where it has none'),
        pixels: z.number().int().describe('Classified pixels within the radius'),
        unclassifiedPixels: z.number().int().describe('Pixels within the radius that the map leaves out'),
        areaKm2: z.number().describe('What the classified pixels cover, in square kilometers'),
        accuracyNote: z.string().describe('What the makers of the map say of its use'),
        product: z
          .literal(LAND_COVER.product)
          .describe('The map that was read: MCD12Q1, made from MODIS on Terra and Aqua. No other is'),
        year: z.number().int().describe('Year of the map'),
        observedAt: z.string().describe('First day of that year'),
        dataResolutionM: z.number().describe('Side of a pixel in meters'),
        distanceKm: z.number().describe('From the point asked for to the middle of its pixel'),
        radiusKm: z.number().describe('What was looked at around the point'),
        image,
      })
      .describe('Shares of what covers the ground'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: 41.6, lon: -93.6 },
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon', radius: 'radiusKm' },
  needs: ['modis'],
  mayUse: ['pictures'],
  timeoutMs: 25_000,
  async run({ lat, lon, year, radiusKm }, { upstreams, nowMs, pictures }) {
    const thisYear = new Date(nowMs()).getUTCFullYear();
    if (year !== undefined && year > thisYear) throw invalid('year', `year ${year} lies in the future.`);
    if (year !== undefined && year < FIRST_YEAR) {
      throw noAnswer('BEFORE_RECORD', `${LAND_COVER.title} begins with ${FIRST_YEAR}.`, 'year');
    }
    const { value, source } = await upstreams.modis.pixels({
      product: LAND_COVER.product,
      band: LAND_COVER.band,
      lat,
      lon,
      first: `${year ?? thisYear - YEARS_LATE}-01-01`,
      last: `${year ?? thisYear}-12-31`,
      reachKm: radiusKm,
    });
    if (value === null)
      throw noAnswer('NOT_LAND', `${lat}, ${lon} is open sea: the map has no tile there.`, 'lat');
    const map = value.composites.at(-1);
    if (map === undefined) {
      throw noAnswer(
        'NOT_PUBLISHED',
        `There is no map of ${year ?? 'the last years'} yet: they come more than a year late.`,
        'year',
      );
    }
    const within = map.pixels
      .map((pixel) => ({
        ...pixel,
        distanceKm: distanceKm({ lat, lon }, pixel),
        type: CLASSES[pixel.value] ?? null,
      }))
      .filter((pixel) => pixel.distanceKm <= radiusKm)
      .toSorted((a, b) => a.distanceKm - b.distanceKm);
    const counts = new Map<string, number>();
    for (const { type } of within) if (type !== null) counts.set(type, (counts.get(type) ?? 0) + 1);
    const ranked = [...counts].toSorted(([, a], [, b]) => b - a);
    const [dominant] = ranked;
    const [own] = within;
    if (dominant === undefined || own === undefined) {
      throw noAnswer(
        'NO_DATA',
        `The map of ${map.day.slice(0, 4)} leaves out all pixels around ${lat}, ${lon}.`,
        'lat',
      );
    }
    const classified = ranked.reduce((sum, [, count]) => sum + count, 0);
    const shown = pictureOf(pictures, {
      map: LAND_COVER_MAP,
      time: map.day,
      box: boxAround({ lat, lon }, USUAL_REACH_KM),
      marker: { lat, lon },
    });
    return answer(
      {
        data: {
          classes: Object.fromEntries(
            ranked.map(([type, count]) => [type, Math.round((10_000 * count) / classified) / 100]),
          ),
          dominantType: dominant[0],
          typeAtPoint: own.type,
          pixels: classified,
          unclassifiedPixels: within.length - classified,
          areaKm2: Math.round(classified * (value.pixelMeters / 1_000) ** 2 * 100) / 100,
          accuracyNote:
            'Its makers warn of reading a change from the classes of two years, and of years after 2021, for which the places that it learns from were not looked at again (https://www.earthdata.nasa.gov/data/catalog/lpcloud-mcd12q1-061).',
          product: LAND_COVER.product,
          year: Number(map.day.slice(0, 4)),
          observedAt: map.day,
          dataResolutionM: Math.round(value.pixelMeters * 10) / 10,
          distanceKm: own.distanceKm,
          radiusKm,
          image: shown.image,
        },
        poweredBy: `${LAND_COVER.title} through ORNL DAAC`,
      },
      {
        method: `${LAND_COVER.band} (17 classes of the IGBP) of the pixels whose middle lies within the radius, counted by class. It shows what covers the ground, not what it is zoned or used for.`,
        sources: [{ ...source, asOf: `${map.day}T00:00:00.000Z` }],
        notes: [
          ...(year === undefined ? [`No year was given: the newest map is of ${map.day.slice(0, 4)}.`] : []),
          ...shown.notes,
        ],
      },
    );
  },
});
