/** Devices that report by MQTT and by HTTPS, to whom their readings are sold, and what becomes of those who cheat. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { after, before, test } from 'node:test';
import { parquetReadObjects } from 'hyparquet';
import type { MqttClient } from 'mqtt';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { connect, openCertificate, post, register, type TestDevice } from '../devices.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const certificate = openCertificate();
let database: TestDatabase;
let server: TestServer;
let owner: string;
let stranger: string;
/** Null: the server's clock goes. */
let stoppedAtMs: number | null = null;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({
    pools: database,
    environment: { ...certificate.environment, DEVICE_REPORTS_PER_MINUTE: '100' },
    nowMs: () => stoppedAtMs ?? Date.now(),
  });
  owner = await server.key('5');
  stranger = await server.key('5');
});
after(async () => {
  await server.close();
  await database.close();
  certificate.close();
});

const isoNow = (beforeMs = 0) => new Date(Date.now() - beforeMs).toISOString();
const reading = (temperature: number, beforeMs = 0) => ({ at: isoNow(beforeMs), values: { temperature } });
const read = (deviceId: string, key = stranger) => server.call('iot-sensor-reading', key, { deviceId });
const latestOf = async (deviceId: string, key = stranger) =>
  (await jsonOf(read(deviceId, key))).data?.readings?.[0]?.value;
