import { createHash } from 'node:crypto';
import { inflateSync } from 'node:zlib';

/** Facts about a picture, without its contents. */
export interface Picture {
  format: 'png' | 'jpeg';
  bytes: number;
  /** Hex. */
  sha256: string;
  /** Null for JPEG, whose pixels are not read. */
  widthPx: number | null;
  heightPx: number | null;
  /** True when every pixel is the same, so that the picture shows nothing. Null when that was not computed. */
  singleColor: boolean | null;
}

const PNG_SIGNATURE = '89504e470d0a1a0a';
const MAX_PIXEL_BYTES = 32 * 1024 * 1024;

/** Reads a picture; null when the bytes are neither PNG nor JPEG. */
export function readPicture(content: Uint8Array): Picture | null {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  const facts = { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
  if (bytes.subarray(0, 3).toString('hex') === 'ffd8ff') {
    return { format: 'jpeg', ...facts, widthPx: null, heightPx: null, singleColor: null };
  }
  if (!isPng(bytes)) return null;
  return {
    format: 'png',
    ...facts,
    widthPx: bytes.readUInt32BE(16),
    heightPx: bytes.readUInt32BE(20),
    singleColor: isSingleColor(bytes),
  };
}

/** Whether bytes begin as a PNG does, with all of its header there. */
export function isPng(content: Uint8Array): boolean {
  return content.length >= 33 && Buffer.from(content.subarray(0, 8)).toString('hex') === PNG_SIGNATURE;
}

/** Samples a pixel by PNG color type: grey, -, RGB, palette, grey and alpha, -, RGBA. */
const SAMPLES = [1, 0, 3, 1, 2, 0, 4];

/** Undoes the filters of a PNG (https://www.w3.org/TR/png-3/#9Filters) and compares pixels; null if unreadable. */
function isSingleColor(png: Buffer): boolean | null {
  const width = png.readUInt32BE(16);
  const height = png.readUInt32BE(20);
  const bits = (png[24] ?? 0) * (SAMPLES[png[25] ?? 0] ?? 0);
  const interlaced = png[28] !== 0;
  const rowBytes = Math.ceil((width * bits) / 8);
  const expected = (rowBytes + 1) * height;
  if (bits === 0 || interlaced || expected === 0 || expected > MAX_PIXEL_BYTES) return null;
  let rows: Buffer;
  try {
    rows = inflateSync(Buffer.concat(dataChunks(png)), { maxOutputLength: MAX_PIXEL_BYTES });
  } catch {
    return null;
  }
  if (rows.length !== expected) return null;

  const step = Math.max(1, bits >> 3);
  let above = Buffer.alloc(rowBytes);
  let first: Buffer | null = null;
  for (let y = 0; y < height; y++) {
    const filter = rows[y * (rowBytes + 1)];
    const row = Buffer.from(rows.subarray(y * (rowBytes + 1) + 1, (y + 1) * (rowBytes + 1)));
    for (let x = 0; x < rowBytes; x++) {
      const left = x < step ? 0 : (row[x - step] ?? 0);
      const up = above[x] ?? 0;
      const corner = x < step ? 0 : (above[x - step] ?? 0);
      row[x] = (row[x] ?? 0) + predicted(filter, left, up, corner);
    }
    if (first === null) {
      first = row;
      for (let x = step; x < rowBytes; x++) if (row[x] !== row[x - step]) return false;
    } else if (!row.equals(first)) {
      return false;
    }
    above = row;
  }
  return true;
}

function predicted(filter: number | undefined, left: number, up: number, corner: number): number {
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  if (filter !== 4) return 0;
  const estimate = left + up - corner;
  const byLeft = Math.abs(estimate - left);
  const byUp = Math.abs(estimate - up);
  const byCorner = Math.abs(estimate - corner);
  return byLeft <= byUp && byLeft <= byCorner ? left : byUp <= byCorner ? up : corner;
}

/** What the data chunks of a PNG hold, still packed. */
export function dataChunks(png: Buffer): Buffer[] {
  return [...chunksOf(png)]
    .filter(({ type }) => type === 'IDAT')
    .map(({ at, length }) => png.subarray(at + 8, at + 8 + length));
}

/** The chunks of a PNG by what it says of them: where each begins, with its length, and how much it holds. */
export function* chunksOf(png: Buffer): Generator<{ type: string; at: number; length: number }> {
  for (let at = 8; at + 8 <= png.length; ) {
    const length = png.readUInt32BE(at);
    yield { type: png.toString('latin1', at + 4, at + 8), at, length };
    at += length + 12;
  }
}
