/** Tests what becomes of a device over its life: what it cannot report yet, sensors that come later, and its name after it ended. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { openRaw } from '../../../../packages/catalogue/src/devices/raw-mqtt.fixture.ts';
import { makeCertificate } from '../../../../packages/sandbox/src/devices/certificate.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { connect, openCertificate, post, register, type TestDevice } from '../devices.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MOST_DEVICES = 16;

const certificate = openCertificate();
let database: TestDatabase;
let server: TestServer;
let owner: string;
let stranger: string;
/** How far the server's clock is ahead of the devices'. */
let aheadMs = 0;
const nowMs = () => Date.now() + aheadMs;
before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({
    pools: database,
    environment: { ...certificate.environment, DEVICES_PER_ACCOUNT: String(MOST_DEVICES) },
    nowMs,
  });
  owner = await server.key('5');
  stranger = await server.key('5');
});
after(async () => {
  await server.close();
  await database.close();
  certificate.close();
});

const own = (method: string, path: string, body: unknown = undefined, key = owner) =>
  fetch(server.url + path, {
    method,
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
const codeOf = async (response: Promise<Response>) => {
  const answer = await response;
  return [answer.status, (await jsonOf(answer)).code];
};
const valuesOf = async ({ deviceId }: TestDevice) => {
  const rows = await database.sql<{ measured: Record<string, number> }[]>`
    select r.measured from device_readings r join devices d on d.no = r.device where d.id = ${deviceId} order by r.seq`;
  return rows.map(({ measured }) => measured);
};
const refusalsOf = async ({ deviceId }: TestDevice, query = '') =>
  (await jsonOf(own('GET', `/api/devices/${deviceId}/refusals${query}`))).refusals;
const runJob = async (name: string) => {
  const job = server.app.jobs.find((each) => each.name === name);
  assert(job !== undefined, name);
  await job.run();
};
const at = (beforeMs = 0) => new Date(Date.now() + aheadMs - beforeMs).toISOString();

test('a device with a poisoned queue drains it, and its owner sees what was refused, why and how often', async () => {
  const device = await register(server, owner, { deviceId: 'poisoned-1' });
  const bad = {
    old: JSON.stringify({ at: at(8 * DAY_MS), values: { temperature: 1 } }),
    sensor: JSON.stringify({ at: at(), values: { humidity: 40 } }),
    text: '{"at": "now"}',
    nul: 'a\0b',
  };
  const client = await connect(device, certificate.ca, { reconnectPeriod: 100 });
  let closes = 0;
  client.on('close', () => {
    closes += 1;
  });
  // As a client keeps them over a lost connection: all at once, and the oldest first.
  const good = [1, 2, 3, 4, 5].map((temperature) => JSON.stringify({ at: at(), values: { temperature } }));
  const queue = [...Object.values(bad), ...good, bad.text];
  await Promise.all(queue.map((message) => client.publishAsync(device.topic, message, { qos: 1 })));
  assert.equal(closes, 0);
  assert.equal((await valuesOf(device)).length, 5);
  const listed = await refusalsOf(device);
  assert.deepEqual(
    listed.map(({ code, report, count }: Record<string, unknown>) => [code, report, count]),
    [
      ['REPORT_INVALID', bad.nul, 1],
      ['REPORT_INVALID', bad.text, 2],
      ['SENSOR_UNKNOWN', bad.sensor, 1],
      ['READING_TOO_OLD', bad.old, 1],
    ],
  );
  assert.equal(listed[2].waitsForSensor, 'humidity');
  assert.match(listed[3].reason, /168 hours ago/);
  const shown = await jsonOf(own('GET', '/api/devices/poisoned-1'));
  assert.equal(shown.refusals, 4);
  // By pages.
  const first = await jsonOf(own('GET', '/api/devices/poisoned-1/refusals?limit=3'));
  const rest = await jsonOf(own('GET', `/api/devices/poisoned-1/refusals?limit=3&cursor=${first.cursor}`));
  assert.deepEqual([first.refusals.length, rest.refusals.length, rest.cursor], [3, 1, null]);
  for (const query of ['?limit=0', '?limit=101', '?cursor=x'])
    assert.deepEqual(await codeOf(own('GET', `/api/devices/poisoned-1/refusals${query}`)), [
      400,
      'INVALID_REQUEST',
    ]);
  assert.deepEqual(await codeOf(own('GET', '/api/devices/poisoned-1/refusals', undefined, stranger)), [
    404,
    'DEVICE_NOT_FOUND',
  ]);
  client.end(true);
});

test('whatever a report that cannot be taken holds, it is kept as it came, listed, and stops nothing', async () => {
  const device = await register(server, owner, { deviceId: 'hostile-1' });
  const client = await connect(device, certificate.ca, { reconnectPeriod: 100 });
  const cut = ended(client).then(() => assert.fail('a connection ended'));
  const sensor = (name: string) => `{"at":"${at()}","values":{"${name}":1}}`;
  const bodies = [
    Buffer.alloc(0),
    Buffer.from([0xff, 0xfe, 0x00, 0xc3]),
    Buffer.alloc(16_384, 'x'),
    '['.repeat(16_384),
    sensor('a\\u0000b'),
    sensor('\\ud800'),
    sensor('__proto__'),
    sensor('<img src=x onerror=alert(1)>'),
    sensor(Array.from({ length: 3_000 }, (_, index) => index.toString(36)).join('')),
    // Past the last year that a date is written with four digits.
    '{"at":"9999-12-31T23:59:59-23:59","values":{"temperature":1}}',
    '{"at":"0000-01-01T00:00:00Z","values":{"temperature":1}}',
    `{"at":"${at()}","values":{"temperature":1e999}}`,
  ].map((each) => Buffer.from(each));
  const good = JSON.stringify({ at: at(), values: { temperature: 7 } });
  for (const body of [...bodies, good])
    await Promise.race([client.publishAsync(device.topic, body, { qos: 1 }), cut]).catch((error: Error) =>
      assert.fail(`${error.message}: ${String(body).slice(0, 80)}`),
    );
  assert.deepEqual(await valuesOf(device), [{ temperature: 7 }]);
  const listed = await refusalsOf(device);
  assert.deepEqual(
    listed.map(({ report }: { report: string }) => report),
    bodies.map(String).reverse(),
  );
  cut.catch(() => {});
  client.end(true);
});

/** Resolves when a connection has ended, whoever ended it. */
function ended(client: { once(event: 'close', listener: () => void): unknown }): Promise<void> {
  return new Promise((resolve) => void client.once('close', resolve));
}

test('a sensor that is added is reported at once, and what waited for it is taken', async () => {
  const device = await register(server, owner, { deviceId: 'growing-1' });
  const client = await connect(device, certificate.ca);
  const report = (values: Record<string, number>) =>
    client.publishAsync(device.topic, JSON.stringify({ at: at(), values }), { qos: 1 });
  await report({ temperature: 1, humidity: 40 });
  await report({ humidity: 41, co2: 400 });
  assert.deepEqual(await valuesOf(device), []);
  // Days later it is as old as it was when it came.
  aheadMs += 20 * DAY_MS;
  const change = (sensors: Record<string, string>) => own('PATCH', '/api/devices/growing-1', { sensors });
  assert.deepEqual((await jsonOf(change({ humidity: 'percent' }))).sensors, {
    temperature: 'celsius',
    humidity: 'percent',
  });
  await until('what waited for it is stored', async () => (await valuesOf(device)).length === 1);
  await until('the other waits for its next sensor', async () => {
    const [waiting, ...others] = await refusalsOf(device);
    return others.length === 0 && waiting.waitsForSensor === 'co2';
  });
  assert.equal((await change({ co2: 'ppm' })).status, 200);
  await until('that is stored too', async () => (await refusalsOf(device)).length === 0);
  // The device was connected all the time.
  await report({ humidity: 42 });
  assert.deepEqual(await valuesOf(device), [
    { temperature: 1, humidity: 40 },
    { humidity: 41, co2: 400 },
    { humidity: 42 },
  ]);
  client.end(true);
  // What is stored has its unit, and a device has an end.
  assert.deepEqual(await codeOf(own('PATCH', '/api/devices/growing-1', { sensors: { sap: 'l' } })), [
    200,
    undefined,
  ]);
  assert.deepEqual(await codeOf(change({ sap: 'ml' })), [409, 'SENSOR_UNIT_FIXED']);
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, nth) => [`s${nth}`, 'm']));
  assert.deepEqual(await codeOf(change(many)), [409, 'TOO_MANY_SENSORS']);
  assert.equal(Object.keys((await jsonOf(own('GET', '/api/devices/growing-1'))).sensors).length, 4);
});

