/** Noise over the globe: values that differ from place to place, and less between places that are close to each other. */
import { gaussian } from './noise.ts';

/** Noise that is standard normal at grid points `cellDegrees` apart and smooth between them. */
export function patches(key: number, latitude: number, longitude: number, cellDegrees: number): number {
  const row = Math.floor(latitude / cellDegrees);
  const column = Math.floor(longitude / cellDegrees);
  const ease = (share: number) => share * share * (3 - 2 * share);
  const north = ease(latitude / cellDegrees - row);
  const east = ease(longitude / cellDegrees - column);
  const corner = (dRow: number, dColumn: number) => gaussian(key, (row + dRow) * 8_192 + column + dColumn);
  return (
    (corner(0, 0) * (1 - east) + corner(0, 1) * east) * (1 - north) +
    (corner(1, 0) * (1 - east) + corner(1, 1) * east) * north
  );
}

/** How wet a latitude is, from about -0.5 to 0.6: wet near the equator and around 50 degrees, dry around 25. */
export function zonalWetness(latitude: number): number {
  const distance = Math.abs(latitude);
  return (
    0.6 * Math.exp(-((latitude / 12) ** 2)) -
    0.5 * Math.exp(-(((distance - 25) / 9) ** 2)) +
    0.2 * Math.exp(-(((distance - 50) / 12) ** 2))
  );
}
