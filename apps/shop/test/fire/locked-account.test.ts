/**
 * Somebody holds a lock on an account and does nothing: a forgotten session of an operator's, a job that hangs, a
 * replica whose machine is gone. It concerns that account alone.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { z } from 'zod';
import { HOUSE_ACCOUNTS } from '../../../../packages/core/src/ledger/accounts.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { startTestChain, type TestChain } from '../chain.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { lockAccounts } from './account-lock.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, openCalls } from './money.fixture.ts';
import { until } from './until.fixture.ts';
import { setStage } from './x402-stage.fixture.ts';

const ONE_SECOND_MS = 1_000;
const TOLD_WITHIN_MS = 5_000;
const MINUTE_MS = 60_000;
const OTHERS = 4;
const CALLS_OF_EACH = 100;
const LOCKED_CALLS = 12;
const GRANTED_USD = '50';
const PRICE_MICROS = usdToMicros('0.10');

/** The work of a service while it runs. */
let during: () => Promise<void> = async () => {};
const service = defineService({
  path: 'service',
  name: 'Service',
  tag: 'Discovery',
  priceUsd: '0.10',
  summary: 'For tests.',
  input: z.object({}),
  output: z.object({ done: z.boolean() }),
  example: {},
  async run() {
    await during();
    return answer({ done: true }, { method: 'Done.' });
  },
});

let database: TestDatabase;
let server: TestServer;
let nowMs = Date.parse('2026-11-21T10:00:00Z');
const held: (() => Promise<void>)[] = [];

before(async () => {
  database = await openTestDatabase();
  server = await startTestServer({ pools: database, services: [service], nowMs: () => nowMs });
});
afterEach(async () => {
  for (const release of held.splice(0)) await release();
});
after(async () => {
  await server?.close();
  await database?.close();
});

/** Locks accounts until the returned function is called, or the test is over. */
async function lock(on: TestDatabase, accounts: readonly bigint[]): Promise<() => Promise<void>> {
  const release = await lockAccounts(on.url, accounts);
  held.push(release);
  return async () => {
    held.splice(held.indexOf(release), 1);
    await release();
  };
}

interface Told {
  status: number;
  charged: unknown;
  code: string | undefined;
  ms: number;
}

async function buy(key: string, order?: string): Promise<Told> {
  const startedAtMs = performance.now();
  const response = await server.call(
    'service',
    key,
    {},
    order === undefined ? {} : { 'idempotency-key': order },
  );
  const { status } = response;
  const { charged, code } = await jsonOf(response);
  return { status, charged, code, ms: performance.now() - startedAtMs };
}

/** Lets every reservation come to its end. */
async function rest(): Promise<void> {
  nowMs += MINUTE_MS;
  await until('no call to run', () => server.app.paidCall.running === 0);
  await until('open calls to end', async () => {
    await server.app.reconciler.run();
    return (await openCalls(database.sql)) === 0;
  });
  await assertBooksClosed(database.patient);
}

test('a locked account: the others are not delayed, its own callers hear of it, and it costs nothing', async () => {
  const others = await Promise.all(Array.from({ length: OTHERS }, () => server.key(GRANTED_USD)));
  const lockedKey = await server.key(GRANTED_USD);
  const lockedAccount = await accountOf(database.sql, lockedKey);
  for (const key of [...others, lockedKey]) assert.equal((await buy(key)).status, 200);

  const unlock = await lock(database, [lockedAccount]);
  // They come one by one while the others call, so that there is always one that waits.
  let othersCall = true;
  const own: Told[] = [];
  const ownCalls = Array.from({ length: LOCKED_CALLS }, async (_, i) => {
    do own.push(await buy(lockedKey, i % 2 === 0 ? `order-${i}-${own.length}` : undefined));
    while (othersCall);
  });
  await until('the locked account to be asked for', () => server.app.paidCall.running >= LOCKED_CALLS);
  const told = await Promise.all(
    others.map(async (key) => {
      const answers: Told[] = [];
      for (let call = 0; call < CALLS_OF_EACH; call++) answers.push(await buy(key));
      return answers;
    }),
  );
  othersCall = false;
  await Promise.all(ownCalls);

  const delays = told
    .flat()
    .map(({ ms }) => ms)
    .sort((a, b) => a - b);
  const p99 = delays[Math.floor(delays.length * 0.99)] ?? Infinity;
  for (const { status, code } of told.flat()) assert.equal(status, 200, code);
  assert(p99 < ONE_SECOND_MS, `others waited ${p99} ms at p99`);
  for (const { status, charged, ms, code } of own) {
    assert.equal(status, 503, code);
    assert.notEqual(charged, true, code);
    assert(ms < TOLD_WITHIN_MS, `told after ${ms} ms`);
  }

  await unlock();
  await rest();
  assert.equal(await balanceOf(database.sql, lockedAccount), usdToMicros(GRANTED_USD) - PRICE_MICROS);
  assert.equal((await buy(lockedKey)).status, 200);
  for (const key of others) {
    const spent = BigInt(CALLS_OF_EACH + 1) * PRICE_MICROS;
    assert.equal(
      await balanceOf(database.sql, await accountOf(database.sql, key)),
      usdToMicros(GRANTED_USD) - spent,
    );
  }
});

test('an account that is locked while its service runs: told in time, and truly', async () => {
  const key = await server.key(GRANTED_USD);
  const account = await accountOf(database.sql, key);
  const unlock = Promise.withResolvers<() => Promise<void>>();
  let lockedAtMs = 0;
  during = async () => {
    unlock.resolve(await lock(database, [account]));
    lockedAtMs = performance.now();
  };
  const { status, charged, code } = await buy(key);
  during = async () => {};
  assert.equal(status, 503, code);
  assert.equal(charged, null, 'nobody knows yet what becomes of it');
  assert(performance.now() - lockedAtMs < TOLD_WITHIN_MS, 'told too late');
  await (await unlock.promise)();
  await rest();
  // Nobody can ask for this answer again.
  assert.equal(await balanceOf(database.sql, account), usdToMicros(GRANTED_USD));
});

test('locks on the accounts of the house hold up no payment from a chain', async () => {
  const chain: TestChain = await startTestChain();
  const stage = await setStage({ chain, settledBy: 'facilitator' });
  try {
    const payer = await stage.wallet();
    const first = await stage.present(await stage.payment(payer));
    assert.equal(first.text, '200');
    const { chain_clearing, revenue_x402, revenue_mpp } = HOUSE_ACCOUNTS;
    const unlock = await lock(stage.database, [chain_clearing, revenue_x402, revenue_mpp]);
    const header = await stage.payment(payer);
    const startedAtMs = performance.now();
    const told = await stage.present(header);
    assert.equal(told.text, '200', told.body);
    assert(performance.now() - startedAtMs < TOLD_WITHIN_MS, 'it waited');
    await unlock();
    await stage.assertBooksBalance();
  } finally {
    await stage.close();
    await chain.stop();
  }
});
