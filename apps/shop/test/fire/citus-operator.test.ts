/**
 * Pages for operators and customers on a database that Citus spreads: the same figures as of the same sales on one PostgreSQL, on every
 * page, before a job has counted them and after.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openGrants } from '../../../../packages/core/src/keys/grant.ts';
import { createBucketTurns } from '../../../../packages/core/src/ledger/bucket-turns.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { foldSales } from '../../../../packages/core/src/paid-call/inside/fold-sales.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';
import { keysOnBothWorkers, openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';
import { sellCall } from './citus-money.fixture.ts';
import {
  askOperator,
  countedIn,
  countSales,
  measure,
  openSalesStage,
  type SalesStage,
  type SoldCalls,
  sellEverything,
  shownOf,
  soldOf,
} from './citus-operator.fixture.ts';
import { endOpenCalls } from './named-callers.fixture.ts';

const BUCKETS = 16;
const GRANT = usdToMicros('1000');

let spread: SpreadDatabase;
let one: TestDatabase;
let world: PaymentWorld;
let stages: { spread: SalesStage; one: SalesStage };
let sold: { spread: SoldCalls; one: SoldCalls };
before(async () => {
  if (withoutCitus !== false) return;
  [spread, one, world] = await Promise.all([openSpreadDatabase(), openTestDatabase(), startPaymentWorld()]);
  await spread.distribute();
  const keys = await keysOnBothWorkers(spread.url, { buckets: BUCKETS, amountMicros: GRANT });
  stages = {
    spread: await openSalesStage(spread.url, { keys, buckets: BUCKETS, world }),
    one: await openSalesStage(one.url, { keys: await keysOfOne(keys), buckets: 1, world }),
  };
  sold = { spread: await sellEverything(stages.spread, world), one: await sellEverything(stages.one, world) };
});
after(async () => {
  await Promise.all([stages?.spread.close(), stages?.one.close()]);
  await Promise.all([spread?.close(), one?.close(), world?.stop()]);
});

/** Makes as many keys as there are on the cluster, which made some more until two lay on both workers. @returns those of the same two */
async function keysOfOne(keys: readonly string[]): Promise<string[]> {
  const rows = await spread.sql<{ is_one: boolean }[]>`
    select digest in (sha256(convert_to(${keys[0] ?? ''}, 'UTF8')), sha256(convert_to(${keys[1] ?? ''}, 'UTF8'))) as is_one
    from api_keys order by account_id`;
  const make = openGrants(one, Date.now);
  const made: string[] = [];
  for (const { is_one: isOne } of rows) {
    const { apiKey } = await make({ amountMicros: GRANT, label: 'test', note: 'test' });
    if (isOne) made.push(apiKey);
  }
  return made;
}

/** Holds each page of the cluster against the same one of one PostgreSQL. */
async function assertShownAlike(): Promise<void> {
  const [expected, shown] = [await shownOf(stages.one, sold.one), await shownOf(stages.spread, sold.spread)];
  for (const [path, answer] of Object.entries(expected)) assert.deepEqual(shown[path], answer, path);
  assert.deepEqual(Object.keys(shown), Object.keys(expected));
}

test(
  'every page shows the same as on one PostgreSQL, of sales that no job has counted',
  {
    skip: withoutCitus,
  },
  assertShownAlike,
);

test('every page shows the same once the jobs have counted, each call once', {
  skip: withoutCitus,
}, async () => {
  // One bucket has been counted further than the others.
  await countSales(stages.spread, stages.spread.customers[0].bucket);
  assert.deepEqual(await soldOf(stages.spread), await soldOf(stages.one));
  for (const stage of [stages.spread, stages.one]) {
    await countSales(stage);
    await measure(stage);
  }
  const counted = await countedIn(stages.spread);
  assert.deepEqual(counted, await countedIn(stages.one));
  const { open, days } = counted as { open: number; days: { refunded: bigint }[] };
  assert.deepEqual([open, days.reduce((sum, { refunded }) => sum + refunded, 0n)], [1, 2n]);
  await assertShownAlike();
  // The call that ran ends now, and counts once, whoever counts.
  for (const stage of [stages.spread, stages.one]) {
    await endOpenCalls(stage.pools.sql);
    await Promise.all([countSales(stage), countSales(stage)]);
    await countSales(stage);
  }
  const ended = await countedIn(stages.spread);
  assert.deepEqual(ended, await countedIn(stages.one));
  assert.equal((ended as { open: number }).open, 0);
  await assertShownAlike();
});

