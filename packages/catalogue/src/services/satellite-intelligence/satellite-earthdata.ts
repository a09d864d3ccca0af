import type { Service } from '@farebox/core/service/define';
import { isoDate, latitude, longitude, outsiderObject } from '@farebox/core/service/fields';
import { z } from 'zod';
import type { UpstreamName } from '../../upstreams/index.ts';
import { defineService, type RunContext } from '../define.ts';
import granules from './earthdata-granules.ts';
import oceanColor from './earthdata-ocean-color.ts';
import precipitation from './earthdata-precipitation.ts';
import soilMoisture from './earthdata-soil-moisture.ts';
import seaSurfaceTemperature from './earthdata-sst.ts';

const PRODUCTS: Readonly<Record<string, Service>> = {
  precipitation,
  granules,
  sst: seaSurfaceTemperature,
  'soil-moisture': soilMoisture,
  'ocean-color': oceanColor,
};
const NAMES = ['precipitation', 'granules', 'sst', 'soil-moisture', 'ocean-color'] as const;
const ABOUT: Readonly<Record<(typeof NAMES)[number], string>> = {
  precipitation: 'Rain and snow at a place; needs lat and lon',
  granules: 'Pictures and files of satellites; needs no place',
  sst: 'Temperature of the sea at a place; needs lat and lon',
  'soil-moisture': 'Water in the soil at a place; needs lat and lon',
  'ocean-color': 'Chlorophyll of the sea at a place; needs lat and lon',
};
const OTHER_NAMES: Readonly<Record<string, string>> = {
  rain: 'precipitation',
  'ocean-temp': 'sst',
  'sea-surface-temperature': 'sst',
  'water-quality': 'ocean-color',
  chlorophyll: 'ocean-color',
};

export default defineService({
  path: 'satellite-earthdata',
  name: 'Satellite Earth Data',
  tag: 'Satellite Intelligence',
  priceUsd: '0.25',
  featured: true,
  summary:
    'One service for five products of a place: precipitation, granules, sea temperature, soil moisture, ocean color.',
  keywords:
    'satellite earth observation nasa data place general several products one door combined all environmental remote sensing',
  input: z
    .object({
      product: z
        .preprocess((value) => {
          if (typeof value !== 'string') return value;
          const name = value
            .trim()
            .toLowerCase()
            .replace(/[_\s]+/g, '-');
          return OTHER_NAMES[name] ?? name;
        }, z.enum(NAMES))
        .describe('precipitation, granules, sst, soil-moisture or ocean-color'),
      lat: latitude.optional(),
      lon: longitude.optional(),
      date: isoDate.optional().describe('Day in UTC, YYYY-MM-DD; the newest there is unless given'),
    })
    .refine(({ product, lat }) => product === 'granules' || lat !== undefined, {
      path: ['lat'],
      message: 'is required, because the product is of a place',
    })
    .refine(({ product, lon }) => product === 'granules' || lon !== undefined, {
      path: ['lon'],
      message: 'is required, because the product is of a place',
    }),
  output: z.object({
    product: z.enum(NAMES).describe('The product, by its own name'),
    data: outsiderObject(2_000).describe(
      'What the service of that name answers under data: earthdata-precipitation, earthdata-sst and so on',
    ),
    availableProducts: z.array(z.string()).describe('What there is'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { product: 'precipitation', lat: 37.77, lon: -122.42 },
  choices: NAMES.map((value) => ({ field: 'product', value, about: ABOUT[value] })),
  aliases: { dataset: 'product', latitude: 'lat', longitude: 'lon', lng: 'lon' },
  needs: [['power', 'cmr', 'erddap']],
  uses: ['openmeteoarchive'],
  mayUse: ['pictures'],
  timeoutMs: 25_000,
  async run({ product, lat, lon, date }, context) {
    const service = PRODUCTS[product];
    if (service === undefined) throw new Error(`no product ${product}`);
    const place = { ...(lat === undefined ? {} : { lat }), ...(lon === undefined ? {} : { lon }) };
    const day =
      date === undefined ? {} : product === 'granules' ? { startDate: date, endDate: date } : { date };
    // Each of the five asks sources that are named above, and no others.
    const made = await service.run(
      service.input.parse({ ...place, ...day }),
      context as RunContext<UpstreamName>,
    );
    const { data, poweredBy } = z
      .object({ data: z.record(z.string(), z.unknown()), poweredBy: z.string() })
      .parse(service.output.parse(made.fields));
    return { ...made, fields: { product, data, availableProducts: [...NAMES], poweredBy } };
  },
});
