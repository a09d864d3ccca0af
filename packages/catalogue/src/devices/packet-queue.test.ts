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

const CONNECT = Buffer.from([0x10, 0]);
const PINGREQ = Buffer.from([0xc0, 0]);
const report = (mark: string) => Buffer.concat([Buffer.from([0x30, mark.length]), Buffer.from(mark)]);

/** A connection, and what the broker was given of it. */
function openConnection({ packetsPerMinute = 100, readAhead = { bytesLeft: 1_000 } } = {}) {
  const socket = new Duplex({ read() {}, write: (_piece, _encoding, done) => done() });
  const queue = new PacketQueue(socket, { maxBytes: 1_000, packetsPerMinute, readAhead });
  const given: Buffer[] = [];
  queue.on('data', (bytes: Buffer) => given.push(bytes)).on('error', () => {});
  const says = async (...packets: Buffer[]) => {
    for (const each of packets) socket.push(each);
    await someTurns();
  };
  return { socket, queue, given, says };
}

test('the broker gets the CONNECT alone until the device is let in, then one report at a time', async () => {
  const { socket, queue, given, says } = openConnection();
  const [first, second] = [report('first'), report('second')];
  await says(CONNECT, first, second);
  assert.deepEqual(given, [CONNECT]);
  queue.open();
  await someTurns();
  assert.deepEqual(given, [CONNECT, first]);
  queue.settled();
  await someTurns();
  assert.deepEqual(given, [CONNECT, first, second]);
  queue.destroy();
  socket.destroy();
});

test('a ping is answered while reports wait, and what was subscribed to keeps its turn', async () => {
  const { socket, queue, given, says } = openConnection();
  const [first, second, subscribe] = [report('first'), report('second'), Buffer.from([0x82, 0])];
  await says(CONNECT);
  queue.open();
  await says(first, second, subscribe, PINGREQ);
  assert.deepEqual(given, [CONNECT, first, PINGREQ]);
  queue.settled();
  await someTurns();
  queue.settled();
  await someTurns();
  assert.deepEqual(given, [CONNECT, first, PINGREQ, second, subscribe]);
  queue.destroy();
  socket.destroy();
});

test('packets above the bound of a minute are given as the time allows them', async (context) => {
  let nowMs = 1_000;
  context.mock.method(performance, 'now', () => nowMs);
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { socket, queue, given, says } = openConnection({ packetsPerMinute: 3 });
  await says(CONNECT);
  queue.open();
  await says(PINGREQ, PINGREQ, PINGREQ, PINGREQ);
  assert.equal(given.length, 3);
  for (const expected of [4, 5, 5]) {
    nowMs += 20_000;
    context.mock.timers.tick(20_000);
    await someTurns();
    assert.equal(given.length, expected);
  }
  queue.destroy();
  socket.destroy();
});

test('what waits of all connections together is counted, and given back when one ends', async () => {
  const readAhead = { bytesLeft: 100 };
  const one = openConnection({ readAhead });
  const other = openConnection({ readAhead });
  const packets = ['first', 'second', 'third'].map(report);
  const waiting = (packets[1]?.length ?? 0) + (packets[2]?.length ?? 0);
  for (const { queue, says } of [one, other]) {
    await says(CONNECT);
    queue.open();
    await says(...packets);
  }
  assert.equal(readAhead.bytesLeft, 100 - 2 * waiting);
  one.queue.settled();
  await someTurns();
  assert.equal(readAhead.bytesLeft, 100 - 2 * waiting + (packets[1]?.length ?? 0));
  for (const { queue, socket } of [one, other]) {
    queue.destroy();
    socket.destroy();
  }
  await someTurns();
  assert.equal(readAhead.bytesLeft, 100);
});

test('a connection that holds a whole packet is read no further once all have read ahead enough', async () => {
  const { socket, queue, says } = openConnection({ readAhead: { bytesLeft: 500 } });
  await says(CONNECT);
  queue.open();
  await says(report('at hand'), packet(400), packet(400));
  assert.equal(socket.isPaused(), false);
  await says(packet(400));
  assert.equal(socket.isPaused(), true);
  for (let each = 0; each < 3; each++) {
    queue.settled();
    await someTurns();
  }
  assert.equal(socket.isPaused(), false);
  queue.destroy();
  socket.destroy();
});
