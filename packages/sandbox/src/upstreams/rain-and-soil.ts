/** Rain, and the wetness of the soil after it. Days are counted from 1970-01-01 in UTC. */
import { patches, zonalWetness } from './globe.ts';
import { isLand } from './land.ts';
import { keyOf } from './noise.ts';

/** The rain of a day in millimeters, rounded to a hundredth. About half of the days have none. */
export function rainMm(seed: number, day: number, latitude: number, longitude: number): number {
  const weather = patches(keyOf(seed, `rain:${day}`), latitude, longitude, 5);
  const surplus = weather + zonalWetness(latitude) - 0.1;
  return surplus <= 0 ? 0 : Math.round(800 * surplus ** 1.6) / 100;
}

export interface SoilWetness {
  /** Shares of saturation from 0 to 1: at the surface, in the zone of roots, and over the whole profile. */
  top: number;
  root: number;
  profile: number;
}

/** The wetness of the soil on a day; null at sea. */
export function soilWetness(
  seed: number,
  day: number,
  latitude: number,
  longitude: number,
): SoilWetness | null {
  if (!isLand(latitude, longitude)) return null;
  const climate =
    0.45 + 0.25 * zonalWetness(latitude) + 0.1 * patches(keyOf(seed, 'soil'), latitude, longitude, 4);
  let recentMm = 0;
  for (let back = 0; back < 4; back++) recentMm += rainMm(seed, day - back, latitude, longitude) / (1 + back);
  return {
    top: share(climate - 0.08 + 0.012 * recentMm),
    root: share(climate + 0.002 * recentMm),
    profile: share(climate + 0.04),
  };
}

function share(value: number): number {
  return Math.round(Math.max(0.02, Math.min(0.98, value)) * 100) / 100;
}
