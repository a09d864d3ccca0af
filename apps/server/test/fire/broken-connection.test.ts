/** Connections to the database that break while they open. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startWire, type Wire } from './proxy.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const CUTS = 6;

let database: TestDatabase;
let wire: Wire;
let server: ServerProcess;
before(async () => {
  database = await openTestDatabase();
  wire = await startWire(database.url);
  server = await startServerProcess({ DATABASE_URL: wire.url });
});
after(async () => {
  await server?.end('SIGTERM');
  await wire?.close();
  await database?.close();
});

test('the server lives on, and is ready as soon as a connection opens', async () => {
  const isReady = async () => (await fetch(`${server.url}/health/ready`)).status === 200;
  await until('the server to be ready', isReady);
  wire.cutNext((sent) => sent.includes('application_name'), Array(CUTS).fill('statement lost'));
  wire.cut();
  // `mend` would forget what is planned: only the wire's end is put back.
  wire.reconnect();
  await until('the connections to break', async () => {
    await isReady();
    return wire.met === CUTS;
  });
  await until('the server to be ready again', isReady);
  assert.equal(server.process.exitCode, null);
});
