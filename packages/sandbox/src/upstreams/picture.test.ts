import assert from 'node:assert/strict';
import test from 'node:test';
import { inflateSync } from 'node:zlib';
import { isLand } from './land.ts';
import { encodeJpeg, encodePng, letter, paint } from './picture.ts';

test('a PNG holds the pixels that were painted', () => {
  const raster = paint(20, 10, 4, (x, y) => x * 10 + y);
  letter(raster, 'I', 0, 0, 1, 255);
  const png = encodePng(raster, 'note');
  assert.equal(png.subarray(0, 8).toString('hex'), '89504e470d0a1a0a');
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20), png[24], png[25]], [20, 10, 8, 0]);
  const at = png.indexOf('IDAT');
  const rows = inflateSync(png.subarray(at + 4, at + 4 + png.readUInt32BE(at - 4)));
  assert.equal(rows.length, 21 * 10);
  // The top of an I is three dots in the middle of five.
  assert.deepEqual([...rows.subarray(1, 6)], [22, 255, 255, 255, 62]);
  assert.equal(png.subarray(-12).toString('hex'), '0000000049454e44ae426082');
});

test('a JPEG holds the mean grey of every block of 8 x 8 pixels', () => {
  const greys = [0, 255, 128, 127, 64, 200];
  const jpeg = encodeJpeg(
    paint(24, 16, 8, (x, y) => greys[Math.floor(x / 8) + 3 * Math.floor(y / 8)] ?? 0),
    'note',
  );
  assert.equal(jpeg.subarray(0, 3).toString('hex'), 'ffd8ff');
  assert.equal(jpeg.subarray(-2).toString('hex'), 'ffd9');
  const frame = jpeg.indexOf(Buffer.from([0xff, 0xc0]));
  assert.deepEqual([jpeg.readUInt16BE(frame + 5), jpeg.readUInt16BE(frame + 7)], [16, 24]);
  const scan = jpeg.indexOf(Buffer.from([0xff, 0xda]));
  const coded = jpeg.subarray(scan + 2 + jpeg.readUInt16BE(scan + 2), -2);
  assert.deepEqual(meansOf(coded, greys.length), greys);
});

/** Decodes the means of blocks. The codes are those of table K.3 of ITU-T T.81, written out by hand. */
function meansOf(coded: Uint8Array, count: number): number[] {
  const table = ['00', '010', '011', '100', '101', '110', '1110', '11110', '111110', '1111110'];
  let bits = [...coded]
    .filter((byte, at) => !(byte === 0 && coded[at - 1] === 0xff))
    .map((byte) => byte.toString(2).padStart(8, '0'))
    .join('');
  let mean = 128;
  return Array.from({ length: count }, () => {
    const category = table.findIndex((code) => bits.startsWith(code));
    bits = bits.slice(table[category]?.length);
    const digits = bits.slice(0, category);
    const value = category === 0 ? 0 : Number.parseInt(digits, 2);
    mean += digits.startsWith('0') ? value - 2 ** category + 1 : value;
    assert.equal(bits[category], '0', 'the end of the block');
    bits = bits.slice(category + 1);
    return mean;
  });
}

test('the map knows land from sea', () => {
  const land = [
    [48.85, 2.35],
    [40, -100],
    [-25, 135],
    [37.77, -122.42],
    [-10, -55],
    [0, 25],
    [55, 90],
    [35.7, 139.5],
    [-80, 0],
  ] as const;
  const sea = [
    [0, -140],
    [36.8, -122],
    [45, -30],
    [0, 0],
    [-40, 90],
    [43.5, 34],
    [35, 18],
    [25, -90],
    [58, -85],
  ] as const;
  for (const [latitude, longitude] of land)
    assert.ok(isLand(latitude, longitude), `${latitude} ${longitude}`);
  for (const [latitude, longitude] of sea)
    assert.ok(!isLand(latitude, longitude), `${latitude} ${longitude}`);
});
