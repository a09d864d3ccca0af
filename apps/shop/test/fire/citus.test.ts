/**
 * The shop on a database that Citus spreads over a coordinator and two workers: calls are sold for credits and for payments on a chain,
 * a worker is killed under load, and what was answered was charged, once.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { connectPools, endPools } from '../../../../packages/core/src/db/connection.ts';
import { openGrants } from '../../../../packages/core/src/keys/grant.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { type PaymentWorld, paymentHeader, signPayment, startPaymentWorld } from '../x402.fixture.ts';
import { openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';
import { assertBooksClosed } from './money.fixture.ts';
import { assertChargedOnce, endOpenCalls, type NamedCallers, namedCallers } from './named-callers.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const BUCKETS = 16;
const CALLERS = 4;
const CALLS_EACH = 6;
const GRANT = usdToMicros('1000');

if (withoutCitus !== false)
  process.stdout.write(`Left out: a database that Citus spreads, because ${withoutCitus}\n`);

let database: SpreadDatabase;
let world: PaymentWorld;
const servers: ServerProcess[] = [];
before(async () => {
  if (withoutCitus !== false) return;
  [database, world] = await Promise.all([openSpreadDatabase(), startPaymentWorld()]);
});
after(async () => {
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  await Promise.all([database?.close(), world?.stop()]);
});

const start = async () => {
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    ACCOUNT_BUCKETS: String(BUCKETS),
    RECONCILE_INTERVAL_MS: '1000',
    SERVICES: 'ping',
    ...world.environment,
  });
  servers.push(server);
  return server;
};

/** Keys whose accounts lie on both workers. */
async function keysOnBothWorkers(): Promise<string[]> {
  const pools = connectPools(database.url, 3);
  const make = openGrants(pools, Date.now, { accountBuckets: BUCKETS });
  const keys = new Map<number, string>();
  try {
    await until('accounts on both workers', async () => {
      const { apiKey } = await make({ amountMicros: GRANT, label: 'test', note: 'test' });
      const [row] = await pools.sql<{ groupid: number }[]>`
        select p.groupid from pg_dist_placement p
        where p.shardid = get_shard_id_for_distribution_column('ledger_accounts', (
          select bucket from api_keys where digest = sha256(convert_to(${apiKey}, 'UTF8'))))`;
      assert(row !== undefined);
      if (row.groupid !== 0) keys.set(row.groupid, apiKey);
      return keys.size === 2;
    });
  } finally {
    await endPools(pools, 1);
  }
  return [...keys.values()];
}

/** What was answered was charged, once, and nothing else was. */
async function assertCharged(sellers: ReadonlyMap<string, readonly NamedCallers[]>): Promise<void> {
  await endOpenCalls(database.sql);
  await database.copied(async (sql) => {
    for (const [key, callers] of sellers)
      await assertChargedOnce(sql, { key, sold: callers.flatMap((each) => each.sold), grantedMicros: GRANT });
    await assertBooksClosed(sql);
  });
}

test('the command goes on where it was killed, and finds nothing more to do', {
  skip: withoutCitus,
}, async () => {
  const killed = await database.distribute('spread call_answers');
  assert.match(killed, /spread calls over/);
  const rest = await database.distribute();
  assert.doesNotMatch(rest, /spread calls over/);
  assert.match(rest, /spread ledger_transfers over[\s\S]*The database is spread\./);
  // As a run leaves it that was killed right after it moved the house's bucket.
  await database.sql`
    select citus_set_node_property(nodename, nodeport, 'shouldhaveshards', true) from pg_dist_node where groupid = 0`;
  assert.match(await database.distribute(), /^The database is spread already\.\n$/);
  const [coordinator] = await database.sql`select shouldhaveshards from pg_dist_node where groupid = 0`;
  assert.equal(coordinator?.shouldhaveshards, false, 'customers lie on the workers alone');
});

test('calls are sold on both workers, and a payment on a chain at the coordinator', {
  skip: withoutCitus,
}, async () => {
  const { url } = await start();
  const sellers = new Map<string, NamedCallers[]>();
  for (const key of await keysOnBothWorkers()) {
    const callers = namedCallers(url, key);
    sellers.set(key, [callers]);
    await callers.buyAtOnce(CALLERS, 2, () => true);
    const name = randomUUID();
    const first = await callers.ask(name);
    const again = await callers.ask(name);
    assert.deepEqual([first.status, again.status], [200, 200]);
    assert.equal(await again.text(), await first.text());
    assert.equal(again.headers.get('x-call-id'), first.headers.get('x-call-id'));
    (callers.sold as string[]).push(first.headers.get('x-call-id') ?? '');
  }
  const pay = (header?: string) =>
    fetch(`${url}/x402/ping`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(header === undefined ? {} : { 'payment-signature': header }),
      },
      body: '{}',
    });
  const challenge = await pay();
  assert.equal(challenge.status, 402);
  const { accepts }: { accepts: { amount: string }[] } = JSON.parse(
    Buffer.from(challenge.headers.get('payment-required') ?? '', 'base64').toString(),
  );
  const valueUnits = BigInt(accepts[0]?.amount ?? 0);
  const received = await world.received();
  const payment = await signPayment(await world.wallet(), { to: world.recipient, valueUnits });
  const header = await paymentHeader(challenge, payment);
  const told: string[] = [];
  for (let time = 0; time < 2; time++)
    await until('the payer to get its answer', async () => {
      const response = await pay(header);
      const text = await response.text();
      assert.notEqual(response.status, 402, text);
      if (response.status === 200) told.push(text);
      return response.status === 200;
    });
  assert.equal(told[1], told[0], 'the same payment got another answer');
  assert.equal((await world.received()) - received, valueUnits, 'USDC moved');
  await assertCharged(sellers);
});

test('two replicas sell while a worker is killed and comes back', { skip: withoutCitus }, async (t) => {
  const urls = [servers[0]?.url ?? '', (await start()).url];
  const sellers = new Map(
    (await keysOnBothWorkers()).map((key) => [key, urls.map((url) => namedCallers(url, key))] as const),
  );
  const all = [...sellers.values()].flat();
  const soldBy = (count: number) => all.every(({ sold }) => sold.length >= count);
  let isOver = false;
  const buying = Promise.all(all.map((callers) => callers.buyAtOnce(CALLERS, CALLS_EACH, () => isOver)));
  await until('each to have sold', () => soldBy(CALLERS));
  const [worker] = database.workers;
  assert(worker !== undefined);
  worker.kill();
  await worker.start();
  const before = Math.max(...all.map(({ sold }) => sold.length));
  await until('each to sell again', () => soldBy(before + CALLERS));
  isOver = true;
  await buying;
  t.diagnostic(
    `the longest time between two answers was ${Math.round(Math.max(...all.map((each) => each.takeLongestGapMs())))} ms`,
  );
  await assertCharged(sellers);
});
