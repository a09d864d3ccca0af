/** Pictures of maps with a marker, as services hand them out: by an address of ours that whoever has it may look at. */

/** Degrees. `west` above `east` crosses the antimeridian. */
export interface PictureBox {
  west: number;
  south: number;
  east: number;
  north: number;
}

export interface MapPicture {
  /** Id of a map (`upstreams/gibs-maps.ts`). */
  layer: string;
  /** As the map names it: a day, or a moment in UTC. */
  time: string;
  box: PictureBox;
  widthPx: number;
  heightPx: number;
  /** What a ring is drawn around; null: nothing. */
  marker: { lat: number; lon: number } | null;
}

export interface MapPictures {
  /** Nothing is fetched for it: that is done with the first look. Null while no source of maps is configured. */
  linkTo(picture: MapPicture): { url: string; expiresAtMs: number } | null;
}
