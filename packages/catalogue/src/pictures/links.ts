/**
 * Addresses of pictures. All that is drawn stands in the address and is signed, so that nobody can have anything else drawn
 * and use this server as a way to the map server; nothing is kept for it, so that every replica knows every address.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { Problem } from '@farebox/core/http/problem';
import type { Secret, Secrets } from '@farebox/core/secrets/secrets';
import { z } from 'zod';
import type { MapPicture } from '../services/map-pictures.ts';
import { findMap } from '../upstreams/adapters/gibs-maps.ts';

export const PICTURE_PATH = '/api/pictures/map.png';
/** The parts of an address, in the order in which they are signed. */
const SIGNED = ['layer', 'time', 'bbox', 'size', 'marker', 'expires', 'version'] as const;
const ALL = [...SIGNED, 'signature'] as const;
const MAX_PART_CHARACTERS = 200;
const NO_MARKER = 'none';
/** The longest side. */
const MAX_PX = 1_024;

type Parts = Readonly<Record<(typeof ALL)[number], string>>;

export interface PictureLinks {
  /** Signed with the current version of the secret. */
  linkTo(picture: MapPicture): { url: string; expiresAtMs: number };
  /**
   * Reads what an address shows.
   *
   * @param query as it came
   * @throws Problem 403 for what was not signed here, 410 for what was and has ended
   */
  read(query: unknown): { picture: MapPicture; expiresAtMs: number };
}

const degrees = (limit: number) => z.coerce.number().min(-limit).max(limit);
const picture = z.object({
  layer: z.string().refine((id) => findMap(id) !== null),
  time: z.union([z.iso.date(), z.iso.datetime()]),
  box: z
    .tuple([degrees(180), degrees(90), degrees(180), degrees(90)])
    .refine(([west, south, east, north]) => west !== east && south < north)
    .transform(([west, south, east, north]) => ({ west, south, east, north })),
  widthPx: z.coerce.number().int().min(1).max(MAX_PX),
  heightPx: z.coerce.number().int().min(1).max(MAX_PX),
  marker: z
    .tuple([degrees(90), degrees(180)])
    .transform(([lat, lon]) => ({ lat, lon }))
    .nullable(),
});

export function createPictureLinks({
  secrets,
  baseUrl,
  linkMs,
  nowMs,
}: {
  secrets: Secrets;
  baseUrl: string;
  linkMs: number;
  nowMs(): number;
}): PictureLinks {
  return {
    linkTo({ layer, time, box, widthPx, heightPx, marker }) {
      // Whole seconds, and none lost.
      const expires = Math.ceil((nowMs() + linkMs) / 1_000);
      const parts = {
        layer,
        time,
        bbox: [box.west, box.south, box.east, box.north].join(),
        size: `${widthPx}x${heightPx}`,
        marker: marker === null ? NO_MARKER : `${marker.lat},${marker.lon}`,
        expires: String(expires),
        version: secrets.current.id,
      };
      const query = new URLSearchParams({ ...parts, signature: signatureOf(secrets.current, parts) });
      return { url: `${baseUrl}${PICTURE_PATH}?${query}`, expiresAtMs: expires * 1_000 };
    },

    read(query) {
      const parts = partsOf(query);
      if (parts === null) throw notOurs();
      const secret = secrets.all.find(({ id }) => id === parts.version);
      if (secret === undefined)
        throw ended('It was signed with a secret that this server does not recognize, or does not any more.');
      const signature = Buffer.from(signatureOf(secret, parts));
      const shown = Buffer.from(parts.signature);
      if (shown.length !== signature.length || !timingSafeEqual(shown, signature)) throw notOurs();
      const expiresAtMs = Number(parts.expires) * 1_000;
      if (!(nowMs() < expiresAtMs)) throw ended('Its time is over.');
      const [widthPx, heightPx] = parts.size.split('x');
      const read = picture.safeParse({
        layer: parts.layer,
        time: parts.time,
        widthPx,
        heightPx,
        box: parts.bbox.split(','),
        marker: parts.marker === NO_MARKER ? null : parts.marker.split(','),
      });
      // Signed by another release, whose maps or bounds were others.
      if (!read.success) throw ended('This server does not draw that map any more.');
      return { picture: read.data, expiresAtMs };
    },
  };
}

function signatureOf({ value }: Secret, parts: Omit<Parts, 'signature'>): string {
  const text = SIGNED.map((name) => parts[name]).join('\n');
  return createHmac('sha256', value).update(`picture\n${text}`).digest('base64url');
}

/** Each part once, and nothing else; null otherwise. */
function partsOf(query: unknown): Parts | null {
  if (typeof query !== 'object' || query === null) return null;
  const given = query as Readonly<Record<string, unknown>>;
  if (Object.keys(given).length !== ALL.length) return null;
  const isPart = (part: unknown) =>
    typeof part === 'string' && part.length <= MAX_PART_CHARACTERS && !part.includes('\n');
  return ALL.every((name) => isPart(given[name])) ? (given as Parts) : null;
}

function notOurs(): Problem {
  return new Problem(
    403,
    'PICTURE_LINK_INVALID',
    'This address of a picture was not signed by this server. Use image.url of an answer as it stands, with all of its parts.',
  );
}

function ended(why: string): Problem {
  return new Problem(
    410,
    'PICTURE_LINK_ENDED',
    `This address of a picture has ended. ${why} A new call of the service brings another one.`,
  );
}