const countsOf = (bucket: number) =>
  stages.spread.pools.sql<{ complete_to: Date; marked_at: Date; calls_to: Date; is_ahead: boolean }[]>`
    select *, complete_to > now() as is_ahead from sales_folded_buckets where bucket = ${bucket}`;

test('what a server is still writing is waited for, and a mark of another server says nothing', {
  skip: withoutCitus,
}, async () => {
  const { pools, customers, server } = stages.spread;
  await server.end('SIGTERM');
  const job = foldSales(pools.sql, 2, createBucketTurns(pools));
  const { bucket } = customers[0];
  await pools.sql.begin(async (writing) => {
    await writing.unsafe('set local idle_in_transaction_session_timeout = 0');
    await writing`insert into ledger_outbox (bucket, account_id, id, phase) values (${bucket}, 0, gen_random_uuid(), 1)`;
    await job.run();
    const [marked] = await countsOf(bucket);
    await job.run();
    assert.deepEqual((await countsOf(bucket))[0]?.marked_at, marked?.marked_at);
    await writing`delete from ledger_outbox where bucket = ${bucket} and account_id = 0`;
  });
  const [before] = await countsOf(bucket);
  await job.run();
  assert((await countsOf(bucket))[0]?.marked_at.getTime() !== before?.marked_at.getTime());
  await pools.sql`
    update sales_folded_buckets set marked_on = 1, marked_xid = 0, marked_at = now() + interval '1 hour' where bucket = ${bucket}`;
  await job.run();
  assert.equal((await countsOf(bucket))[0]?.is_ahead, false);
});

test('a worker that is away keeps neither the sales of the other from being counted nor the other sections from being shown', {
  skip: withoutCitus,
}, async (t) => {
  const { pools, customers } = stages.spread;
  for (const customer of customers) await sellCall(pools, customer, async () => {});
  const callsBy = async () => {
    const rows = await pools.sql<{ calls: bigint }[]>`
      select coalesce(sum(answered), 0)::bigint as calls from unnest(${customers.map(({ id }) => String(id))}::text[]) with ordinality c (id, place)
      left join account_sales_days d on d.account_id = c.id::bigint group by place order by place`;
    return rows.map(({ calls }) => calls);
  };
  const before = await callsBy();
  // One that runs knows how many buckets there are.
  const turns = createBucketTurns(pools);
  await turns.each(1, async () => 0);
  const [worker] = spread.workers;
  assert(worker !== undefined);
  const stage = await openSalesStage(spread.url, {
    keys: customers.map(({ apiKey }) => apiKey),
    buckets: BUCKETS,
    world,
  });
  t.after(() => stage.close());
  worker.kill();
  try {
    await pools.sql`update sales_folded_buckets set complete_to = now()`;
    await assert.rejects(async () => foldSales(pools.sql, 2, turns).run());
    const more = (await callsBy()).map((calls, index) => calls - (before[index] ?? 0n));
    assert.deepEqual(more.toSorted(), [0n, 1n]);
    const overview = await askOperator(stage, 'overview');
    assert.match(overview, /^200 /);
    const { sales, unfinished, openActs, notes } = JSON.parse(overview.slice(4));
    assert.equal(sales, null);
    assert.deepEqual([unfinished.cardOrders.count, openActs], [1, []]);
    assert(notes.some((note: string) => note.startsWith('Sales: not known')));
  } finally {
    await worker.start();
  }
  await countSales(stage);
  assert.deepEqual(
    await callsBy(),
    before.map((calls) => calls + 1n),
  );
});
