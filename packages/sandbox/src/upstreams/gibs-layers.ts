/** The layers of the sandbox's GIBS, and the times for which it has pictures of them. */

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

export interface Layer {
  id: string;
  /** The names of the tile matrix sets: `geographicSet` in EPSG:4326, `mercatorSet` in EPSG:3857. */
  geographicSet: string;
  mercatorSet: string;
  /** The format of the tiles. `mvt` means vector tiles: WMTS has no pictures of such a layer, and only WMS draws it. */
  ext: 'jpg' | 'png' | 'mvt';
  /** The time from one picture to the next. The periods of `8-day` and `16-day` start anew on each 1 January. */
  cadence: 'day' | '8-day' | '16-day' | 'year' | { minutes: number };
  /** The time from a picture's time until it is published. */
  lagMs: number;
  firstDay: string;
}

type Row = readonly [id: string, geographicSet: string, mercatorLevel: number, firstDay: string];

const PHOTOS: readonly Row[] = [
  ['MODIS_Terra_CorrectedReflectance_TrueColor', '250m', 9, '2000-02-24'],
  ['MODIS_Aqua_CorrectedReflectance_TrueColor', '250m', 9, '2002-07-03'],
  ['VIIRS_SNPP_CorrectedReflectance_TrueColor', '250m', 9, '2015-11-24'],
  ['VIIRS_NOAA20_CorrectedReflectance_TrueColor', '250m', 9, '2018-01-05'],
  ['VIIRS_NOAA21_CorrectedReflectance_TrueColor', '250m', 9, '2023-02-10'],
];
const DAILY: readonly Row[] = [
  ['VIIRS_SNPP_DayNightBand_ENCC', '500m', 8, '2016-11-30'],
  ['IMERG_Precipitation_Rate', '2km', 6, '2000-06-01'],
  ['MODIS_Combined_Flood_1-Day', '250m', 9, '2021-01-01'],
  ['MODIS_Combined_Flood_2-Day', '250m', 9, '2021-01-01'],
  ['VIIRS_Combined_Flood_1-Day', '250m', 9, '2026-08-20'],
  ['VIIRS_Combined_Flood_2-Day', '250m', 9, '2026-08-20'],
];
const FIRES: readonly Row[] = [
  ['VIIRS_SNPP_Thermal_Anomalies_375m_All', '500m', 8, '2012-01-20'],
  ['VIIRS_NOAA20_Thermal_Anomalies_375m_All', '500m', 8, '2020-01-01'],
  ['VIIRS_NOAA21_Thermal_Anomalies_375m_All', '500m', 8, '2024-01-17'],
  ['MODIS_Combined_Thermal_Anomalies_All', '1km', 7, '2000-11-11'],
];
const GEOSTATIONARY: readonly Row[] = [
  ['GOES-East_ABI_GeoColor', '1km', 7, '2018-05-24'],
  ['GOES-West_ABI_GeoColor', '1km', 7, '2019-02-12'],
  ['GOES-East_ABI_Band13_Clean_Infrared', '2km', 6, '2018-05-24'],
  ['GOES-West_ABI_Band13_Clean_Infrared', '2km', 6, '2019-02-12'],
  ['Himawari_AHI_Band13_Clean_Infrared', '2km', 6, '2018-05-24'],
];

const LAYERS: ReadonlyMap<string, Layer> = new Map(
  [
    ...PHOTOS.map((row) => layer(row, 'jpg', 'day', 6 * 60)),
    ...DAILY.map((row) => layer(row, 'png', 'day', 6 * 60)),
    ...GEOSTATIONARY.map((row) => layer(row, 'png', { minutes: 10 }, 40)),
    layer(['IMERG_Precipitation_Rate_30min', '2km', 6, '2019-01-01'], 'png', { minutes: 30 }, 6 * 60),
    layer(['GHRSST_L4_MUR_Sea_Surface_Temperature', '1km', 7, '2002-06-01'], 'png', 'day', 36 * 60),
    layer(['MODIS_Terra_NDVI_8Day', '250m', 9, '2000-02-18'], 'png', '8-day', 10 * 24 * 60),
    layer(['MODIS_Terra_L3_NDVI_16Day', '250m', 9, '2000-02-18'], 'png', '16-day', 24 * 24 * 60),
    layer(
      ['MODIS_Combined_L3_IGBP_Land_Cover_Type_Annual', '500m', 8, '2001-01-01'],
      ...(['png', 'year', 500 * 24 * 60] as const),
    ),
    ...FIRES.map((row) => layer(row, 'mvt', 'day', 0)),
  ].map((one) => [one.id, one]),
);

function layer(row: Row, ext: Layer['ext'], cadence: Layer['cadence'], lagMinutes: number): Layer {
  const [id, geographicSet, mercatorLevel, firstDay] = row;
  const mercatorSet = `GoogleMapsCompatible_Level${mercatorLevel}`;
  return { id, geographicSet, mercatorSet, ext, cadence, lagMs: lagMinutes * MINUTE_MS, firstDay };
}

export function findLayer(id: string): Layer | undefined {
  return LAYERS.get(id);
}

/** The newest time of a layer's grid that is not after `atMs`, whether or not its picture is published. */
export function timeOnGrid({ cadence }: Layer, atMs: number): number {
  if (cadence === 'day') return Math.floor(atMs / DAY_MS) * DAY_MS;
  if (typeof cadence === 'string') {
    const newYearMs = Date.UTC(new Date(atMs).getUTCFullYear(), 0, 1);
    const stepMs = { '8-day': 8, '16-day': 16, year: 366 }[cadence] * DAY_MS;
    return newYearMs + Math.floor((atMs - newYearMs) / stepMs) * stepMs;
  }
  const stepMs = cadence.minutes * MINUTE_MS;
  return Math.floor(atMs / stepMs) * stepMs;
}

/** The newest time for which a picture is published. */
export function newestTime(of: Layer, nowMs: number): number {
  return timeOnGrid(of, nowMs - of.lagMs);
}

/** A time as GIBS writes it for this layer. */
export function timeName({ cadence }: Layer, atMs: number): string {
  const iso = new Date(atMs).toISOString();
  return typeof cadence === 'string' ? iso.slice(0, 10) : iso.replace('.000Z', 'Z');
}

/** The time that a name stands for, or null if the layer has no picture of exactly that time. `default` is the newest. */
export function timeNamed(of: Layer, name: string, nowMs: number): number | null {
  if (name === 'default') return newestTime(of, nowMs);
  const format =
    typeof of.cadence === 'string' ? /^\d{4}-\d{2}-\d{2}$/ : /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}Z)?$/;
  const ms = format.test(name) ? Date.parse(name) : Number.NaN;
  const there = ms >= Date.parse(of.firstDay) && ms <= newestTime(of, nowMs) && timeOnGrid(of, ms) === ms;
  return there ? ms : null;
}

/** The step between times as an ISO 8601 duration. */
export function period({ cadence }: Layer): string {
  if (typeof cadence !== 'string') return `PT${cadence.minutes}M`;
  return { day: 'P1D', '8-day': 'P8D', '16-day': 'P16D', year: 'P1Y' }[cadence];
}