test('what a clock that is ahead reported is taken once its time has come, and behind what cannot be', async () => {
  const device = await register(server, owner, { deviceId: 'ahead-1' });
  const other = await register(server, owner, { deviceId: 'ahead-2' });
  for (const { topic, ...each } of [other, device]) {
    const client = await connect({ topic, ...each }, certificate.ca);
    const report = JSON.stringify({ at: at(-2 * HOUR_MS), values: { temperature: 9 } });
    await client.publishAsync(topic, report, { qos: 1 });
    client.end(true);
  }
  const [waiting] = await refusalsOf(device);
  assert.equal(waiting.code, 'CLOCK_AHEAD');
  await runJob('take-refused-reports');
  assert.deepEqual(await valuesOf(device), []);
  aheadMs += 2 * HOUR_MS;
  assert(Date.parse(waiting.takenFrom) <= Date.now() + aheadMs);
  await database.patient.begin(async (elsewhere) => {
    // The first of them cannot be stored now.
    await elsewhere`select 1 from devices where id = 'ahead-2' for update`;
    await runJob('take-refused-reports').catch(() => {});
    assert.deepEqual(await valuesOf(device), [{ temperature: 9 }]);
  });
  assert.deepEqual([await refusalsOf(device), (await refusalsOf(other)).length], [[], 1]);
  aheadMs += HOUR_MS;
  await runJob('take-refused-reports');
  await runJob('take-refused-reports');
  assert.deepEqual([await valuesOf(other), await refusalsOf(other)], [[{ temperature: 9 }], []]);
});

