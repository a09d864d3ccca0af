/** Restarts replicas one after the other under load: each leaves its balancer before it stops taking calls. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request as ask } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { freePort } from '../../../../packages/process/src/free-port.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, callsOf } from './money.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const REPLICAS = 4;
const CALLERS = 4;
/** Checks of the balancer: it lets go of a replica after two of them. */
const CHECKED_EVERY_MS = 200;
const FALL = 2;

let database: TestDatabase;
const running = new Set<ServerProcess>();
before(async () => {
  database = await openTestDatabase();
});
after(async () => {
  await Promise.all([...running].map((server) => server.end('SIGKILL')));
  await database?.close();
});

async function start(settings: Record<string, string>): Promise<ServerProcess> {
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    SERVICES: 'ping',
    MAX_CONCURRENT_CALLS_PER_KEY: '1000',
    ...settings,
  });
  running.add(server);
  return server;
}

async function newKey(): Promise<string> {
  const { sql } = database;
  const nowMs = Date.now;
  const parts = { sql, keys: createKeys(sql, nowMs), ledger: createLedger(database, nowMs), nowMs };
  return (await grantKey(parts, { amountMicros: usdToMicros('100000'), label: 'test', note: 'test' })).apiKey;
}

interface Told {
  status: number;
  connection: string | undefined;
}

/** A call on one of the agent's connections, sent once and never again. */
function callOnce(url: string, agent: Agent, headers: Record<string, string>): Promise<Told> {
  return new Promise((resolve, reject) => {
    const options = { agent, method: 'POST', headers: { 'content-type': 'application/json', ...headers } };
    const request = ask(`${url}/x402/ping`, options, (response) => {
      response.resume();
      response.once('error', reject);
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, connection: response.headers.connection }),
      );
    });
    request.once('error', reject).end('{}');
  });
}

const readiness = async (url: string) => (await fetch(`${url}/health/ready`)).status;

test('who is told to stop takes calls until its balancer has noticed, and a second signal ends the wait', async () => {
  const server = await start({ DRAIN_DELAY_MS: '300000', LOG_LEVEL: 'info' });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = { 'x-api-key': await newKey() };
  assert.deepEqual(await callOnce(server.url, agent, headers), { status: 200, connection: 'keep-alive' });
  server.process.kill('SIGTERM');
  await until('the replica to leave its balancer', async () => (await readiness(server.url)) === 503);
  // The same wish once more, as from a supervisor that signals the whole group.
  server.process.kill('SIGTERM');
  assert.deepEqual(await callOnce(server.url, agent, headers), { status: 200, connection: 'close' });
  const page = await fetch(`${server.url}/nowhere`);
  assert.deepEqual([page.status, page.headers.get('connection')], [404, 'close']);
  const fromMs = performance.now();
  await until('more than a second to pass', () => performance.now() - fromMs > 1_000);
  assert.equal(await server.end('SIGTERM'), 0);
  running.delete(server);
  agent.destroy();
  assert.match(server.words(), /"msg":"not ready any more, and calls are still taken"/);
});

test('who is told to stop by Ctrl-C does not wait for a balancer', async () => {
  const server = await start({ DRAIN_DELAY_MS: '300000' });
  assert.equal(await server.end('SIGINT'), 0);
  running.delete(server);
});

const version = (() => {
  try {
    return execFileSync('haproxy', ['-v'], { encoding: 'utf8' });
  } catch {
    return null;
  }
})();
const withoutBalancer = version === null ? 'HAProxy is not on PATH' : false;

test(`${REPLICAS} replicas behind HAProxy, restarted in turn under load: no call fails, none is charged twice`, {
  skip: withoutBalancer,
}, async () => {
  const settings = { DRAIN_DELAY_MS: String(CHECKED_EVERY_MS * FALL * 5) };
  const ports: number[] = [];
  for (let index = 0; index < REPLICAS; index++) ports.push(await freePort());
  const replicas = await Promise.all(ports.map((port) => start({ ...settings, PORT: String(port) })));
  const key = await newKey();
  const balancer = await startBalancer(ports);
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
  try {
    await until('the balancer to take all in', async () => (await readiness(balancer.url)) === 200);
    let isOver = false;
    let sent = 0;
    const failed: string[] = [];
    const callers = Array.from({ length: CALLERS }, async () => {
      while (!isOver) {
        const order = `order-${sent++}`;
        const { status } = await callOnce(balancer.url, agent, {
          'x-api-key': key,
          'idempotency-key': order,
        }).catch((error: Error) => ({ status: error.message }));
        if (status !== 200) failed.push(`${order}: ${status}`);
      }
    });
    for (const [index, port] of ports.entries()) {
      const old = replicas[index];
      assert(old !== undefined);
      assert.equal(await old.end('SIGTERM'), 0);
      running.delete(old);
      const next = await start({ ...settings, PORT: String(port) });
      const before = sent;
      await until('it to be ready', async () => (await readiness(next.url)) === 200);
      await until('calls to go on', () => sent > before + CALLERS);
    }
    isOver = true;
    await Promise.all(callers);
    assert.deepEqual(failed, [], `of ${sent} calls`);
    const calls = await callsOf(database.patient, await accountOf(database.sql, key));
    assert.deepEqual([calls.length, calls.filter(({ state }) => state === 1).length], [sent, sent]);
    await assertBooksClosed(database.patient);
  } finally {
    agent.destroy();
    await balancer.stop();
  }
});

/** Starts HAProxy before the replicas, as docs/upgrading.md shows it: it sends no POST a second time. */
async function startBalancer(ports: readonly number[]): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-balancer-'));
  const port = await freePort();
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(
    file,
    `global
  maxconn 1000
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout check 2s
  http-reuse safe
frontend public
  bind 127.0.0.1:${port}
  default_backend replicas
backend replicas
  balance roundrobin
  option httpchk GET /health/ready
  http-check expect status 200
  http-request disable-l7-retry if METH_POST
  default-server inter ${CHECKED_EVERY_MS}ms fall ${FALL} rise 1
${ports.map((each, index) => `  server replica${index} 127.0.0.1:${each} check`).join('\n')}
`,
  );
  const child: ChildProcess = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = `http://127.0.0.1:${port}`;
  await until('HAProxy to listen', async () => {
    assert.equal(child.exitCode, null, 'HAProxy ended');
    return fetch(`${url}/health/live`).then(
      () => true,
      () => false,
    );
  });
  return {
    url,
    async stop() {
      child.kill('SIGKILL');
      await gone;
      rmSync(folder, { recursive: true });
    },
  };
}
