/** Makes small pictures without a library: a grey raster with lettering, encoded as PNG or as JPEG. */
import { crc32, deflateSync } from 'node:zlib';

/** The glyphs as rows of five dots, from the top. A set bit is ink; the highest bit is the leftmost dot. */
const GLYPHS: Readonly<Record<string, readonly number[]>> = {
  A: [14, 17, 17, 31, 17, 17, 17],
  B: [30, 17, 17, 30, 17, 17, 30],
  C: [14, 17, 16, 16, 16, 17, 14],
  D: [30, 17, 17, 17, 17, 17, 30],
  E: [31, 16, 16, 30, 16, 16, 31],
  F: [31, 16, 16, 30, 16, 16, 16],
  G: [14, 17, 16, 23, 17, 17, 15],
  H: [17, 17, 17, 31, 17, 17, 17],
  I: [14, 4, 4, 4, 4, 4, 14],
  J: [7, 2, 2, 2, 2, 18, 12],
  K: [17, 18, 20, 24, 20, 18, 17],
  L: [16, 16, 16, 16, 16, 16, 31],
  M: [17, 27, 21, 21, 17, 17, 17],
  N: [17, 25, 21, 19, 17, 17, 17],
  O: [14, 17, 17, 17, 17, 17, 14],
  P: [30, 17, 17, 30, 16, 16, 16],
  Q: [14, 17, 17, 17, 21, 18, 13],
  R: [30, 17, 17, 30, 20, 18, 17],
  S: [15, 16, 16, 14, 1, 1, 30],
  T: [31, 4, 4, 4, 4, 4, 4],
  U: [17, 17, 17, 17, 17, 17, 14],
  V: [17, 17, 17, 17, 17, 10, 4],
  W: [17, 17, 17, 21, 21, 27, 17],
  X: [17, 17, 10, 4, 10, 17, 17],
  Y: [17, 17, 10, 4, 4, 4, 4],
  Z: [31, 1, 2, 4, 8, 16, 31],
  '0': [14, 17, 19, 21, 25, 17, 14],
  '1': [4, 12, 4, 4, 4, 4, 14],
  '2': [14, 17, 1, 2, 4, 8, 31],
  '3': [31, 2, 4, 2, 1, 17, 14],
  '4': [2, 6, 10, 18, 31, 2, 2],
  '5': [31, 16, 30, 1, 1, 17, 14],
  '6': [6, 8, 16, 30, 17, 17, 14],
  '7': [31, 1, 2, 4, 8, 8, 8],
  '8': [14, 17, 17, 14, 17, 17, 14],
  '9': [14, 17, 17, 15, 1, 2, 12],
  '-': [0, 0, 0, 31, 0, 0, 0],
  _: [0, 0, 0, 0, 0, 0, 31],
  '.': [0, 0, 0, 0, 0, 12, 12],
  ':': [0, 12, 12, 0, 12, 12, 0],
  ',': [0, 0, 0, 0, 12, 4, 8],
};
const GLYPH_WIDTH = 6;
const COMMENT = 'Farebox sandbox: synthetic picture, not an observation.';

/** A picture. Its pixels stand row by row, as greys from 0 (black) to 255 (white) or as numbers in a palette. */
export interface Raster {
  width: number;
  height: number;
  pixels: Uint8Array;
}

/** Paints each square of `grain` pixels a side with the grey that `greyAt` returns for its middle. */
export function paint(
  width: number,
  height: number,
  grain: number,
  greyAt: (x: number, y: number) => number,
): Raster {
  const pixels = new Uint8Array(width * height);
  for (let top = 0; top < height; top += grain) {
    for (let left = 0; left < width; left += grain) {
      const grey = greyAt(left + grain / 2, top + grain / 2);
      for (let y = top; y < Math.min(height, top + grain); y++) {
        pixels.fill(grey, y * width + left, y * width + Math.min(width, left + grain));
      }
    }
  }
  return { width, height, pixels };
}

/**
 * Writes a line of letters (as capitals), digits and the marks - _ . : , into a raster. Its dots are `dot` pixels a side. What
 * does not fit is cut off.
 */
export function letter(
  raster: Raster,
  said: string,
  left: number,
  top: number,
  dot: number,
  grey: number,
): void {
  for (const [at, character] of [...said.toUpperCase()].entries()) {
    for (const [row, bits] of (GLYPHS[character] ?? []).entries()) {
      for (let column = 0; column < 5; column++) {
        if ((bits & (16 >> column)) === 0) continue;
        const x = left + (at * GLYPH_WIDTH + column) * dot;
        for (let y = top + row * dot; y < Math.min(raster.height, top + (row + 1) * dot); y++) {
          if (x < raster.width) {
            raster.pixels.fill(
              grey,
              y * raster.width + x,
              y * raster.width + Math.min(raster.width, x + dot),
            );
          }
        }
      }
    }
  }
}