test('what was refused is kept for 30 days, and no more than 10,000 of a device', async () => {
  const device = await register(server, owner, { deviceId: 'full-1' });
  await database.sql`
    insert into device_refusals (device, nth, digest, report, code, reason, first_at, last_at)
    select d.no, n, sha256(n::text::bytea), n::text::bytea, 'REPORT_INVALID', 'old', now(), now()
    from devices d, generate_series(1, 10000) n where d.id = 'full-1'`;
  await database.sql`update devices set refusals = 10000 where id = 'full-1'`;
  const client = await connect(device, certificate.ca);
  await client.publishAsync(device.topic, 'not a report', { qos: 1 });
  const count = async () => {
    const [row] = await database.sql<{ count: number; first: string }[]>`
      select count(*)::integer as count, min(r.nth)::text as first
      from device_refusals r join devices d on d.no = r.device where d.id = 'full-1'`;
    return row;
  };
  assert.deepEqual(await count(), { count: 10_000, first: '2' });
  aheadMs += 31 * DAY_MS;
  await client.publishAsync(device.topic, 'not a report', { qos: 1 });
  client.end(true);
  await runJob('drop-refused-reports');
  assert.equal((await count())?.count, 1, 'what came again is kept from then on');
});

test('a device that ended can begin again under its name, with its history and a new secret, for its owner alone', async () => {
  const device = await register(server, owner, { deviceId: 'again-1', public: false });
  assert.equal((await post(server, device, { at: at(), values: { temperature: 1 } }, stamp())).status, 200);
  const body = { deviceId: 'again-1', sensors: { humidity: 'percent' } };
  assert.deepEqual(await codeOf(own('POST', '/api/devices', body)), [409, 'DEVICE_ID_TAKEN']);
  await own('DELETE', '/api/devices/again-1');
  assert.deepEqual(await codeOf(own('POST', '/api/devices/again-1/rotate', {})), [410, 'DEVICE_REVOKED']);
  const late = post(server, device, { at: at(), values: { temperature: 2 } }, stamp());
  assert.deepEqual(await codeOf(late), [403, 'DEVICE_REVOKED']);
  for (const [key, change, code] of [
    [stranger, {}, 'DEVICE_ID_TAKEN'],
    [owner, { simulated: true }, 'DEVICE_ID_TAKEN'],
    [
      owner,
      { sensors: { temperature: 'celsius', humidity: 'percent', sap: 'l' }, fleetId: 'x-1' },
      undefined,
    ],
  ] as const)
    assert.deepEqual(
      await codeOf(own('POST', '/api/devices', { ...body, ...change }, key)),
      code === undefined ? [201, undefined] : [409, code],
    );
  await own('DELETE', '/api/devices/again-1');
  assert.deepEqual(await codeOf(own('POST', '/api/devices', { ...body, sensors: { sap: 'ml' } })), [
    409,
    'SENSOR_UNIT_FIXED',
  ]);
  const crowd = await Promise.all([1, 2, 3].map(() => own('POST', '/api/devices', body)));
  assert.deepEqual(crowd.map(({ status }) => status).sort(), [201, 409, 409]);
  const made = crowd.find(({ status }) => status === 201);
  assert(made !== undefined);
  const told = await jsonOf(made);
  assert.deepEqual(
    [told.status, told.readings, told.sensors],
    ['active', 1, { temperature: 'celsius', humidity: 'percent', sap: 'l' }],
  );
  const report = { at: at(), values: { humidity: 3 } };
  assert.deepEqual(await codeOf(post(server, device, report, stamp())), [401, 'SIGNATURE_INVALID']);
  const anew = { ...device, secret: told.secret };
  assert.equal((await post(server, anew, report, stamp())).status, 200);
  assert.deepEqual(await valuesOf(device), [{ temperature: 1 }, { humidity: 3 }]);
});