const own = (method: string, path: string, key = owner, body: unknown = undefined) =>
  fetch(server.url + path, {
    method,
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const balance = async (key: string) => (await jsonOf(own('GET', '/api/keys/me', key))).balanceUsd;
const rowsOf = async ({ deviceId }: TestDevice) => {
  const rows = await database.sql<{ seq: bigint; measured: { temperature: number } }[]>`
    select r.seq, r.measured from device_readings r join devices d on d.no = r.device
    where d.id = ${deviceId} order by r.seq`;
  return rows.map(({ seq, measured }) => [Number(seq), measured.temperature]);
};
const codeOf = async (response: Response | Promise<Response>) => {
  const answer = await response;
  return [answer.status, (await jsonOf(answer)).code];
};

test('a signed report is stored once, and sold to everybody with its unit, time and source', async () => {
  const device = await register(server, owner, { deviceId: 'greenhouse-1', name: 'Greenhouse' });
  const report = { ...reading(21.5), position: { lat: 52.1, lon: 5.2 } };
  assert.deepEqual(await jsonOf(post(server, device, report)), { success: true, stored: 1, known: 0 });
  assert.deepEqual(await jsonOf(post(server, device, report)), { success: true, stored: 0, known: 1 });
  const answer = await jsonOf(read('greenhouse-1'));
  assert.equal(answer.success, true);
  assert.deepEqual(answer.data.readings[0].value, 21.5);
  assert.deepEqual([answer.data.readings[0].unit, answer.data.readings[0].timestamp], ['celsius', report.at]);
  assert.deepEqual(answer.data.position, report.position);
  assert.deepEqual(answer.data.quality, 'reported');
  assert.equal('simulated' in answer.data, false);
  assert.deepEqual(
    [answer.provenance.sources[0].url, answer.provenance.sources[0].asOf, answer.provenance.mode],
    ['urn:device:greenhouse-1', report.at, 'live'],
  );
  assert.deepEqual(await rowsOf(device), [[1, 21.5]]);
});

test('what is no report of this device is refused, told to its owner, and not stored', async () => {
  const device = await register(server, owner, { deviceId: 'attacked-1' });
  const other = await register(server, stranger, { deviceId: 'attacker-1' });
  const report = reading(10);
  const now = Math.floor(Date.now() / 1_000);
  const refused: [string, [number, string], Response | Promise<Response>][] = [
    [
      'a changed body',
      [401, 'SIGNATURE_INVALID'],
      post(server, device, report, { body: JSON.stringify(reading(99)) }),
    ],
    [
      'another device’s signature',
      [401, 'SIGNATURE_INVALID'],
      post(server, other, report, { to: 'attacked-1' }),
    ],
    ['no device', [401, 'SIGNATURE_INVALID'], post(server, device, report, { to: 'no-such-device' })],
    ['no signature', [401, 'SIGNATURE_INVALID'], post(server, device, report, { signature: 'ff' })],
    [
      'an old recording',
      [401, 'SIGNATURE_TOO_OLD'],
      post(server, device, report, { timestamp: String(now - 400) }),
    ],
    [
      'a clock ahead',
      [401, 'SIGNATURE_TOO_OLD'],
      post(server, device, report, { timestamp: String(now + 400) }),
    ],
    ['a time that is none', [401, 'SIGNATURE_TOO_OLD'], post(server, device, report, { timestamp: 'now' })],
    [
      'NUL',
      [400, 'REPORT_INVALID'],
      post(server, device, `{"at":"${report.at}","key":"a\\u0000b","values":{"temperature":1}}`),
    ],
    ['no JSON', [400, 'REPORT_INVALID'], post(server, device, '{')],
    [
      'a text for a number',
      [400, 'REPORT_INVALID'],
      post(server, device, { at: report.at, values: { temperature: '20' } }),
    ],
    ['nothing', [400, 'REPORT_INVALID'], post(server, device, { at: report.at })],
    [
      'an unknown sensor',
      [400, 'SENSOR_UNKNOWN'],
      post(server, device, { at: report.at, values: { plutonium: 1 } }),
    ],
    ['the future', [400, 'CLOCK_AHEAD'], post(server, device, reading(1, -400_000))],
    ['the distant past', [400, 'READING_TOO_OLD'], post(server, device, reading(1, 8 * 86_400_000))],
    [
      'too much',
      [413, 'REPORT_TOO_LARGE'],
      post(
        server,
        device,
        Array(99).fill({
          ...report,
          key: 'k'.repeat(64),
          values: { temperature: 1.2345678901234567 },
          position: { lat: 1.2345678901234567, lon: 1 },
        }),
      ),
    ],
  ];
  for (const [what, expected, response] of refused) assert.deepEqual(await codeOf(response), expected, what);
  assert.deepEqual(await rowsOf(device), []);
  const { lastRefusal } = await jsonOf(own('GET', '/api/devices/attacked-1'));
  assert.match(lastRefusal.reason, /^(REPORT|SENSOR|CLOCK|READING)/);
  // One wrong reading, and none of the report is stored.
  assert.equal((await post(server, device, [reading(1), { at: 'x' }])).status, 400);
  assert.deepEqual(await rowsOf(device), []);
  assert.equal((await post(server, device, reading(5))).status, 200);
  assert.equal((await jsonOf(own('GET', '/api/devices/attacked-1'))).lastRefusal, null);
});

test('a device that nobody knows, or that is not shared, is a 404 that costs nothing', async () => {
  const device = await register(server, owner, { deviceId: 'private-1', public: false });
  await post(server, device, reading(3));
  const before = await balance(stranger);
  assert.deepEqual(await codeOf(read('no-such-device')), [404, 'NOT_FOUND']);
  const hidden = await jsonOf(read('private-1'));
  assert.deepEqual([hidden.code, hidden.charged], ['NOT_FOUND', false]);
  assert.equal(await balance(stranger), before);
  assert.equal(await latestOf('private-1', owner), 3);
  // Another account cannot see, change or end it.
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/rotate'],
    ['GET', '/readings'],
    ['POST', '/offers'],
  ] as const)
    assert.deepEqual(
      await codeOf(
        own(method, `/api/devices/private-1${path}`, stranger, method === 'POST' ? {} : undefined),
      ),
      [404, 'DEVICE_NOT_FOUND'],
    );
  // Offered, it can be bought; the code works once; and the offer ends when its owner says so.
  const { code } = await jsonOf(own('POST', '/api/devices/private-1/offers', owner, {}));
  assert.equal((await own('POST', '/api/device-offers', stranger, { code })).status, 200);
  assert.deepEqual(await codeOf(own('POST', '/api/device-offers', stranger, { code })), [
    404,
    'OFFER_NOT_FOUND',
  ]);
  assert.equal(await latestOf('private-1'), 3);
  await own('DELETE', '/api/devices/private-1/offers');
  assert.deepEqual(await codeOf(read('private-1')), [404, 'NOT_FOUND']);
});

