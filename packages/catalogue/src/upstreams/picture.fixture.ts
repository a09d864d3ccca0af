import { crc32, deflateSync } from 'node:zlib';

/** For tests: an RGBA PNG made pixel by pixel, each row with the filter asked for (https://www.w3.org/TR/png-3/). */
export function png(
  width: number,
  height: number,
  pixel: (x: number, y: number) => readonly [number, number, number, number],
  filter: 0 | 1 | 2 = 0,
): Uint8Array {
  const rows: number[][] = Array.from({ length: height }, (_, y) =>
    Array.from({ length: width }, (_, x) => pixel(x, y)).flat(),
  );
  const filtered = rows.flatMap((row, y) => [
    filter,
    ...row.map((value, at) => {
      const before = filter === 1 ? (row[at - 4] ?? 0) : filter === 2 ? (rows[y - 1]?.[at] ?? 0) : 0;
      return (value - before) & 255;
    }),
  ]);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 6, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.from(filtered))),
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
