/** The maps of GIBS that are shown as a picture beside an answer. Pure: no request leaves from here. */
import type { FirmsSatellite } from './firms.ts';
import { LAYERS, type MatrixSet } from './gibs-layers.ts';

export interface MapLayer {
  /** As GIBS spells it. */
  id: string;
  /** What the map shows, in a few words. */
  shows: string;
  /** What WMS draws for it, the lowest first. */
  drawn: readonly string[];
  matrixSet: MatrixSet;
}

/**
 * Fires are dots on nothing: they are drawn over the picture that the same satellite took on the day, or on
 * the nearest day that has one: only of the fires is it asked whether they are published.
 */
function fires(satellite: string, [dots, photo]: [string, string], matrixSet: MatrixSet): MapLayer {
  return {
    id: dots,
    shows: `Fires seen by ${satellite} on the day, over its picture in true color of that day or the nearest that there is`,
    drawn: [photo, dots],
    matrixSet,
  };
}

function viirs(id: string, name: string): MapLayer {
  const photo = `VIIRS_${id}_CorrectedReflectance_TrueColor`;
  return fires(`${name} (VIIRS)`, [`VIIRS_${id}_Thermal_Anomalies_375m_All`, photo], '500m');
}

/** The detections of FIRMS as a map. https://nasa-gibs.github.io/gibs-api-docs/available-visualizations/ */
export const FIRE_MAPS: Readonly<Record<FirmsSatellite, MapLayer>> = {
  VIIRS_NOAA20_NRT: viirs('NOAA20', 'NOAA-20'),
  VIIRS_SNPP_NRT: viirs('SNPP', 'Suomi NPP'),
  VIIRS_NOAA21_NRT: viirs('NOAA21', 'NOAA-21'),
  MODIS_NRT: fires(
    'Terra and Aqua (MODIS)',
    ['MODIS_Combined_Thermal_Anomalies_All', 'MODIS_Terra_CorrectedReflectance_TrueColor'],
    '1km',
  ),
};

function single(id: string, shows: string, matrixSet: MatrixSet): MapLayer {
  return { id, shows, drawn: [id], matrixSet };
}

/** NDVI of MOD13Q1. Its times are the first days of composites: each sixteenth day from 1 January on. */
export const VEGETATION_MAP = single(
  'MODIS_Terra_L3_NDVI_16Day',
  'NDVI of the composite (MOD13Q1): brown is bare, dark green is dense',
  '250m',
);
/** The classes of MCD12Q1. Its times are the first days of years. */
export const LAND_COVER_MAP = single(
  'MODIS_Combined_L3_IGBP_Land_Cover_Type_Annual',
  'Classes of the IGBP in the year (MCD12Q1), a color for each',
  '500m',
);
export const SEA_TEMPERATURE_MAP = single(
  'GHRSST_L4_MUR_Sea_Surface_Temperature',
  'Sea surface temperature of the day (GHRSST MUR), from cold in blue to warm in red',
  '1km',
);
/** Water where there usually is none, as a satellite saw it in two days: no model's discharge. */
function floodMap(id: string, instrument: string, firstDay: string) {
  const shows = `Flood water that ${instrument} saw in two days: an observation, and not the discharge of the model`;
  return { ...single(id, shows, '250m'), firstDay };
}

/** The newest first. Aqua was planned to observe until August 2026 (MODIS Land), and the map of VIIRS goes on. */
export const FLOOD_MAPS = [
  floodMap('VIIRS_Combined_Flood_2-Day', 'VIIRS', '2026-09-01'),
  floodMap('MODIS_Combined_Flood_2-Day', 'MODIS', '2021-01-01'),
] as const;

const MAPS: ReadonlyMap<string, MapLayer> = new Map(
  [
    ...LAYERS.map(({ id, satellite, matrixSet }) => single(id, `Picture of ${satellite}`, matrixSet)),
    ...Object.values(FIRE_MAPS),
    ...[VEGETATION_MAP, LAND_COVER_MAP, SEA_TEMPERATURE_MAP, ...FLOOD_MAPS],
  ].map((map) => [map.id, map]),
);

/** Null when there is no map of that id. */
export function findMap(id: string): MapLayer | null {
  return MAPS.get(id) ?? null;
}
