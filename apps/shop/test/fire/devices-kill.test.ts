/** `kill -9` of the server, and with it of the broker, while devices report: what was acknowledged is there, once. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import type { MqttClient } from 'mqtt';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { connect, openCertificate, register, type TestDevice } from '../devices.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const DEVICES = 5;
const READINGS = 200;

const certificate = openCertificate();
let database: TestDatabase;
let server: ServerProcess | null = null;
before(async () => {
  database = await openTestDatabase();
});
after(async () => {
  await server?.end('SIGKILL');
  await database?.close();
  certificate.close();
});

const start = (mqttPort: number) =>
  startServerProcess({
    ...certificate.environment,
    DATABASE_URL: database.url,
    DEVICE_MQTT_PORT: String(mqttPort),
    DEVICE_REPORTS_PER_MINUTE: '100000',
  });

test('every acknowledged reading is stored once, over a kill -9 of the server and a start on the same port', async () => {
  const keys = createKeys(database.sql, Date.now);
  const ledger = createLedger(database, Date.now);
  const grant = { amountMicros: 1_000_000n, label: 'test', note: 'test' };
  const { apiKey } = await grantKey({ sql: database.sql, keys, ledger, nowMs: Date.now }, grant);
  server = await start(0);
  const devices: TestDevice[] = [];
  for (let nth = 0; nth < DEVICES; nth++)
    devices.push(await register(server, apiKey, { deviceId: `killed-${nth}` }));
  const clients: MqttClient[] = await Promise.all(
    devices.map((device) => connect(device, certificate.ca, { reconnectPeriod: 100 })),
  );
  for (const client of clients) client.on('error', () => {});
  const acknowledged = new Set<string>();
  const startedAtMs = Date.now() - 3_600_000;
  const killed = Promise.withResolvers<void>();
  const sending = devices.flatMap(({ deviceId, topic }, at) =>
    Array.from({ length: READINGS }, async (_, nth) => {
      const report = { at: new Date(startedAtMs + nth * 1_000).toISOString(), values: { temperature: nth } };
      // The last one of each is surely not acknowledged before, however long this process stands still.
      if (nth === READINGS - 1) await killed.promise;
      await clients[at]?.publishAsync(topic, JSON.stringify(report), { qos: 1 });
      acknowledged.add(`${deviceId} ${nth}`);
    }),
  );
  await until('some are acknowledged', () => acknowledged.size > 20);
  await server.end('SIGKILL');
  killed.resolve();
  const sure = new Set(acknowledged);
  const stored = async () => {
    const rows = await database.sql<{ id: string; temperature: number }[]>`
      select d.id, (r.measured->>'temperature')::integer as temperature
      from device_readings r join devices d on d.no = r.device`;
    return rows.map(({ id, temperature }) => `${id} ${temperature}`);
  };
  const there = new Set(await stored());
  assert.deepEqual(
    [...sure].filter((each) => !there.has(each)),
    [],
    'acknowledged, and lost',
  );
  server = await start(devices[0]?.mqttPort ?? 0);
  await Promise.all(sending);
  const all = await stored();
  assert.equal(all.length, DEVICES * READINGS);
  assert.equal(new Set(all).size, all.length, 'and each once');
  await Promise.all(clients.map((client) => client.endAsync(true)));
});

/** A way to the broker that can keep what the broker says. */
async function openWay(port: number) {
  let isDeaf = false;
  const sockets = new Set<Socket>();
  const front = createServer((device) => {
    const broker = connectTcp({ host: '127.0.0.1', port });
    for (const socket of [device, broker]) {
      sockets.add(socket);
      socket.on('error', () => {});
    }
    device.on('data', (bytes) => broker.write(bytes));
    broker.on('data', (bytes) => void (isDeaf || device.write(bytes)));
    device.on('close', () => broker.destroy());
    broker.on('close', () => device.destroy());
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const address = front.address();
  if (address === null || typeof address === 'string') throw new Error('the way has no port');
  return {
    port: address.port,
    keepAnswers(kept: boolean): void {
      isDeaf = kept;
    },
    close(): void {
      front.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

test('a reading that was committed and whose PUBACK never left is stored once, over a kill -9 in between', async () => {
  assert(server !== null);
  const keys = createKeys(database.sql, Date.now);
  const grant = { amountMicros: 1_000_000n, label: 'test', note: 'test' };
  const ledger = createLedger(database, Date.now);
  const { apiKey } = await grantKey({ sql: database.sql, keys, ledger, nowMs: Date.now }, grant);
  const device = await register(server, apiKey, { deviceId: 'between-1' });
  const way = await openWay(device.mqttPort);
  const client = await connect({ ...device, mqttPort: way.port }, certificate.ca, { reconnectPeriod: 100 });
  client.on('error', () => {});
  const stored = async () => {
    const [row] = await database.sql<{ count: number }[]>`
      select count(*)::integer as count from device_readings r join devices d on d.no = r.device
      where d.id = 'between-1'`;
    return row?.count;
  };
  way.keepAnswers(true);
  let acknowledged = false;
  const report = JSON.stringify({ at: new Date().toISOString(), values: { temperature: 1 } });
  const sent = client.publishAsync(device.topic, report, { qos: 1 }).then(() => {
    acknowledged = true;
  });
  await until('it is committed', async () => (await stored()) === 1);
  await server.end('SIGKILL');
  assert.equal(acknowledged, false);
  way.keepAnswers(false);
  server = await start(device.mqttPort);
  await sent;
  assert.equal(await stored(), 1);
  await client.endAsync(true);
  way.close();
});
