import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { BrokenPacket, PacketCutter, PacketQueue } from './packet-queue.ts';

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

/** A socket whose other side takes one piece at a time, when told to. */
function openSlowSocket() {
  const left: string[] = [];
  let take = () => {};
  const socket = new Duplex({
    read() {},
    write(piece: Buffer, _encoding, done) {
      take = () => {
        left.push(piece.toString());
        done();
      };
    },
  });
  const bounds = { maxBytes: 1_000, packetsPerMinute: 100, readAhead: { bytesLeft: 1_000 } };
  const queue = new PacketQueue(socket, bounds);
  queue.on('error', () => {});
  return { socket, queue, left, takeOne: () => take() };
}

const someTurns = async () => {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
};

test('what was said on a connection leaves before it ends, whoever ends it and however slowly it is read', async () => {
  for (const end of [
    (queue: PacketQueue) => queue.destroy(),
    (queue: PacketQueue) => queue.destroy(new Error('a packet was broken')),
    (queue: PacketQueue) => queue.end(),
  ]) {
    const { socket, queue, left, takeOne } = openSlowSocket();
    for (const piece of ['first', 'second', 'third']) queue.write(piece);
    await someTurns();
    end(queue);
    // Its other side would be reset, and lose what it has not read, if what it still says were left lying.
    socket.push('what comes too late');
    for (const expected of [['first'], ['first', 'second'], ['first', 'second', 'third']]) {
      await someTurns();
      assert.equal(socket.destroyed, false);
      takeOne();
      assert.deepEqual(left, expected);
    }
    await someTurns();
    assert(socket.writableFinished);
    assert.equal(socket.readableLength, 0);
    queue.destroy();
    socket.destroy();
  }
});

test('a connection whose other side takes nothing more ends all the same', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { socket, queue } = openSlowSocket();
  queue.write('never read');
  queue.destroy();
  await someTurns();
  assert.equal(socket.destroyed, false);
  context.mock.timers.tick(5_000);
  assert(socket.destroyed);
});