test('a name is taken once, of two registrations at once by one', async () => {
  const body = { deviceId: 'twice-1' };
  const codes = await Promise.all([owner, stranger].map((key) => own('POST', '/api/devices', key, body)));
  assert.deepEqual(codes.map(({ status }) => status).sort(), [201, 409]);
  await register(server, owner, { deviceId: 'fleet-car-1', fleetId: 'taken-fleet' });
  assert.deepEqual(
    await codeOf(own('POST', '/api/devices', stranger, { deviceId: 'fleet-car-2', fleetId: 'taken-fleet' })),
    [409, 'FLEET_TAKEN'],
  );
  assert.deepEqual(
    await codeOf(
      own('POST', '/api/devices', owner, { deviceId: 'kelvin-1', sensors: { temperature: 'kelvin' } }),
    ),
    [400, 'INVALID_REQUEST'],
  );
});

test('by MQTT a PUBACK says that the reading can be bought', async () => {
  const device = await register(server, owner, { deviceId: 'mqtt-1' });
  const client = await connect(device, certificate.ca);
  for (const temperature of [1, 2, 3]) {
    const message = JSON.stringify(reading(temperature));
    await client.publishAsync(device.topic, message, { qos: 1 });
    assert.equal(await latestOf('mqtt-1'), temperature);
    // Sent again, as after a lost PUBACK: known, and acknowledged.
    await client.publishAsync(device.topic, message, { qos: 1, dup: true });
  }
  assert.deepEqual(await rowsOf(device), [
    [1, 1],
    [2, 2],
    [3, 3],
  ]);
  await client.endAsync();
});

test('readings of one moment without a key are all kept, and each is known when it comes again', async () => {
  const device = await register(server, owner, {
    deviceId: 'one-moment-1',
    sensors: { temperature: 'celsius', humidity: 'percent' },
  });
  const at = isoNow(1_000);
  const told: [Record<string, unknown>, Record<string, unknown>][] = [
    [{ values: { temperature: 21, humidity: 40 } }, { values: { humidity: 40, temperature: 21 } }],
    [{ values: { humidity: 40 } }, { values: { humidity: 40.0 } }],
    [{ position: { lat: 1, lon: 2 } }, { position: { lon: 2, lat: 1 } }],
    [
      { at: at.replace('Z', '1Z'), values: { humidity: 40 } },
      { at: at.replace('Z', '100Z'), values: { humidity: 40 } },
    ],
  ];
  const client = await connect(device, certificate.ca);
  const send = (report: unknown) => client.publishAsync(device.topic, JSON.stringify(report), { qos: 1 });
  for (const [first] of told) await send({ at, ...first });
  assert.equal((await rowsOf(device)).length, told.length, 'each that was acknowledged is there');
  for (const [first, again] of told)
    for (const same of [first, again])
      assert.deepEqual(await jsonOf(post(server, device, { at, ...same })), {
        success: true,
        stored: 0,
        known: 1,
      });
  // By HTTPS, and in one report.
  const later = isoNow();
  const pair = [1, 2, 1].map((temperature) => ({ at: later, values: { temperature } }));
  assert.deepEqual(await jsonOf(post(server, device, pair)), { success: true, stored: 2, known: 1 });
  assert.equal((await rowsOf(device)).length, told.length + 2);
  client.end(true);
});

test('what was stored before readings without a key had one of their own is known when it comes again', async () => {
  const device = await register(server, owner, { deviceId: 'one-moment-2' });
  const at = isoNow(1_000);
  await database.sql`
    insert into device_readings (device, at, key, seq, received_at, measured, lat, lon)
    select no, ${at}, '', 1, now(), '{"temperature": 21}', 1.5, 2 from devices where id = 'one-moment-2'`;
  await database.sql`update devices set seq = 1 where id = 'one-moment-2'`;
  const same = { at, values: { temperature: 21 }, position: { lat: 1.5, lon: 2 } };
  assert.deepEqual(await jsonOf(post(server, device, same)), { success: true, stored: 0, known: 1 });
  const client = await connect(device, certificate.ca);
  for (const report of [same, { ...same, values: { temperature: 22 } }, { at, values: { temperature: 21 } }])
    await client.publishAsync(device.topic, JSON.stringify(report), { qos: 1 });
  client.end(true);
  assert.deepEqual(await rowsOf(device), [
    [1, 21],
    [2, 22],
    [3, 21],
  ]);
});

