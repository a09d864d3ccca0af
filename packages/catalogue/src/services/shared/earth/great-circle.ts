/** Distances and boxes on the globe, treated as a sphere. */

const EARTH_RADIUS_KM = 6_371.0088;
const KM_PER_DEGREE = (EARTH_RADIUS_KM * Math.PI) / 180;
const RADIANS = Math.PI / 180;

/** Degrees north and east. */
export interface Place {
  lat: number;
  lon: number;
}

/** The way along a great circle in kilometers, by the haversine formula; to a thousandth. */
export function distanceKm(from: Place, to: Place): number {
  const half =
    Math.sin(((to.lat - from.lat) * RADIANS) / 2) ** 2 +
    Math.cos(from.lat * RADIANS) *
      Math.cos(to.lat * RADIANS) *
      Math.sin(((to.lon - from.lon) * RADIANS) / 2) ** 2;
  return Math.round(2 * EARTH_RADIUS_KM * Math.asin(Math.min(1, Math.sqrt(half))) * 1_000) / 1_000;
}

/** Degrees; `west` is never above `east`. */
export interface EarthBox {
  west: number;
  south: number;
  east: number;
  north: number;
}

/**
 * The boxes that hold every point within a radius: one, or two where the antimeridian is crossed. Around a pole they hold
 * all longitudes.
 */
export function boxesAround({ lat, lon }: Place, radiusKm: number): EarthBox[] {
  const reach = radiusKm / KM_PER_DEGREE;
  const south = Math.max(-90, lat - reach);
  const north = Math.min(90, lat + reach);
  if (north >= 90 || south <= -90) return [{ west: -180, south, east: 180, north }];
  // The circle reaches farthest east where it touches a meridian, which is poleward of its center.
  const wide = Math.asin(Math.sin(reach * RADIANS) / Math.cos(lat * RADIANS)) / RADIANS;
  return split({ west: lon - wide, south, east: lon + wide, north });
}

/** Cuts a box at the antimeridian. `west` may lie below -180 or above `east`, `east` above 180. */
export function split({ west, south, east, north }: EarthBox): EarthBox[] {
  if (east - west >= 360) return [{ west: -180, south, east: 180, north }];
  if (west < -180) return split({ west: west + 360, south, east, north });
  if (east > 180) return split({ west, south, east: east - 360, north });
  if (west <= east) return [{ west, south, east, north }];
  return [
    { west, south, east: 180, north },
    { west: -180, south, east, north },
  ];
}
