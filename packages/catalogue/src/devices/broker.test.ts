/** Tests what a device can do to the broker byte by byte: nothing is stored for another, and nothing stops others or piles up. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { until } from '../../../../apps/shop/test/fire/until.fixture.ts';
import { createRateLimit } from '../../../core/src/http/rate-limit.ts';
import { makeCertificate } from '../../../sandbox/src/devices/certificate.ts';
import { type Broker, openBroker, topicOf } from './broker.ts';
import { newCredential } from './credential.ts';
import { connectPacket, nextBytes, openRaw, packet, publishPacket, text } from './raw-mqtt.fixture.ts';
import type { Device } from './registry.ts';
import { createReporting } from './reporting.ts';

const PINGREQ = Buffer.from([0xc0, 0]);
const PUBACK_1 = '40020001';
const PACKETS_PER_MINUTE = 200;
/** Reports that a device may send at once whose name begins with `few`. */
const FEW = 5;

interface Known {
  deviceId: string;
  secret: string;
  topic: string;
}

/** The commit that stored readings wait for. */
let commits: Promise<unknown> = Promise.resolve();
/** The keys of readings that are stored. */
const keys = new Set<string>();
const devices = new Map<string, Device>();
/** The values that were stored, by the device's number. */
const stored = new Map<bigint, number[]>();
/** The reports that were acknowledged and could not be taken, by the device's number. */
const kept = new Map<bigint, string[]>();
/** The code that its owner was told last, by the device's name. */
const told = new Map<string, string>();
const limit = createRateLimit({ perMinute: 100_000, maxNames: 100, nowMs: Date.now });
/** Its minute never ends. */
const few = createRateLimit({ perMinute: FEW, maxNames: 100, nowMs: () => 0 });
let broker: Broker;
/** Stands for what else the process does when a connection comes. */
let onConnection = () => {};
before(async () => {
  const { cert, key } = makeCertificate(new Date(Date.now() - 60_000));
  const registry = {
    find: async (deviceId: string) => devices.get(deviceId) ?? null,
    refused: async ({ deviceId }: Device, reason: string) => void told.set(deviceId, reason),
  };
  const refusals = {
    async keep({ no }: { no: bigint }, report: Buffer) {
      kept.set(no, [...(kept.get(no) ?? []), report.toString()]);
    },
  };
  const reporting = createReporting({
    registry,
    refusals,
    backfillMs: 3_600_000,
    nowMs: Date.now,
    report: () => {},
    limit: {
      take: (name) => (name.startsWith('few') ? few : limit).take(name),
      giveBack: (name) => (name.startsWith('few') ? few : limit).giveBack(name),
    },
    readings: {
      async take(no, readings) {
        await commits;
        const fresh = readings.filter(({ key }) => !keys.has(`${no}${key}`));
        for (const { key } of fresh) keys.add(`${no}${key}`);
        const values = fresh.flatMap(({ measured }) => measured.temperature ?? []);
        stored.set(no, [...(stored.get(no) ?? []), ...values]);
        return { stored: fresh.length, known: readings.length - fresh.length };
      },
    },
  });
  const at = { host: '127.0.0.1', port: 0, cert, key };
  const take = (address: string) => {
    onConnection();
    return limit.take(address);
  };
  broker = await openBroker(at, {
    registry,
    reporting,
    limit: { ...limit, take },
    maxConnections: 2_000,
    packetsPerMinute: PACKETS_PER_MINUTE,
  });
});
after(() => broker.close());

function known(deviceId: string): Known {
  const { secret, publicKey } = newCredential();
  devices.set(deviceId, {
    no: BigInt(devices.size),
    deviceId,
    owner: 1n,
    name: null,
    fleetId: null,
    public: true,
    simulated: false,
    sensors: { temperature: 'celsius' },
    place: null,
    publicKey,
    createdAtMs: 0,
    revokedAtMs: null,
    readings: 0,
    lastAtMs: null,
    refusal: null,
    refusals: 0,
  });
  return { deviceId, secret, topic: topicOf(deviceId) };
}
const valuesOf = ({ deviceId }: Known) => stored.get(devices.get(deviceId)?.no ?? -1n) ?? [];
const report = (temperature: number) =>
  JSON.stringify({ at: new Date().toISOString(), values: { temperature } });