const ended = (client: MqttClient) => new Promise<void>((resolve) => client.once('close', () => resolve()));

/** Tells what became of a client after it did something: whether it was acknowledged before it was cut off. */
async function outcomeOf(
  client: MqttClient,
  act: () => Promise<unknown>,
): Promise<'acknowledged' | 'cut off'> {
  client.on('error', () => {});
  const cut = ended(client).then(() => 'cut off' as const);
  const done = act().then(
    () => 'acknowledged' as const,
    () => cut,
  );
  const outcome = await Promise.race([done, cut]);
  client.end(true);
  return outcome;
}

test('the broker lets a device do nothing but report on its own topic', async () => {
  const device = await register(server, owner, { deviceId: 'mqtt-2' });
  const other = await register(server, stranger, { deviceId: 'mqtt-3' });
  const message = JSON.stringify(reading(7));
  const publish =
    (topic: string, body: string | Buffer, qos: 1 | 2 = 1) =>
    (client: MqttClient) =>
      client.publishAsync(topic, body, { qos });
  const wrong: [string, RegExp, (client: MqttClient) => Promise<unknown>][] = [
    ['another device’s topic', /^TOPIC_WRONG: .*devices\/mqtt-2\/readings/, publish(other.topic, message)],
    ['QoS 2', /^QOS_2: /, publish(device.topic, message, 2)],
    ['a topic of the broker’s', /^TOPIC_WRONG: /, publish('$SYS/broker/clients', message)],
    ['20 MB', /^PACKET_TOO_LARGE: /, publish(device.topic, Buffer.alloc(20_000_000))],
    ['a topic below its own', /^PACKET_BROKEN: /, publish(`${device.topic}/x`, message)],
    ['more than a report may have', /^REPORT_TOO_LARGE: /, publish(device.topic, Buffer.alloc(16_385))],
  ];
  for (const [what, reason, act] of wrong) {
    const client = await connect(device, certificate.ca);
    assert.equal(await outcomeOf(client, () => act(client)), 'cut off', what);
    await until(`the owner is told of ${what}`, async () => {
      const { lastRefusal } = await jsonOf(own('GET', '/api/devices/mqtt-2'));
      return reason.test(lastRefusal?.reason ?? '');
    });
  }
  assert.deepEqual(await rowsOf(device), []);
  assert.deepEqual(await rowsOf(other), []);
  const client = await connect(device, certificate.ca);
  for (const topic of ['#', 'devices/#', other.topic, device.topic, '$SYS/#'])
    await assert.rejects(client.subscribeAsync(topic), /Unspecified error|128/, topic);
  client.end(true);
});

test('a wrong credential is refused, and nobody ends another device’s connection by its name', async () => {
  const device = await register(server, owner, { deviceId: 'mqtt-4' });
  const other = await register(server, stranger, { deviceId: 'mqtt-5' });
  for (const wrong of [
    { ...device, secret: other.secret },
    { ...device, secret: '' },
    { ...device, secret: 'x'.repeat(10_000) },
    { ...device, deviceId: 'no-such-device' },
  ])
    await assert.rejects(connect(wrong, certificate.ca), /Bad username or password/);
  const first = await connect(device, certificate.ca);
  const thief = await connect(other, certificate.ca, { clientId: device.deviceId });
  await first.publishAsync(device.topic, JSON.stringify(reading(1)), { qos: 1 });
  assert.equal(first.connected, true);
  // The same credential twice: the later one stays (MQTT 3.1.1, 3.1.4-2).
  const closed = ended(first);
  const second = await connect(device, certificate.ca);
  await closed;
  await second.publishAsync(device.topic, JSON.stringify(reading(2)), { qos: 1 });
  assert.deepEqual(await rowsOf(device), [
    [1, 1],
    [2, 2],
  ]);
  // A new secret ends the old one and its connection at once.
  const rotatedOut = ended(second);
  const rotated = await jsonOf(own('POST', '/api/devices/mqtt-4/rotate', owner, {}));
  await rotatedOut;
  await assert.rejects(connect(device, certificate.ca), /Bad username or password/);
  const third = await connect({ ...device, secret: rotated.secret }, certificate.ca);
  // Revoked, it is cut off; what it reported is still sold.
  const revoked = ended(third);
  await own('DELETE', '/api/devices/mqtt-4');
  await revoked;
  await assert.rejects(connect({ ...device, secret: rotated.secret }, certificate.ca), /Bad username/);
  assert.equal(await latestOf('mqtt-4'), 2);
  for (const client of [first, thief, second, third]) client.end(true);
});

