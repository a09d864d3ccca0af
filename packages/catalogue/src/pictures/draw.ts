/** Puts pieces of a map side by side and draws a ring on them. Runs in a thread of its own: what came may be hostile. */
import { inflateSync } from 'node:zlib';
import { PNG } from 'pngjs';
import { chunksOf, dataChunks, isPng } from '../upstreams/picture.ts';

/** The most bytes of a pixel, before it is made one of eight bits a color: sixteen bits for each of four. */
const MAX_PIXEL_BYTES = 8;
/** Each of the seven passes of an interlaced picture has a filter byte a row. */
const PASSES = 7;

export interface Drawing {
  /** From west to east, all of one height. */
  pieces: readonly { png: Uint8Array; widthPx: number }[];
  heightPx: number;
  /** Pixels from the upper left corner; null: nothing is marked. */
  marker: { x: number; y: number } | null;
}

export interface Drawn {
  png: Uint8Array;
  /** Whether the map had one color throughout: it shows nothing here. The picture says so in words. */
  blank: boolean;
}

type Color = readonly [red: number, green: number, blue: number];
/** The color that stands for nothing: maps are transparent where they have no value. */
const PAPER: Color = [232, 232, 228];
const INK: Color = [20, 20, 24];
const RED: Color = [220, 20, 40];
const WHITE: Color = [255, 255, 255];

const RING_RADIUS = 11;
/** From the middle outward, each in its color: red stands out on land and sea, white and dark around it on red. */
const BANDS: readonly (readonly [within: number, color: Color])[] = [
  [RING_RADIUS - 2.5, WHITE],
  [RING_RADIUS + 1, RED],
  [RING_RADIUS + 2.5, WHITE],
  [RING_RADIUS + 3.5, INK],
];
const HOLE = RING_RADIUS - 4;
const DOT = 2;

/** @throws Error for a piece that is no PNG of the size that was asked for */
export function draw({ pieces, heightPx, marker }: Drawing): Drawn {
  const widthPx = pieces.reduce((sum, piece) => sum + piece.widthPx, 0);
  const canvas = { width: widthPx, height: heightPx, data: Buffer.alloc(widthPx * heightPx * 4) };
  let left = 0;
  for (const piece of pieces) {
    const { data } = decode(piece.png, piece.widthPx, heightPx);
    for (let y = 0; y < heightPx; y++) {
      const row = data.subarray(y * piece.widthPx * 4, (y + 1) * piece.widthPx * 4);
      canvas.data.set(row, (y * widthPx + left) * 4);
    }
    left += piece.widthPx;
  }
  const blank = isOneColor(canvas.data);
  layOnPaper(canvas.data);
  if (blank) write(canvas, 'NOTHING SHOWN HERE');
  if (marker !== null) ring(canvas, marker);
  // A small buffer is a piece of a pool, all of which would go to whoever keeps it.
  return { png: Uint8Array.from(PNG.sync.write(canvas, { colorType: 2, inputColorType: 6 })), blank };
}

/** Its size is read before anything is unpacked, and what it unpacks to is bounded by that. */
function decode(content: Uint8Array, widthPx: number, heightPx: number) {
  const png = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  if (!isPng(png) || !hasOneHeader(png)) throw new Error('no PNG');
  const [width, height, interlaced] = [png.readUInt32BE(16), png.readUInt32BE(20), png[28] !== 0];
  if (width !== widthPx || height !== heightPx)
    throw new Error(`a picture of ${width} x ${height}, and ${widthPx} x ${heightPx} was asked for`);
  // The decoder bounds what rows in order unpack to, and not what the passes of an interlaced picture do.
  if (interlaced) {
    const maxOutputLength = width * height * MAX_PIXEL_BYTES + PASSES * (height + 1);
    inflateSync(Buffer.concat(dataChunks(png)), { maxOutputLength });
  }
  return PNG.sync.read(png);
}

/** The decoder goes by the last header that it meets, and the size is read from the first. */
function hasOneHeader(png: Buffer): boolean {
  const headers = [...chunksOf(png)].filter(({ type }) => type === 'IHDR');
  return headers.length === 1 && headers[0]?.at === 8 && headers[0].length === 13;
}

function isOneColor(pixels: Buffer): boolean {
  const first = pixels.readUInt32BE(0);
  for (let at = 4; at < pixels.length; at += 4) if (pixels.readUInt32BE(at) !== first) return false;
  return true;
}

function layOnPaper(pixels: Buffer): void {
  for (let at = 0; at < pixels.length; at += 4) {
    const alpha = (pixels[at + 3] ?? 0) / 255;
    for (const [channel, paper] of PAPER.entries())
      pixels[at + channel] = Math.round((pixels[at + channel] ?? 0) * alpha + paper * (1 - alpha));
    pixels[at + 3] = 255;
  }
}

interface Canvas {
  width: number;
  height: number;
  data: Buffer;
}

function dot({ width, height, data }: Canvas, x: number, y: number, color: Color): void {
  if (x < 0 || y < 0 || x >= width || y >= height) return;
  data.set(color, (y * width + x) * 4);
}

function ring(canvas: Canvas, { x, y }: { x: number; y: number }): void {
  const [middleX, middleY] = [Math.round(x), Math.round(y)];
  const reach = Math.ceil(RING_RADIUS + 4);
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const distance = Math.hypot(dx, dy);
      const band = BANDS.find(([within]) => distance <= within);
      if (distance <= DOT) dot(canvas, middleX + dx, middleY + dy, RED);
      else if (distance >= HOLE && band !== undefined) dot(canvas, middleX + dx, middleY + dy, band[1]);
    }
  }
}

/** Rows of five dots, from the top; a bit set is ink, the leftmost dot is the highest bit. */
const GLYPHS: Readonly<Record<string, readonly number[]>> = {
  E: [31, 16, 16, 30, 16, 16, 31],
  G: [14, 17, 16, 23, 17, 17, 15],
  H: [17, 17, 17, 31, 17, 17, 17],
  I: [14, 4, 4, 4, 4, 4, 14],
  N: [17, 25, 21, 19, 17, 17, 17],
  O: [14, 17, 17, 17, 17, 17, 14],
  R: [30, 17, 17, 30, 20, 18, 17],
  S: [15, 16, 16, 14, 1, 1, 30],
  T: [31, 4, 4, 4, 4, 4, 4],
  W: [17, 17, 17, 21, 21, 27, 17],
};
const GLYPH_DOTS = 6;
const BELOW_TOP_PX = 10;

/** In the middle of the upper edge, on a strip of paper, so that it can be read on any color. */
function write(canvas: Canvas, words: string): void {
  const size = Math.max(1, Math.min(3, Math.floor((canvas.width - 8) / (words.length * GLYPH_DOTS))));
  const left = Math.max(0, Math.floor((canvas.width - words.length * GLYPH_DOTS * size) / 2));
  for (let y = BELOW_TOP_PX - 4; y < BELOW_TOP_PX + 7 * size + 4; y++)
    for (let x = 0; x < canvas.width; x++) dot(canvas, x, y, PAPER);
  for (const [at, letter] of [...words].entries()) {
    for (const [row, bits] of (GLYPHS[letter] ?? []).entries()) {
      for (let column = 0; column < 5; column++) {
        if ((bits & (16 >> column)) === 0) continue;
        const [x, y] = [left + (at * GLYPH_DOTS + column) * size, BELOW_TOP_PX + row * size];
        for (let pixel = 0; pixel < size * size; pixel++)
          dot(canvas, x + (pixel % size), y + Math.floor(pixel / size), INK);
      }
    }
  }
}