test('an account has so many devices and no more, of many that it registers at once', async () => {
  const key = await server.key('5');
  const register = (nth: number) => own('POST', '/api/devices', { deviceId: `many-${nth}` }, key);
  const crowd = await Promise.all(Array.from({ length: MOST_DEVICES + 5 }, (_, nth) => register(nth)));
  const codes = await Promise.all(crowd.map(async (answer) => (await jsonOf(answer)).code ?? answer.status));
  assert.deepEqual(codes.sort(), [...Array(MOST_DEVICES).fill(201), ...Array(5).fill('TOO_MANY_DEVICES')]);
  const { devices } = await jsonOf(own('GET', '/api/devices', undefined, key));
  const [{ deviceId: first }] = devices;
  // One that ended makes room, and takes it when it begins again.
  await own('DELETE', `/api/devices/${first}`, undefined, key);
  assert.equal((await register(100)).status, 201);
  assert.deepEqual(await codeOf(own('POST', '/api/devices', { deviceId: first }, key)), [
    409,
    'TOO_MANY_DEVICES',
  ]);
});

test('on two replicas at once one device has each reading stored once, and each report that cannot be taken kept once', async () => {
  const environment = { ...certificate.environment, DEVICE_REPORTS_PER_MINUTE: '3000' };
  const replicas = await Promise.all(
    [0, 1].map(() => startTestServer({ pools: database, environment, nowMs })),
  );
  const devices = await Promise.all(
    replicas.map(async (replica, index) => register(replica, owner, { deviceId: `twofold-${index}` })),
  );
  const [device] = devices as [TestDevice];
  const clients = await Promise.all(
    devices.map(({ mqttPort }) => connect({ ...device, mqttPort }, certificate.ca)),
  );
  const readings = Array.from({ length: 50 }, (_, temperature) =>
    JSON.stringify({ at: at(), values: { temperature } }),
  );
  const same = Array.from({ length: 500 }, () => 'the same again');
  await Promise.all(
    clients.flatMap((client) =>
      [...readings, ...same].map((body) => client.publishAsync(device.topic, body, { qos: 1 })),
    ),
  );
  const stored = await valuesOf(device);
  assert.equal(stored.length, 50);
  assert.equal(new Set(stored.map(({ temperature }) => temperature)).size, 50);
  const kept = await refusalsOf(device);
  assert.deepEqual(
    kept.map(({ report, count }: { report: string; count: number }) => [report, count]),
    [['the same again', 1_000]],
  );
  for (const client of clients) client.end(true);
  await Promise.all(replicas.map((replica) => replica.close()));
});