test('whoever connects and says nothing is cut off', async () => {
  const device = await register(server, owner, { deviceId: 'mqtt-6' });
  const socket = connectTcp({ host: '127.0.0.1', port: device.mqttPort });
  socket.on('error', () => {});
  await once(socket, 'close');
});

test('while the database keeps a device waiting nothing is acknowledged, and what is sent again is stored once', async () => {
  const device = await register(server, owner, { deviceId: 'mqtt-7' });
  const client = await connect(device, certificate.ca, { reconnectPeriod: 100 });
  let acknowledged = false;
  let sent: Promise<unknown> = Promise.resolve();
  await database.patient.begin(async (transaction) => {
    await transaction`select 1 from devices where id = 'mqtt-7' for update`;
    let closed = false;
    client.once('close', () => {
      closed = true;
    });
    sent = client.publishAsync(device.topic, JSON.stringify(reading(4)), { qos: 1 }).then(() => {
      acknowledged = true;
    });
    // The connection ends: nobody may believe that the reading is kept.
    await until('the connection ends', async () => {
      await transaction`select 1`;
      return closed;
    });
    assert.equal(acknowledged, false);
  });
  await sent;
  assert.deepEqual(await rowsOf(device), [[1, 4]]);
  await client.endAsync(true);
});

test('a report by HTTPS that the database keeps waiting may not be stored, and is stored once when it is sent again', async () => {
  const device = await register(server, owner, { deviceId: 'https-7' });
  const report = reading(4);
  await database.patient.begin(async (transaction) => {
    await transaction`select 1 from devices where id = 'https-7' for update`;
    const refused = await post(server, device, report);
    assert.deepEqual(await codeOf(refused), [503, 'REPORT_NOT_STORED']);
    assert.equal(refused.headers.get('retry-after'), '2');
  });
  for (let time = 0; time < 2; time++) assert.equal((await post(server, device, report)).status, 200);
  assert.deepEqual(await rowsOf(device), [[1, 4]]);
});