/** 256 colors of three bytes each: red, green and blue. */
export type Palette = Uint8Array;

/**
 * Encodes a raster as a PNG of 8 bits a pixel, with a comment that holds `note`. With a palette, pixels are numbers in it;
 * without one, they are greys. https://www.w3.org/TR/png/
 */
export function encodePng({ width, height, pixels }: Raster, note: string, palette?: Palette): Buffer {
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) rows.set(pixels.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8;
  header[9] = palette === undefined ? 0 : 3;
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    pngChunk('IHDR', header),
    ...(palette === undefined ? [] : [pngChunk('PLTE', Buffer.from(palette))]),
    pngChunk('tEXt', Buffer.from(`Comment\0${COMMENT} ${note}`, 'latin1')),
    pngChunk('IDAT', deflateSync(rows)),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/**
 * Encodes a raster as a baseline grey JPEG (ITU-T T.81), with a comment that holds `note`. Each block of 8 x 8 pixels has one
 * grey: only the mean of a block is coded, so that the coder is short. Lettering stays sharp if its dots are such blocks.
 */
export function encodeJpeg(raster: Raster, note: string): Buffer {
  const { width, height } = raster;
  const size = Buffer.alloc(4);
  size.writeUInt16BE(height, 0);
  size.writeUInt16BE(width, 2);
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    jpegSegment(0xe0, Buffer.from('JFIF\0\x01\x01\0\0\x01\0\x01\0\0', 'latin1')),
    jpegSegment(0xfe, Buffer.from(`${COMMENT} ${note}`, 'latin1')),
    // All quantisers are 8, so that the number coded for a block is its mean less 128.
    jpegSegment(0xdb, Buffer.concat([Buffer.from([0]), Buffer.alloc(64, 8)])),
    jpegSegment(0xc0, Buffer.concat([Buffer.from([8]), size, Buffer.from([1, 1, 0x11, 0])])),
    jpegSegment(0xc4, Buffer.from([0x00, ...DC_CODE_COUNTS, ...DC_CATEGORIES])),
    // The only symbol for the other coefficients is "end of block", and its code is the bit 0.
    jpegSegment(0xc4, Buffer.from([0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
    jpegSegment(0xda, Buffer.from([1, 1, 0x00, 0, 63, 0])),
    jpegBlocks(raster),
    Buffer.from([0xff, 0xd9]),
  ]);
}

/** Table K.3 of ITU-T T.81, for differences of means: how many codes there are of each length, and their categories. */
const DC_CODE_COUNTS = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
const DC_CATEGORIES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

function jpegSegment(marker: number, data: Buffer): Buffer {
  const head = Buffer.from([0xff, marker, 0, 0]);
  head.writeUInt16BE(data.length + 2, 2);
  return Buffer.concat([head, data]);
}

function jpegBlocks({ width, height, pixels }: Raster): Buffer {
  const codes = codesOf(DC_CODE_COUNTS, DC_CATEGORIES);
  const bytes: number[] = [];
  let pending = 0;
  let pendingBits = 0;
  const write = (value: number, bits: number) => {
    for (let bit = bits - 1; bit >= 0; bit--) {
      pending = (pending << 1) | ((value >> bit) & 1);
      pendingBits += 1;
      if (pendingBits < 8) continue;
      bytes.push(pending);
      if (pending === 0xff) bytes.push(0);
      pending = 0;
      pendingBits = 0;
    }
  };
  let before = 0;
  for (let top = 0; top < height; top += 8) {
    for (let left = 0; left < width; left += 8) {
      let sum = 0;
      for (let y = top; y < top + 8; y++) {
        for (let x = left; x < left + 8; x++) {
          sum += pixels[Math.min(height - 1, y) * width + Math.min(width - 1, x)] ?? 0;
        }
      }
      const mean = Math.round(sum / 64) - 128;
      const difference = mean - before;
      before = mean;
      const category = difference === 0 ? 0 : 32 - Math.clz32(Math.abs(difference));
      const code = codes.get(category);
      if (code === undefined) throw new Error('a difference of means has at most 9 bits');
      write(code.value, code.bits);
      write(difference < 0 ? difference + 2 ** category - 1 : difference, category);
      write(0, 1);
    }
  }
  if (pendingBits > 0) write(0xff, 8 - pendingBits);
  return Buffer.from(bytes);
}

/** The Huffman codes of symbols. A code is the one before it plus 1, and is doubled for each bit by which it is longer. */
function codesOf(counts: readonly number[], symbols: readonly number[]) {
  const codes = new Map<number, { value: number; bits: number }>();
  let value = 0;
  let next = 0;
  for (const [index, count] of counts.entries()) {
    for (let of = 0; of < count; of++) {
      codes.set(symbols[next] ?? 0, { value, bits: index + 1 });
      value += 1;
      next += 1;
    }
    value <<= 1;
  }
  return codes;
}
