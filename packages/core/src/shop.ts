/** The identity of the shop: what the operator calls it, and the picture that stands for it. */
import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import type { Legal } from './words/legal.ts';
import { isNameable, NOT_NAMEABLE } from './words/name.ts';

/** The name where no operator has given one. */
export const OWN_NAME = 'Farebox';
const MOST_NAME_CHARACTERS = 60;
const MOST_LOGO_BYTES = 200_000;
const MOST_LOGO_ADDRESS_CHARACTERS = 500;

/** A picture that this server sends itself, or one that stands elsewhere. */
export type Logo =
  | { readonly kind: 'file'; readonly contentType: string; readonly bytes: Buffer }
  | { readonly kind: 'url'; readonly url: string };

export interface Shop {
  readonly name: string;
  readonly contactEmail: string | null;
  /** Null: the shop has none of its own. */
  readonly logo: Logo | null;
  /** What law and card providers ask for; left out: nothing. */
  readonly legal?: Legal;
}

/** Where a logo that came as a file is served. */
export const LOGO_PATH = '/assets/shop-logo';

/** The address of the shop's logo; null where it has none. @param baseUrl without a trailing slash */
export function logoUrlOf({ logo }: Shop, baseUrl: string): string | null {
  if (logo === null) return null;
  return logo.kind === 'url' ? logo.url : `${baseUrl}${LOGO_PATH}`;
}

export const shopName = z
  .string()
  .trim()
  .min(1)
  .max(MOST_NAME_CHARACTERS, `must have at most ${MOST_NAME_CHARACTERS} characters`)
  .refine(isNameable, NOT_NAMEABLE);

/** An https address, or the path of a picture, which is read here, once. */
export const shopLogo = z.string().transform((value, context): Logo => {
  const read = /^https?:/i.test(value) ? logoAt(value) : logoIn(value);
  if (typeof read !== 'string') return read;
  context.addIssue({ code: 'custom', message: read });
  return z.NEVER;
});

function logoAt(address: string): Logo | string {
  if (!URL.canParse(address) || new URL(address).protocol !== 'https:')
    return 'must be an https address, or the path of a file';
  const { href, username, password } = new URL(address);
  if (username !== '' || password !== '') return 'must not hold a user name or a password';
  return href.length > MOST_LOGO_ADDRESS_CHARACTERS
    ? `must have at most ${MOST_LOGO_ADDRESS_CHARACTERS} characters`
    : { kind: 'url', url: href };
}

/** The picture, or in words what is wrong with the file. */
function logoIn(path: string): Logo | string {
  let bytes: Buffer;
  try {
    const { size } = statSync(path);
    if (size > MOST_LOGO_BYTES) return `the file has ${size} bytes, and may have ${MOST_LOGO_BYTES}`;
    bytes = readFileSync(path);
  } catch {
    return 'the file cannot be read: give its path, or an https address';
  }
  const contentType = pictureTypeOf(bytes);
  return contentType === null
    ? 'the file is no picture of the kinds SVG, PNG, JPEG and WebP'
    : { kind: 'file', contentType, bytes };
}

/** Tells a picture's type by its first bytes, whatever the file is called; null: none of ours. */
function pictureTypeOf(bytes: Buffer): string | null {
  if (bytes.subarray(0, 8).equals(Buffer.from('89504e470d0a1a0a', 'hex'))) return 'image/png';
  if (bytes.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex'))) return 'image/jpeg';
  if (bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP')
    return 'image/webp';
  const start = bytes.toString('utf8', 0, 1_000).replace(/^\ufeff/, '');
  return /^\s*<(svg|\?xml|!--|!doctype svg)/i.test(start) && /<svg[\s>]/.test(start) ? 'image/svg+xml' : null;
}