test('a span of readings is sold as a file of JSON, CSV or Parquet that can be fetched', async () => {
  const device = await register(server, owner, {
    deviceId: 'bulk-1',
    sensors: { temperature: 'celsius', humidity: 'percent' },
  });
  const rows = Array.from({ length: 50 }, (_, nth) => ({
    at: isoNow((50 - nth) * 1_000),
    values: nth % 2 === 0 ? { temperature: nth } : { temperature: nth + 0.25, humidity: 50 },
    ...(nth === 7 ? { position: { lat: 1.5, lon: -2.5 } } : {}),
  }));
  assert.equal((await post(server, device, rows)).status, 200);
  const file = async (format: string, more = {}) => {
    const answer = await jsonOf(
      server.call('iot-bulk-data', stranger, { deviceId: 'bulk-1', format, ...more }),
    );
    assert.equal(answer.success, true, JSON.stringify(answer));
    const path = new URL(answer.data.downloadUrl).pathname;
    const download = await fetch(server.url + path);
    const bytes = Buffer.from(await download.arrayBuffer());
    assert.equal(bytes.length, answer.data.sizeBytes);
    assert.equal(createHash('sha256').update(bytes).digest('hex'), answer.data.sha256);
    assert.match(download.headers.get('content-disposition') ?? '', new RegExp(`bulk-1[.]${format}`));
    return { bytes, data: answer.data };
  };
  const { bytes: csv, data } = await file('csv');
  const lines = csv.toString().trimEnd().split('\r\n');
  assert.equal(lines[0], 'at,receivedAt,lat,lon,humidity,temperature');
  assert.equal(lines.length, 51);
  assert.match(lines[8] ?? '', new RegExp(`^${rows[7]?.at},[^,]+,1.5,-2.5,50,7.25$`));
  assert.deepEqual(
    data.summary.sensors.map((each: Record<string, unknown>) => [
      each.sensorType,
      each.count,
      each.min,
      each.max,
    ]),
    [
      ['humidity', 25, 50, 50],
      ['temperature', 50, 0, 49.25],
    ],
  );
  const json = JSON.parse((await file('json')).bytes.toString());
  assert.deepEqual(
    json.readings.map(({ at, values }: Record<string, unknown>) => ({ at, values })),
    rows.map(({ at, values }) => ({ at, values: { humidity: null, ...values } })),
  );
  const parquet = (await file('parquet')).bytes;
  const buffer = parquet.buffer.slice(parquet.byteOffset, parquet.byteOffset + parquet.length) as ArrayBuffer;
  const restored = await parquetReadObjects({ file: buffer });
  assert.deepEqual(
    restored.map((row) => [
      row.at.toISOString(),
      row['sensor.temperature'],
      row['sensor.humidity'] ?? null,
      row.lat ?? null,
    ]),
    rows.map(({ at, values, position }) => [
      at,
      values.temperature,
      'humidity' in values ? values.humidity : null,
      position?.lat ?? null,
    ]),
  );
  const { data: humid } = await file('csv', { sensorType: 'humidity', from: rows[10]?.at });
  assert.equal(humid.recordCount, 20);
  for (const [body, expected] of [
    [{ startDate: '2026-01-02', endDate: '2026-01-01' }, [400, 'INVALID_REQUEST']],
    [{ sensorType: 'co2' }, [422, 'SENSOR_NOT_THERE']],
    [{ startDate: '2020-01-01', endDate: '2020-01-02' }, [422, 'NO_READINGS']],
  ] as const)
    assert.deepEqual(
      await codeOf(server.call('iot-bulk-data', stranger, { deviceId: 'bulk-1', ...body })),
      expected,
    );
  assert.deepEqual(await codeOf(fetch(`${server.url}/api/device-exports/${'0'.repeat(32)}`)), [
    404,
    'EXPORT_NOT_FOUND',
  ]);
});

test('a fleet is told with positions, trips and idle time, and without signals that nobody reported', async () => {
  const device = await register(server, owner, {
    deviceId: 'van-1',
    fleetId: 'vans',
    sensors: { ignition: 'boolean', speed: 'km/h' },
  });
  await register(server, owner, { deviceId: 'van-2', fleetId: 'vans' });
  const minutes = [20, 18, 16, 14, 12];
  const fixes = minutes.map((ago, nth) => ({
    at: isoNow(ago * 60_000),
    values: { ignition: 1, speed: nth < 3 ? 30 : 0 },
    position: { lat: Math.min(nth, 2) / 111.195, lon: 0 },
  }));
  await post(server, device, fixes);
  const { data } = await jsonOf(server.call('fleet-telematics', stranger, { fleetId: 'vans' }));
  const [van] = data.vehicles;
  assert.deepEqual(data.summary, { totalVehicles: 2, active: 0, idle: 1, offline: 1, distanceKm: 2 });
  assert.deepEqual(
    [van.vehicleId, van.distanceKm, van.trips.length, van.engineStatus],
    ['van-1', 2, 1, 'on'],
  );
  assert.deepEqual([van.movingSeconds, van.idleSeconds], [240, 240]);
  assert.deepEqual([van.fuelLevel, van.odometer, van.heading], [null, null, null]);
  assert.deepEqual(await codeOf(server.call('fleet-telematics', stranger, { fleetId: 'no-fleet' })), [
    404,
    'NOT_FOUND',
  ]);
  assert.deepEqual(await codeOf(server.call('fleet-telematics', stranger, { deviceId: 'van-2' })), [
    422,
    'NO_READINGS',
  ]);
  assert.deepEqual(await codeOf(server.call('fleet-telematics', stranger, {})), [400, 'INVALID_REQUEST']);
});

