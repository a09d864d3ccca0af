import { latitude, longitude, outsiderText } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { noAnswer } from '@farebox/core/words/failure';
import { z } from 'zod';
import { defineService } from '../define.ts';
import { distanceKm } from '../shared/earth/great-circle.ts';
import { image, noPicture } from '../shared/earth/map-picture.ts';

const POLLUTANTS = ['NO2', 'SO2', 'CO', 'O3', 'PM2.5', 'PM10', 'aerosol'] as const;
/** Maps of aerosol and gases by satellites are other products, of other hours and in other units. */
const NO_PICTURE = noPicture('the model (CAMS) has no public map of the hour.');
const concentration = (what: string) =>
  z
    .number()
    .nullable()
    .describe(`${what} in micrograms in a cubic meter of air; null where the model has none`);

export default defineService({
  path: 'air-quality',
  name: 'Air Quality',
  tag: 'Satellite Intelligence',
  priceUsd: '0.15',
  featured: true,
  summary:
    'The air of this hour at a point: dust and gases in µg/m³, and the indices of the US and Europe (CAMS model).',
  keywords:
    'air pollution polluted smog dust pm2.5 pm25 pm10 ozone no2 aqi breathe breathing breathable clean dirty haze smoke particles asthma lungs outside city jogging mask pollen gases carbon monoxide breath fumes exhaust haze co2 unhealthy allergy',
  input: z.object({
    lat: latitude,
    lon: longitude,
    pollutant: z
      .preprocess(
        (value) =>
          typeof value === 'string'
            ? (POLLUTANTS.find(
                (name) =>
                  name.toLowerCase().replace('.', '') === value.trim().toLowerCase().replace(/[._]/g, ''),
              ) ?? value)
            : value,
        z.enum(POLLUTANTS),
      )
      .optional()
      .describe('One of them to be told first: NO2, SO2, CO, O3, PM2.5, PM10 or aerosol'),
  }),
  output: z.object({
    data: z
      .object({
        no2: concentration('Nitrogen dioxide'),
        so2: concentration('Sulfur dioxide'),
        o3: concentration('Ozone'),
        co: concentration('Carbon monoxide'),
        pm25: concentration('Dust up to 2.5 micrometers'),
        pm10: concentration('Dust up to 10 micrometers'),
        aerosolOpticalDepth: z
          .number()
          .nullable()
          .describe('How much of the light dust takes away, without a unit'),
        aqi: z.number().nullable().describe('Index of the US EPA, 0 to 500'),
        europeanAqi: z
          .number()
          .nullable()
          .describe('Index of the European Environment Agency; above 100 is extremely poor'),
        category: z
          .enum([
            'good',
            'moderate',
            'unhealthy for sensitive groups',
            'unhealthy',
            'very unhealthy',
            'hazardous',
          ])
          .nullable()
          .describe('Of aqi, by the US EPA: up to 50, 100, 150, 200, 300, and above; null without it'),
        selected: z
          .object({
            pollutant: z.enum(POLLUTANTS).describe('The one that was asked for'),
            value: z.number().nullable().describe('Its value, as above'),
            unit: outsiderText(30).describe('Its unit'),
          })
          .nullable()
          .describe('The pollutant that was asked for; null when none was'),
        quality: z.string().describe('What the values are: the source flags no single one'),
        observedAt: z.string().describe('The hour that the values are of (ISO 8601, UTC)'),
        dataResolutionDeg: z.number().describe('Side of a cell of the global model; in Europe it is 0.1'),
        gridLat: z.number().describe('Latitude of the middle of the cell'),
        gridLon: z.number().describe('Longitude of the middle of the cell'),
        distanceKm: z.number().describe('From the point asked for to the middle of the cell'),
        image,
      })
      .describe('The air, and where and when'),
    poweredBy: z.string().describe('Whose data it is'),
  }),
  example: { lat: 28.61, lon: 77.21 },
  aliases: { latitude: 'lat', longitude: 'lon', lng: 'lon' },
  needs: ['openmeteoair'],
  async run({ lat, lon, pollutant }, { upstreams }) {
    const { value, source } = await upstreams.openmeteoair.current({ lat, lon });
    const air = value.values;
    if (Object.values(air).every((one) => one === null)) {
      throw noAnswer('NO_DATA', `The model has no value for ${lat}, ${lon} at this hour.`, 'lat');
    }
    const amounts: Record<(typeof POLLUTANTS)[number], number | null> = {
      NO2: air.nitrogen_dioxide,
      SO2: air.sulphur_dioxide,
      CO: air.carbon_monoxide,
      O3: air.ozone,
      'PM2.5': air.pm2_5,
      PM10: air.pm10,
      aerosol: air.aerosol_optical_depth,
    };
    const missing = POLLUTANTS.filter((name) => amounts[name] === null);
    return answer(
      {
        data: {
          no2: amounts.NO2,
          so2: amounts.SO2,
          o3: amounts.O3,
          co: amounts.CO,
          pm25: amounts['PM2.5'],
          pm10: amounts.PM10,
          aerosolOpticalDepth: amounts.aerosol,
          aqi: air.us_aqi,
          europeanAqi: air.european_aqi,
          category: air.us_aqi === null ? null : categoryOf(air.us_aqi),
          selected:
            pollutant === undefined
              ? null
              : { pollutant, value: amounts[pollutant], unit: pollutant === 'aerosol' ? '1' : 'µg/m³' },
          quality:
            'chemistry model (CAMS), no measurement of a station or a satellite; no flag for a single value',
          observedAt: value.at,
          dataResolutionDeg: 0.4,
          gridLat: value.lat,
          gridLon: value.lon,
          distanceKm: distanceKm({ lat, lon }, value),
          image: NO_PICTURE.image,
        },
        poweredBy: 'Copernicus Atmosphere Monitoring Service through Open-Meteo',
      },
      {
        method: 'The current hour of the model’s cell; the indices are the source’s own.',
        sources: [{ ...source, asOf: value.at }],
        notes: [
          ...(missing.length === 0 ? [] : [`The model has no value for ${missing.join(', ')} here: null.`]),
          ...NO_PICTURE.notes,
        ],
      },
    );
  },
});

function categoryOf(aqi: number) {
  if (aqi <= 50) return 'good' as const;
  if (aqi <= 100) return 'moderate' as const;
  if (aqi <= 150) return 'unhealthy for sensitive groups' as const;
  return aqi <= 200
    ? ('unhealthy' as const)
    : aqi <= 300
      ? ('very unhealthy' as const)
      : ('hazardous' as const);
}