test('a device that is deleted while its backlog waits is cut off at once, and nothing more of it is taken', async () => {
  // The minute does not end, however slow the machine is.
  const beganAtMs = nowMs();
  const replica = await startTestServer({
    pools: database,
    environment: { ...certificate.environment, DEVICE_REPORTS_PER_MINUTE: '10' },
    nowMs: () => beganAtMs,
  });
  const device = await register(replica, owner, { deviceId: 'leaving-1' });
  const client = await connect(device, certificate.ca);
  const closed = ended(client);
  let acknowledged = 0;
  for (let temperature = 0; temperature < 30; temperature += 1)
    client
      .publishAsync(device.topic, JSON.stringify({ at: at(), values: { temperature } }), { qos: 1 })
      .then(() => {
        acknowledged += 1;
      })
      .catch(() => {});
  await until('its reports of this minute are acknowledged', () => acknowledged === 10);
  const { status } = await fetch(`${replica.url}/api/devices/leaving-1`, {
    method: 'DELETE',
    headers: { 'x-api-key': owner },
  });
  assert.equal(status, 200);
  await closed;
  assert.equal(acknowledged, 10);
  await assert.rejects(connect(device, certificate.ca), /Bad username or password/);
  // What one waited with is not taken by the device that begins again.
  const again = await register(replica, owner, { deviceId: 'leaving-1' });
  assert.notEqual(again.secret, device.secret);
  assert.deepEqual(
    (await valuesOf(device)).map(({ temperature }) => temperature),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
  client.end(true);
  await replica.close();
});

test('a certificate that is renewed in its files is taken up without a restart, once both files are there', async () => {
  const device = await register(server, owner, { deviceId: 'renewing-1' });
  const { DEVICE_MQTT_CERT_FILE: certFile, DEVICE_MQTT_KEY_FILE: keyFile } = certificate.environment;
  const shown = async () => {
    const socket = await openRaw(device.mqttPort);
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  };
  const client = await connect(device, certificate.ca);
  const old = new X509Certificate(certificate.ca).fingerprint256;
  const renewed = makeCertificate(new Date(Date.now() - 60_000));
  writeFileSync(certFile, renewed.cert);
  await assert.rejects(runJob('take-up-certificate'));
  assert.equal(await shown(), old);
  writeFileSync(keyFile, renewed.key);
  await runJob('take-up-certificate');
  assert.equal(await shown(), new X509Certificate(renewed.cert).fingerprint256);
  // Who was connected stays so.
  await client.publishAsync(device.topic, JSON.stringify({ at: at(), values: { temperature: 1 } }), {
    qos: 1,
  });
  assert.equal((await valuesOf(device)).length, 1);
  client.end(true);
});

/** The time of the server, which a signature must name. */
function stamp() {
  return { timestamp: String(Math.floor((Date.now() + aheadMs) / 1_000)) };
}