test('a device that reports more than it may is told so; by MQTT it waits, and what is known costs nothing', async (context) => {
  const device = await register(server, owner, { deviceId: 'chatty-1' });
  const statuses: number[] = [];
  stoppedAtMs = Date.now();
  context.after(() => {
    stoppedAtMs = null;
  });
  const timestamp = String(Math.floor(stoppedAtMs / 1_000));
  const send = async (report: unknown) => {
    statuses.push((await post(server, device, report, { timestamp })).status);
  };
  const first = reading(0);
  for (let again = 0; again < 10; again++) await send(first);
  for (let nth = 1; nth < 100; nth++) await send(reading(nth, nth));
  assert.deepEqual(
    statuses.filter((each) => each !== 200),
    [],
    'what is known is not counted',
  );
  await send(reading(100, 100));
  assert.equal(statuses.at(-1), 429);
  assert.equal((await rowsOf(device)).length, 100);
  const client = await connect(device, certificate.ca, { keepalive: 2 });
  let closes = 0;
  client.on('close', () => {
    closes += 1;
  });
  const messages = [1, 2].map((nth) => JSON.stringify(reading(nth, 5_000_000)));
  const publish = () =>
    Promise.all(messages.map((message) => client.publishAsync(device.topic, message, { qos: 1 })));
  await publish();
  assert.equal((await rowsOf(device)).length, 102);
  // Ten times the same again would be a minute of the limit.
  for (let nth = 0; nth < 60; nth++) await publish();
  assert.deepEqual([(await rowsOf(device)).length, closes], [102, 0]);
  await client.endAsync();
});

test('a stream tells readings as they are stored, and its cursor goes on where it ended', async () => {
  const device = await register(server, owner, { deviceId: 'stream-1' });
  await post(server, device, reading(1));
  const response = await server.call('iot-device-stream', stranger, {
    deviceId: 'stream-1',
    durationSeconds: 3,
    stream: true,
  });
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  const decoder = new TextDecoder();
  let text = '';
  let sent = 0;
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    // Each is sent once the one before has been told.
    if (text.split('event: reading').length - 1 === sent && text.includes('event: open') && sent < 3) {
      sent += 1;
      await post(server, device, reading(sent * 10));
    }
  }
  const told = [...text.matchAll(/event: reading\ndata: (.*)\n/g)].map(([, data]) => JSON.parse(data ?? ''));
  assert.deepEqual(
    told.map(({ values, cursor }) => [values.temperature, cursor]),
    [
      [10, '2'],
      [20, '3'],
      [30, '4'],
    ].slice(0, told.length),
  );
  assert(told.length >= 1);
  const [, last = ''] = /event: result\ndata: (.*)\n/.exec(text) ?? [];
  const { data } = JSON.parse(last);
  assert.deepEqual([data.count, data.cursor], [told.length, String(told.length + 1)]);
  await post(server, device, reading(99));
  const next = await jsonOf(
    server.call('iot-device-stream', stranger, { deviceId: 'stream-1', cursor: data.cursor }),
  );
  assert.equal(next.data.dataPoints.at(-1).values.temperature, 99);
  assert(Number(next.data.dataPoints[0].cursor) === Number(data.cursor) + 1);
  const nothing = await jsonOf(
    server.call('iot-device-stream', stranger, { deviceId: 'stream-1', cursor: next.data.cursor }),
  );
  assert.deepEqual([nothing.data.count, nothing.data.cursor], [0, next.data.cursor]);
  assert.deepEqual(
    await codeOf(server.call('iot-device-stream', stranger, { deviceId: 'nobody-1', stream: true })),
    [404, 'NOT_FOUND'],
  );
});
