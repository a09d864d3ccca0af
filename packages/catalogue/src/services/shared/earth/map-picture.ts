/** The picture beside an answer about a place: which part of the map it shows, and how the answer tells of it. */
import { z } from 'zod';
import type { MapLayer } from '../../../upstreams/adapters/gibs-maps.ts';
import { type MapPictures, type PictureBox, partsOf } from '../../map-pictures.ts';
import type { Place } from './great-circle.ts';

const LONGER_SIDE_PX = 512;
const KM_PER_DEGREE = 111.195;
/** A side is never shorter than this part of the other one. */
const NARROWEST = 0.2;
const SMALLEST_DEGREES = 0.02;
/** What asks for no place of its own is drawn this wide to each side of it. */
export const USUAL_REACH_KM = 60;
const ATTRIBUTION = 'NASA GIBS, part of ESDIS';

/** The field `image` of an answer. */
export const image = z
  .object({
    url: z.url().describe('The picture; free, for whoever has the address, until expiresAt'),
    mediaType: z.literal('image/png').describe('Its type'),
    widthPx: z.number().int().describe('Width in pixels'),
    heightPx: z.number().int().describe('Height in pixels'),
    layer: z.string().describe('Map it is a part of, by the name its source has for it'),
    shows: z.string().describe('What is seen'),
    observedAt: z.string().describe('Time of the map: a day, or a moment in UTC'),
    boundingBox: z
      .array(z.number())
      .describe('west, south, east, north in degrees; west above east crosses the antimeridian'),
    marker: z
      .object({ lat: z.number().describe('Latitude'), lon: z.number().describe('Longitude') })
      .nullable()
      .describe('Where the ring is; null without one'),
    attribution: z.string().describe('Credit to show with it'),
    expiresAt: z.string().describe('When its address ends (ISO 8601)'),
  })
  .nullable()
  .describe('A map to look at; null with the reason in the notes');

export interface Shown {
  image: z.input<typeof image>;
  /** Why there is no picture; none where there is one. */
  notes: string[];
}

/** No picture, and why. */
export function noPicture(reason: string): Shown {
  return { image: null, notes: [`image is null: ${reason}`] };
}

/**
 * The picture of a part of a map. It is not looked at here: whether the map has it is known with the first look, and what
 * its source does then is no matter of this answer's.
 *
 * @param pictures undefined where the house has none
 */
export function pictureOf(
  pictures: MapPictures | undefined,
  { map, time, box, marker }: { map: MapLayer; time: string; box: PictureBox; marker: Place | null },
): Shown {
  const shown = shaped(box);
  const [wide, high] = [widthOf(shown), shown.north - shown.south];
  const pixelsPerDegree = LONGER_SIDE_PX / Math.max(wide, high);
  const size = {
    widthPx: Math.round(wide * pixelsPerDegree),
    heightPx: Math.round(high * pixelsPerDegree),
  };
  const rounded = marker === null ? null : { lat: micro(marker.lat), lon: micro(marker.lon) };
  // A place that the picture does not hold has no ring on it.
  const place = rounded === null || partsOf(shown, rounded) === null ? null : rounded;
  const link = pictures?.linkTo({ layer: map.id, time, box: shown, ...size, marker: place }) ?? null;
  if (link === null) return noPicture('this server has no source of maps.');
  return {
    image: {
      url: link.url,
      mediaType: 'image/png',
      ...size,
      layer: map.id,
      shows: map.shows,
      observedAt: time,
      boundingBox: [shown.west, shown.south, shown.east, shown.north],
      marker: place,
      attribution: ATTRIBUTION,
      expiresAt: new Date(link.expiresAtMs).toISOString(),
    },
    notes: [],
  };
}

/** The box around a place. At a pole it is moved so that it lies on the map, and at the antimeridian it goes on beyond. */
export function boxAround({ lat, lon }: Place, reachKm: number): PictureBox {
  const high = Math.min(reachKm / KM_PER_DEGREE, 45);
  const wide = Math.min(high / Math.max(Math.cos((lat * Math.PI) / 180), NARROWEST), 180);
  const south = Math.min(Math.max(lat - high, -90), 90 - 2 * high);
  if (wide === 180) return { west: -180, south, east: 180, north: south + 2 * high };
  return { west: wrapped(lon - wide), south, east: eastern(lon + wide), north: south + 2 * high };
}

/** How many degrees of longitude lie within. */
function widthOf({ west, east }: PictureBox): number {
  return east >= west ? east - west : east + 360 - west;
}

/** The same box, made larger where it is a line or a strip, which nobody could look at. */
function shaped(box: PictureBox): PictureBox {
  const [wide, high] = [widthOf(box), box.north - box.south];
  const leastWide = Math.max(wide, high * NARROWEST, SMALLEST_DEGREES);
  const leastHigh = Math.min(Math.max(high, wide * NARROWEST, SMALLEST_DEGREES), 180);
  const south = Math.min(Math.max((box.north + box.south - leastHigh) / 2, -90), 90 - leastHigh);
  const middle = box.west + wide / 2;
  const [west, east] =
    leastWide === wide
      ? [box.west, box.east]
      : [wrapped(middle - leastWide / 2), eastern(middle + leastWide / 2)];
  return { west: micro(west), south: micro(south), east: micro(east), north: micro(south + leastHigh) };
}

/** From -180 to just below 180. */
function wrapped(lon: number): number {
  return ((((lon + 180) % 360) + 360) % 360) - 180;
}

/** The same of an eastern edge, which ends the map at 180 and not at -180. */
function eastern(lon: number): number {
  const inside = wrapped(lon);
  return inside === -180 ? 180 : inside;
}

/** To a millionth of a degree: binary fractions have no place in an address. */
function micro(degrees: number): number {
  return Math.round(degrees * 1e6) / 1e6 + 0;
}
