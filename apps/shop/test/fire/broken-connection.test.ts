/** Promises that nobody holds: of a connection to the database that breaks while it opens, and all others. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
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

test('a database that was too slow, or a lock that was held, is no such excuse: what nobody handles ends the process', async () => {
  for (const code of ['57014', '55P03', '25P03', '23505']) {
    // What any module of ours could do: leave a promise to nobody.
    const fault = `setTimeout(() => Promise.reject(Object.assign(new Error('of ${code}'), { code: '${code}' })))`;
    const other = await startServerProcess({
      DATABASE_URL: database.url,
      LOG_LEVEL: 'fatal',
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`process.on('SIGUSR2', () => ${fault});`)}`,
    });
    const exit = once(other.process, 'exit');
    other.process.kill('SIGUSR2');
    assert.deepEqual(await exit, [1, null], code);
    assert.match(other.words(), new RegExp(`of ${code}[\\s\\S]*nobody expected this`));
  }
});
