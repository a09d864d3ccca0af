import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { crc32, deflateSync } from 'node:zlib';
import { PNG } from 'pngjs';
import { png } from '../upstreams/picture.fixture.ts';
import { readPicture } from '../upstreams/picture.ts';
import { draw } from './draw.ts';

const SIDE = 64;
const blue = () => [0, 0, 255, 255] as const;
const striped = (x: number) => [x * 2, 0, 255, 255] as const;
const piece = (pixel: Parameters<typeof png>[2], widthPx = SIDE, heightPx = SIDE) => ({
  png: png(widthPx, heightPx, pixel),
  widthPx,
});
const at = (content: Uint8Array, x: number, y: number) => {
  const { width, data } = PNG.sync.read(Buffer.from(content));
  return [...data.subarray((y * width + x) * 4, (y * width + x) * 4 + 4)];
};

test('the ring is where it was asked for, and the map is left as it was elsewhere', () => {
  const { png: drawn, blank } = draw({ pieces: [piece(striped)], heightPx: SIDE, marker: { x: 40, y: 20 } });
  assert.equal(blank, false);
  const read = readPicture(drawn);
  assert.deepEqual([read?.widthPx, read?.heightPx], [SIDE, SIDE]);
  assert.deepEqual(at(drawn, 40, 20), [220, 20, 40, 255], 'the middle');
  assert.deepEqual(at(drawn, 50, 20), [220, 20, 40, 255], 'the ring');
  assert.deepEqual(at(drawn, 46, 20), [92, 0, 255, 255], 'between them the map');
  assert.deepEqual(at(drawn, 3, 60), [6, 0, 255, 255], 'and around it');
});

test('a ring at a corner is cut off, and one that lies outside draws nothing', () => {
  const plain = draw({ pieces: [piece(striped)], heightPx: SIDE, marker: null }).png;
  assert.deepEqual(draw({ pieces: [piece(striped)], heightPx: SIDE, marker: { x: 400, y: 400 } }).png, plain);
  const corner = draw({ pieces: [piece(striped)], heightPx: SIDE, marker: { x: 0, y: 0 } }).png;
  assert.deepEqual(at(corner, 0, 0), [220, 20, 40, 255]);
  // A row that began on the left edge would go on at the right one.
  assert.deepEqual(at(corner, SIDE - 1, 5), at(plain, SIDE - 1, 5));
});

test('a finished picture keeps no more memory than its bytes', () => {
  const finished = draw({ pieces: [piece(blue)], heightPx: SIDE, marker: null });
  assert.equal(finished.png.buffer.byteLength, finished.png.byteLength);
});

test('two halves stand side by side in their order, whatever their widths', () => {
  const red = () => [255, 0, 0, 255] as const;
  const { png: drawn } = draw({ pieces: [piece(red, 10), piece(blue, 54)], heightPx: SIDE, marker: null });
  assert.deepEqual(
    [at(drawn, 9, 63), at(drawn, 10, 0)],
    [
      [255, 0, 0, 255],
      [0, 0, 255, 255],
    ],
  );
});

test('what is transparent is paper, and a map of one color throughout says in words that it shows nothing', () => {
  for (const pixel of [blue, () => [0, 0, 0, 0] as const]) {
    const { png: drawn, blank } = draw({ pieces: [piece(pixel, 256)], heightPx: SIDE, marker: null });
    assert.equal(blank, true);
    assert.equal(readPicture(drawn)?.singleColor, false, 'there are words on it');
  }
  const half = draw({
    pieces: [piece((x) => [10, 20, 30, x < 32 ? 255 : 0])],
    heightPx: SIDE,
    marker: null,
  });
  assert.equal(half.blank, false);
  assert.deepEqual(
    [at(half.png, 0, 0), at(half.png, 63, 0)],
    [
      [10, 20, 30, 255],
      [232, 232, 228, 255],
    ],
  );
});

describe('what is no picture of the size that was asked for is refused:', () => {
  const refused = (content: Uint8Array) =>
    assert.throws(
      () => draw({ pieces: [{ png: content, widthPx: SIDE }], heightPx: SIDE, marker: null }),
      Error,
    );
  const good = Buffer.from(png(SIDE, SIDE, striped));
  test('another size', () => refused(png(SIDE, SIDE + 1, striped)));
  test('a header that claims a picture of a terabyte', () => {
    const huge = Buffer.from(good);
    huge.writeUInt32BE(1_000_000, 16);
    huge.writeUInt32BE(1_000_000, 20);
    refused(huge);
  });
  test('JPEG', () => refused(Buffer.concat([Buffer.from('ffd8ffe0', 'hex'), Buffer.alloc(100)])));
  test('text', () => refused(Buffer.from(`<?xml version="1.0"?>${'<ServiceException/>'.repeat(10)}`)));
  test('a picture that ends in the middle', () => refused(good.subarray(0, good.length - 40)));
  test('its head alone', () => refused(good.subarray(0, 33)));
  test('bytes that were changed on the way', () => {
    const broken = Buffer.from(good);
    broken[60] = (broken[60] ?? 0) ^ 0xff;
    refused(broken);
  });
  test('rows that unpack to far more than the header says', () => refused(bomb({ interlaced: false })));
  for (const [what, hostile] of [
    ['the same in passes, which the decoder does not bound by itself', () => bomb({ interlaced: true })],
    ['a second header, by which the decoder would go', () => bomb({ interlaced: false, second: 10_000 })],
  ] as const)
    test(what, () => {
      const content = hostile();
      const before = process.memoryUsage().rss;
      refused(content);
      const grown = process.memoryUsage().rss - before;
      assert(grown < 200 * 1024 * 1024, `${grown} bytes more`);
    });
  test('a small picture with a second header, even of the same size', () =>
    refused(Buffer.concat([good.subarray(0, 33), good.subarray(8)])));
  test('a header that is not the first chunk, or is longer than one', () => {
    refused(Buffer.concat([good.subarray(0, 8), chunk('tEXt', good.subarray(16, 29)), good.subarray(8)]));
    const longer = chunk('IHDR', Buffer.concat([good.subarray(16, 29), Buffer.alloc(1)]));
    refused(Buffer.concat([good.subarray(0, 8), longer, good.subarray(33)]));
  });
});

/**
 * A picture of 64 by 64 pixels by its header, of which some hundred megabytes unpack.
 *
 * @param second the side of a picture in passes, of which another header tells
 */
function bomb({ interlaced, second }: { interlaced: boolean; second?: number }): Uint8Array {
  const header = (side: number, passes: boolean) => {
    const made = Buffer.alloc(13);
    made.writeUInt32BE(side, 0);
    made.writeUInt32BE(side, 4);
    made.set([8, 6, 0, 0, passes ? 1 : 0], 8);
    return chunk('IHDR', made);
  };
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    header(SIDE, interlaced),
    ...(second === undefined ? [] : [header(second, true)]),
    chunk('IDAT', deflateSync(Buffer.alloc(400 * 1024 * 1024), { level: 1 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, check]);
}
