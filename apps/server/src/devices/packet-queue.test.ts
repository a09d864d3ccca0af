import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BrokenPacket, PacketCutter } from './packet-queue.ts';

/** A packet of MQTT with so many bytes behind its head (MQTT 3.1.1, 2.2.3). */
function packet(length: number): Buffer {
  const head = [0x30];
  let left = length;
  do {
    const more = left >= 128 ? 0x80 : 0;
    head.push((left % 128) | more);
    left = Math.floor(left / 128);
  } while (left > 0);
  return Buffer.concat([Buffer.from(head), Buffer.alloc(length, 0xff)]);
}

test('packets up to the bound come whole in whatever pieces they came, and the first above it does not', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 1_000 }), { maxLength: 6 }),
      fc.integer({ min: 1, max: 700 }),
      (lengths, piece) => {
        const cutter = new PacketCutter(1_000);
        const stream = Buffer.concat([...lengths, 1_001].map(packet));
        const whole: Buffer[] = [];
        assert.throws(
          () => {
            for (let at = 0; at < stream.length; at += piece) {
              cutter.add(stream.subarray(at, at + piece));
              for (let next = cutter.next(); next !== null; next = cutter.next()) whole.push(next);
              assert(cutter.held <= 1_005, `${cutter.held} bytes are held`);
            }
          },
          (error) => error instanceof BrokenPacket && error.code === 'PACKET_TOO_LARGE',
        );
        assert.deepEqual(Buffer.concat(whole), Buffer.concat(lengths.map(packet)));
        assert.equal(whole.length, lengths.length);
      },
    ),
  );
});

test('a length that does not end, and a type that no client sends, are refused as soon as they are seen', () => {
  for (const bytes of [[0x30, 0x80, 0x80, 0x80, 0x80], [0x20], [0xf0], [0x00]]) {
    const cutter = new PacketCutter(1_000);
    cutter.add(Buffer.from(bytes));
    assert.throws(
      () => cutter.next(),
      (error) => error instanceof BrokenPacket && error.code === 'PACKET_BROKEN',
    );
  }
});