const ended = (what: string, socket: TLSSocket) =>
  until(`the connection ends after ${what}`, () => socket.closed);

/** A connection that was let in. */
async function enter(device: Known, connecting = connectPacket(device)): Promise<TLSSocket> {
  const socket = await openRaw(broker.port);
  socket.write(connecting);
  assert.equal((await nextBytes(socket, 4)).toString('hex'), '20020000');
  return socket;
}

/** A report as it should be, acknowledged. */
async function reported(device: Known, temperature: number, socket: TLSSocket): Promise<void> {
  socket.write(publishPacket(device.topic, 1, report(temperature)));
  assert.equal((await nextBytes(socket, 4)).toString('hex'), PUBACK_1);
  assert.equal(valuesOf(device).at(-1), temperature);
}

test('bytes that are no report of the device that came in end the connection, and nothing is stored', async () => {
  const device = known('raw-1');
  const other = known('raw-2');
  const bystander = known('bystander-1');
  const others = await enter(bystander);
  const good = report(1);
  const cases: [string, Buffer][] = [
    ['a topic with NUL', publishPacket(device.topic.replace('/readings', '\0/readings'), 1, good)],
    ['NUL behind the topic', publishPacket(`${device.topic}\0`, 1, good)],
    ['a topic that is no UTF-8', publishPacket(Buffer.from([0xff, 0xfe, 0x2f]), 1, good)],
    ['a wildcard of one level', publishPacket('devices/+/readings', 1, good)],
    ['a wildcard of all', publishPacket('devices/#', 1, good)],
    ['no topic', publishPacket('', 1, good)],
    ['another device’s topic', publishPacket(other.topic, 1, good)],
    ['another device’s topic, QoS 0', packet(0x30, text(other.topic), Buffer.from(good))],
    ['another case', publishPacket(device.topic.toUpperCase(), 1, good)],
    ['QoS 2, twice', Buffer.concat([0x34, 0x3c].map((first) => publishPacket(device.topic, 1, good, first)))],
    ['QoS 3', publishPacket(device.topic, 1, good, 0x36)],
    ['an id of 0', publishPacket(device.topic, 0, good)],
    ['a second CONNECT', connectPacket(device)],
    ['a type that there is not', packet(0xf0)],
    ['a length of five bytes', Buffer.from([0x32, 0xff, 0xff, 0xff, 0xff, 0x7f])],
    ['256 MB that are announced', Buffer.from([0x32, 0xff, 0xff, 0xff, 0x7f])],
  ];
  for (const [what, bytes] of cases) {
    const socket = await enter(device);
    socket.resume();
    // Whatever follows is for nobody.
    socket.write(Buffer.concat([bytes, publishPacket(other.topic, 2, good)]));
    await ended(what, socket);
    assert.deepEqual([valuesOf(device), valuesOf(other)], [[], []], what);
    await until(`its owner is told of ${what}`, () => told.delete(device.deviceId));
  }
  await reported(bystander, 7, others);
  others.destroy();
});

