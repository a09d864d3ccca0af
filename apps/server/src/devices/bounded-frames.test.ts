import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FrameMeter } from './bounded-frames.ts';

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

test('packets up to the bound pass in whatever pieces they come, and the first above it does not', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 1_000 }), { maxLength: 6 }),
      fc.integer({ min: 1, max: 700 }),
      (lengths, piece) => {
        const meter = new FrameMeter(1_000);
        const stream = Buffer.concat([...lengths, 1_001].map(packet));
        const fine = stream.length - packet(1_001).length;
        let passed = 0;
        for (let at = 0; at < stream.length; at += piece) {
          if (!meter.follow(stream.subarray(at, at + piece))) break;
          passed = Math.min(at + piece, stream.length);
        }
        assert(passed >= fine - piece, `stopped at ${passed}, before ${fine}`);
        assert(passed < stream.length, 'the large one passed');
      },
    ),
  );
});

test('a length that does not end is none', () => {
  assert.equal(new FrameMeter(1_000).follow(Buffer.from([0x30, 0x80, 0x80, 0x80, 0x80, 0x01])), false);
});
