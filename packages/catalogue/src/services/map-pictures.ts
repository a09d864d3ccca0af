/** Pictures of maps with a marker, as services hand them out: by an address of ours that whoever has it may look at. */

/** Degrees. `west` above `east` crosses the antimeridian. */
export interface PictureBox {
  west: number;
  south: number;
  east: number;
  north: number;
}

export interface MapPicture {
  /** Id of a map (`upstreams/adapters/gibs-maps.ts`). */
  layer: string;
  /** The time as the map names it: a day, or a moment in UTC. */
  time: string;
  box: PictureBox;
  widthPx: number;
  heightPx: number;
  /** The place that a ring is drawn around; null: nothing. */
  marker: { lat: number; lon: number } | null;
}

export interface MapPictures {
  /** Makes a link and fetches nothing for it: that is done with the first look. Null while no source of maps is configured. */
  linkTo(picture: MapPicture): { url: string; expiresAtMs: number } | null;
}

/** Degrees of rounding: binary fractions move an edge by less. */
const ROUNDING = 1e-9;

/** How far a place lies from the western and the northern edge, as parts of the box; null where the box does not hold it. */
export function partsOf(
  { west, south, east, north }: PictureBox,
  { lat, lon }: { lat: number; lon: number },
): { across: number; down: number } | null {
  const wide = east > west ? east - west : east + 360 - west;
  const turned = (lon - west + 720) % 360;
  const eastward = turned > 360 - ROUNDING ? 0 : turned;
  const southward = north - lat;
  const high = north - south;
  if (eastward > wide + ROUNDING || southward < -ROUNDING || southward > high + ROUNDING) return null;
  return { across: Math.min(eastward / wide, 1), down: Math.min(Math.max(southward / high, 0), 1) };
}