test('whoever does not begin as a device of ours does not come in', async () => {
  const device = known('raw-3');
  const cases: [string, Buffer][] = [
    ['a report before CONNECT', publishPacket(device.topic, 1, report(1))],
    ['PINGREQ before CONNECT', PINGREQ],
    ['NUL in the name', connectPacket({ ...device, deviceId: `${device.deviceId}\0` })],
    ['another device’s secret', connectPacket({ ...device, secret: known('raw-4').secret })],
    ['another protocol', packet(0x10, text('HTTP'), Buffer.from([4, 2, 0, 60]), text('x'))],
    ['a request of HTTP', Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n')],
    ['no user name', packet(0x10, text('MQTT'), Buffer.from([4, 2, 0, 60]), text(device.deviceId))],
  ];
  for (const [what, bytes] of cases) {
    const socket = await openRaw(broker.port);
    socket.write(bytes);
    const answer = await nextBytes(socket, 4);
    const isRefusal = answer.length < 4 || (answer[0] === 0x20 && answer[3] !== 0);
    assert(isRefusal, `${what}: ${answer.toString('hex')}`);
    socket.resume();
    await ended(what, socket);
  }
  assert.deepEqual(valuesOf(device), []);
});

test('a will is nobody’s report, whosever topic it names, and nothing is retained', async () => {
  const device = known('will-1');
  const other = known('will-2');
  for (const { topic } of [device, other]) {
    const before = broker.connected;
    const socket = await enter(device, connectPacket(device, { will: { topic, message: report(66) } }));
    socket.destroy();
    await until('the broker knows that it is gone', () => broker.connected === before);
  }
  // The flag is taken off: it is a report like any other.
  const socket = await enter(device);
  socket.write(publishPacket(device.topic, 1, report(2), 0x33));
  assert.equal((await nextBytes(socket, 4)).toString('hex'), PUBACK_1);
  socket.write(Buffer.concat([packet(0x82, Buffer.from([0, 1]), text('#'), Buffer.from([1])), PINGREQ]));
  // SUBACK with a refusal, then PINGRESP, and no message in between.
  assert.equal((await nextBytes(socket, 7)).toString('hex'), '9003000180d000');
  socket.destroy();
  assert.deepEqual([valuesOf(device), valuesOf(other)], [[2], []]);
});

test('however long the process is busy, who connected meanwhile has all its time for the handshake', async () => {
  const herd = Array.from({ length: 30 }, (_, index) => known(`herd-${index}`));
  onConnection = () => {
    onConnection = () => {};
    // More than a handshake may take: as the handshakes of a thousand others would be.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_500);
  };
  const sockets = await Promise.all(herd.map((device) => enter(device)));
  assert.equal(sockets.length, herd.length, 'each came in, with its first connection');
  for (const socket of sockets) socket.destroy();
  await until('they are gone', () => broker.connected === 0);
});

test('a device that comes a thousand times is there once, and reports', async () => {
  const device = known('often-1');
  await until('nobody is connected', () => broker.connected === 0);
  const sockets: TLSSocket[] = [];
  for (let at = 0; at < 1_000; at += 25)
    sockets.push(
      ...(await Promise.all(
        Array.from({ length: 25 }, async () => {
          const socket = await openRaw(broker.port);
          socket.resume();
          socket.write(connectPacket(device));
          return socket;
        }),
      )),
    );
  const open = () => sockets.filter(({ closed }) => !closed);
  // However slow the machine is: each time one has ended, there is as long for the next.
  for (let left = open().length; left > 1; left = open().length)
    await until(`one of ${left} has ended`, () => open().length < left);
  assert.equal(open().length, 1);
  await until('one is counted', () => broker.connected === 1);
  const [last] = open();
  assert(last !== undefined);
  last.write(publishPacket(device.topic, 1, report(5)));
  await until('its report is stored', () => valuesOf(device).length === 1);
  last.destroy();
  await until('it is gone', () => broker.connected === 0);
});

test('whoever asks far more than a device has to is answered slowly, and keeps nobody waiting', async () => {
  const bystander = known('bystander-2');
  const others = await enter(bystander);
  const flood = Buffer.concat(Array(1_000_000).fill(PINGREQ));
  for (const isRead of [true, false]) {
    const startedAtMs = performance.now();
    const socket = await enter(known(`deaf-${isRead}`));
    let answers = 0;
    if (isRead)
      socket.on('data', (bytes) => {
        answers += bytes.length / 2;
      });
    else socket.pause();
    socket.write(flood);
    await reported(bystander, isRead ? 8 : 9, others);
    if (isRead)
      await until('as many are answered as at once may be', () => answers >= PACKETS_PER_MINUTE - 1);
    const minutes = (performance.now() - startedAtMs) / 60_000;
    assert(answers <= PACKETS_PER_MINUTE * (1 + minutes), `${answers} pings were answered`);
    assert(!socket.closed);
    socket.destroy();
  }
  others.destroy();
});

test('a device that reads no PUBACK has its reports stored all the same, and keeps nobody waiting', async () => {
  const device = known('deaf-1');
  const bystander = known('bystander-3');
  const [socket, others] = [await enter(device), await enter(bystander)];
  socket.pause();
  for (let id = 1; id <= PACKETS_PER_MINUTE - 1; id++)
    socket.write(publishPacket(device.topic, id, report(id)));
  await until('all are stored', () => valuesOf(device).length === PACKETS_PER_MINUTE - 1);
  await reported(bystander, 4, others);
  socket.destroy();
  others.destroy();
});

/** PUBACKs of these ids, one after another. */
const acknowledged = (...ids: readonly number[]) =>
  ids.map((id) => packet(0x40, Buffer.from([id >> 8, id & 0xff])).toString('hex')).join('');

test('a reading that cannot be taken is acknowledged and kept, and does not stop what comes behind it', async () => {
  const bad: [string, string][] = [
    ['too old', JSON.stringify({ at: '2020-01-01T00:00:00Z', values: { temperature: 1 } })],
    ['ahead', JSON.stringify({ at: '2999-01-01T00:00:00Z', values: { temperature: 1 } })],
    ['a sensor that it does not have', JSON.stringify({ at: new Date().toISOString(), values: { x: 1 } })],
    ['NaN', `{"at":"${new Date().toISOString()}","values":{"temperature":NaN}}`],
    ['NUL', report(1).replace('"at"', '"key":"a\\u0000","at"')],
    ['nothing', ''],
    ['no text', '\u0000\u0001'],
  ];
  for (const [nth, [what, message]] of bad.entries()) {
    const device = known(`poisoned-${nth}`);
    const socket = await enter(device);
    // As a client sends again what it kept: the oldest first.
    socket.write(
      Buffer.concat([
        publishPacket(device.topic, 1, message, 0x3a),
        publishPacket(device.topic, 2, report(nth), 0x3a),
      ]),
    );
    assert.equal((await nextBytes(socket, 8)).toString('hex'), acknowledged(1, 2), what);
    assert.deepEqual(valuesOf(device), [nth], what);
    assert.deepEqual(kept.get(devices.get(device.deviceId)?.no ?? -1n), [message], what);
    socket.destroy();
  }
});

/** Holds what is to be stored until it is let go. */
function holdCommits(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  commits = promise;
  return resolve;
}

test('a connection that ends for what its device did acknowledges first what was stored', async () => {
  const other = known('last-words-other');
  const endings: [string, (device: Known) => Buffer][] = [
    ['a wrong topic', () => publishPacket(other.topic, 9, report(9))],
    ['QoS 2', (device) => publishPacket(device.topic, 9, report(9), 0x34)],
    ['a packet that is too large', () => Buffer.from([0x32, 0xff, 0xff, 0xff, 0x7f])],
    ['a broken packet', () => packet(0xf0)],
    ['a topic with a wildcard', () => publishPacket('devices/#', 9, report(9))],
    ['a second CONNECT', (device) => connectPacket(device)],
    ['DISCONNECT', () => packet(0xe0)],
  ];
  for (const [nth, [what, ending]] of endings.entries()) {
    const device = known(`last-words-${nth}`);
    const socket = await enter(device);
    const letGo = holdCommits();
    const heard = nextBytes(socket, 1_000);
    const reports = [1, 2, 3].map((id) => publishPacket(device.topic, id, report(id)));
    socket.write(Buffer.concat([...reports, ending(device)]));
    letGo();
    assert.equal((await heard).toString('hex'), acknowledged(1, 2, 3), what);
    assert.deepEqual(valuesOf(device), [1, 2, 3], what);
  }
});

test('a connection that is ended by us or by its device’s next one acknowledges first what is stored meanwhile', async () => {
  const endings: [string, (device: Known) => Promise<void>][] = [
    ['another secret', async ({ deviceId }) => broker.disconnect(deviceId)],
    ['its next connection', async (device) => void (await enter(device)).destroy()],
  ];
  for (const [nth, [what, end]] of endings.entries()) {
    const device = known(`ended-${nth}`);
    const socket = await enter(device);
    const letGo = holdCommits();
    const heard = nextBytes(socket, 1_000);
    socket.write(publishPacket(device.topic, 1, report(1)));
    // The server has it: whatever is asked behind it is answered.
    socket.write(PINGREQ);
    await once(socket, 'data');
    const ending = end(device);
    letGo();
    assert.equal((await heard).toString('hex'), `d000${acknowledged(1)}`, what);
    await ending;
  }
});

test('what a device said before it left is stored', async () => {
  const device = known('leaving-1');
  const socket = await openRaw(broker.port);
  const reports = [1, 2, 3].map((value) => packet(0x30, text(device.topic), Buffer.from(report(value))));
  socket.end(Buffer.concat([connectPacket(device), ...reports]));
  await until('all of it is stored', () => valuesOf(device).length === 3);
});

test('a backlog drains slower than it came, whatever its size, and its pings are answered meanwhile', async () => {
  const device = known('few-1');
  const socket = await openRaw(broker.port);
  socket.write(connectPacket(device, { keepAliveS: 1 }));
  await nextBytes(socket, 4);
  const ids = Array.from({ length: FEW + 5 }, (_, nth) => nth + 1);
  const reports = ids.map((id) => [id, report(id)] as const);
  const send = () =>
    socket.write(Buffer.concat(reports.map(([id, message]) => publishPacket(device.topic, id, message))));
  send();
  assert.equal((await nextBytes(socket, 4 * FEW)).toString('hex'), acknowledged(...ids.slice(0, FEW)));
  socket.write(PINGREQ);
  assert.equal((await nextBytes(socket, 2)).subarray(0, 2).toString('hex'), 'd000', 'it is not behind them');
  // Its owner's clock may stand still, and its minute never end: half of its keepalive is the most that it waits.
  const heard = await nextBytes(socket, 4 * 5);
  assert.equal(heard.toString('hex'), acknowledged(...ids.slice(FEW)));
  // All again, as after a lost connection: what is known costs nothing and waits at most once.
  send();
  assert.equal((await nextBytes(socket, 4 * ids.length)).toString('hex'), acknowledged(...ids));
  assert.deepEqual(valuesOf(device), ids);
  assert.equal(few.take(device.deviceId).allowed, false, 'what was not counted gives nothing back');
  socket.destroy();
});

test('what is known is not counted, so that it takes no room from what is new', async () => {
  const device = known('few-2');
  // Once its reports of a minute are used up it would wait for minutes: its clock stands still, and its keepalive is long.
  const socket = await enter(device, connectPacket(device, { keepAliveS: 300 }));
  let acknowledgements = 0;
  socket.on('data', (bytes) => {
    acknowledgements += bytes.length / 4;
  });
  const first = report(1);
  const again = Array.from({ length: 4 * FEW }, () => publishPacket(device.topic, 1, first));
  const fresh = Array.from({ length: FEW - 1 }, (_, nth) => publishPacket(device.topic, 2, report(nth + 2)));
  socket.write(Buffer.concat([...again, ...fresh]));
  await until('all are acknowledged', () => acknowledgements === again.length + fresh.length);
  assert.deepEqual(valuesOf(device), [1, 2, 3, 4, 5]);
  socket.destroy();
});

test('who connects after a certificate was renewed sees the new one; one that is none changes nothing', async () => {
  const { cert, key } = makeCertificate(new Date(Date.now() - 60_000));
  const seen = async () => {
    const socket = await openRaw(broker.port);
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  };
  const first = await seen();
  assert.throws(() => broker.renew({ cert, key: makeCertificate(new Date()).key }));
  assert.throws(() => broker.renew({ cert: 'none', key }));
  assert.equal(await seen(), first);
  broker.renew({ cert, key });
  assert.equal(await seen(), new X509Certificate(cert).fingerprint256);
});
