/** Replicas whose machines do not agree about the time: what one of them sells, no other one takes away. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { connectPools, endPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf } from './money.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const GRANTED = 1_000_000n;
const PRICE = 40_000n;

/** The gates that a service waits for, by the name that it is asked for. */
const gates = new Map<string, { asked: boolean; open(): void; opened: Promise<void> }>();
function gateOf(name: string) {
  const { promise: opened, resolve } = Promise.withResolvers<void>();
  const gate = { asked: false, opened, open: () => resolve() };
  gates.set(name, gate);
  return gate;
}
async function waitAt(name: string): Promise<void> {
  const gate = gates.get(name) ?? assert.fail(name);
  gate.asked = true;
  await gate.opened;
}

const patient = defineService({
  path: 'patient',
  name: 'Patient',
  tag: 'AI Services',
  priceUsd: '0.04',
  summary: 'Takes its time.',
  input: z.object({ name: z.string(), stream: z.boolean().default(false) }),
  output: z.object({ text: z.string() }),
  example: { name: 'one' },
  async run({ name }) {
    await waitAt(name);
    return answer({ text: 'All of it.' }, { method: 'Slowly.' });
  },
  stream: {
    field: 'stream',
    async *run({ name }) {
      yield { event: 'word', data: { word: 'All' } };
      await waitAt(name);
      yield { event: 'word', data: { word: 'of it.' } };
      return answer({ text: 'All of it.' }, { method: 'Slowly.' });
    },
  },
});

let database: TestDatabase;
let right: TestServer;
before(async () => {
  database = await openTestDatabase();
  right = await startTestServer({ pools: database, services: [patient], nowMs: database.clock.nowMs });
});
after(async () => {
  await right?.close();
  await database?.close();
});

/** A server on a machine whose clock is ahead by so much. */
async function startSkewed(aheadMs: number): Promise<{ server: TestServer; stop(): Promise<void> }> {
  const pools: Pools = connectPools(database.url, 4, { machineMs: () => Date.now() + aheadMs });
  const server = await startTestServer({ pools, services: [patient], nowMs: pools.clock.nowMs });
  await until('the time to be known', () => pools.clock.aheadMs !== null);
  return {
    server,
    async stop() {
      await server.close();
      await endPools(pools, 1);
    },
  };
}

for (const minutes of [-5, -2, 2, 5]) {
  const aheadMs = minutes * 60_000;
  for (const stream of [false, true]) {
    const what = stream ? 'a stream' : 'a call';
    test(`${what} at a replica ${minutes} min ahead is sold once, whatever the others release meanwhile`, async () => {
      const { server, stop } = await startSkewed(aheadMs);
      const name = `${what} ${minutes}`;
      const gate = gateOf(name);
      const key = await right.key('1');
      const account = await accountOf(database.sql, key);
      const told = server.call('patient', key, { name, stream }).then(async (response) => ({
        status: response.status,
        text: await response.text(),
      }));
      await until('the service to run', () => gate.asked);
      await right.app.reconciler.run();
      await server.app.reconciler.run();
      assert.deepEqual(
        (await callsOf(database.sql, account)).map(({ state }) => state),
        [0],
        'its time is not over',
      );
      gate.open();
      const { status, text } = await told;
      assert.equal(status, 200, text);
      assert.match(text, /All of it\./);
      assert.doesNotMatch(text, /TOOK_TOO_LONG/);
      assert.equal(GRANTED - (await balanceOf(database.sql, account)), PRICE);
      await assertBooksClosed(database.sql);
      await stop();
    });
  }
}

test('the process itself keeps the time of the database, says so, and steps aside for one whose clock is right', async (t) => {
  const shared = { DATABASE_URL: database.url, LOG_LEVEL: 'warn' };
  const preload = `const real = Date.now; const Real = Date;
    globalThis.Date = class extends Real {
      constructor(...args) { args.length === 0 ? super(real() - 120000) : super(...args); }
      static now() { return real() - 120000; }
    };`;
  const slow = await startServerProcess({
    ...shared,
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(preload)}`,
  });
  t.after(() => slow.end('SIGKILL'));
  const ready = async ({ url }: ServerProcess) => (await fetch(`${url}/health/ready`)).status;
  const aheadSeconds = async () => {
    const text = await (await fetch(`${slow.url}/metrics`)).text();
    return Number(/^farebox_clock_ahead_seconds (\S+)$/m.exec(text)?.[1] ?? Number.NaN);
  };
  await until('the time to be known', async () => Math.abs((await aheadSeconds()) + 120) < 1);
  assert.match(slow.words(), /the clock of this machine is wrong by more than a second/);
  const key = await right.key('1');
  const asked = await fetch(`${slow.url}/x402/ping`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: '{}',
  });
  assert.equal(asked.status, 200);
  const { timestamp } = await jsonOf(asked);
  assert(Math.abs(Date.parse(timestamp) - Date.now()) < 60_000, timestamp);
  // The server of this test, whose clock is right, shares the database.
  await until('it to step aside', async () => (await ready(slow)) === 503);
  const told = await jsonOf(fetch(`${slow.url}/health/ready`));
  assert.match(told.message, /clock of this machine is 120 s behind/);
});
