/**
 * A part of the tables that moves to another server of Citus while it is sold from: what was answered was charged, once, and what the
 * part's triggers do they do at its new place.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import postgres from 'postgres';
import type { Pools } from '../../../../packages/core/src/db/connection.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { keysOnBothWorkers, openSpreadDatabase, type SpreadDatabase, withoutCitus } from './citus.fixture.ts';
import { giveBackPrice, PRICE, sellShared } from './citus-money.fixture.ts';
import { accountOf, assertBooksClosed } from './money.fixture.ts';
import { assertChargedOnce, endOpenCalls, type NamedCallers, namedCallers } from './named-callers.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const BUCKETS = 16;
const CALLERS = 4;
const CALLS_EACH = 6;
const GRANT = usdToMicros('1000');

let database: SpreadDatabase;
let pools: Pools;
const servers: ServerProcess[] = [];
before(async () => {
  if (withoutCitus !== false) return;
  database = await openSpreadDatabase();
  pools = await database.spread(3);
});
after(async () => {
  await Promise.all(servers.map((server) => server.end('SIGKILL')));
  await database?.close();
});

async function start(): Promise<string> {
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    ACCOUNT_BUCKETS: String(BUCKETS),
    RECONCILE_INTERVAL_MS: '1000',
    SERVICES: 'ping',
  });
  servers.push(server);
  return server.url;
}

/** Moves the part that has a bucket, with all tables that lie beside it, to the other worker. @returns where it is */
async function move(bucket: number): Promise<string> {
  const [place] = await database.sql<{ shard: bigint; host: string; port: number }[]>`
    select p.shardid as shard, n.nodename as host, n.nodeport as port from pg_dist_placement p join pg_dist_node n using (groupid)
    where p.shardid = get_shard_id_for_distribution_column('ledger_accounts', ${bucket}::smallint)`;
  assert(place !== undefined);
  const [other] = await database.sql<{ host: string; port: number }[]>`
    select nodename as host, nodeport as port from pg_dist_node
    where groupid <> 0 and (nodename, nodeport) <> (${place.host}, ${place.port})`;
  assert(other !== undefined);
  // As an operator does it, by a session that is none of the shop's.
  const session = postgres(database.url, { max: 1, onnotice: () => {} });
  await session`
    select citus_move_shard_placement(${String(place.shard)}::bigint, ${place.host}, ${place.port}, ${other.host}, ${other.port}, 'block_writes')`.finally(
    () => session.end({ timeout: 1 }),
  );
  return `${other.host}:${other.port}`;
}

test('two replicas sell while the part of a key moves to the other worker and back', {
  skip: withoutCitus,
}, async (t) => {
  const urls = [await start(), await start()];
  const keys = await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT });
  const sellers = new Map<string, NamedCallers[]>(
    keys.map((key) => [key, urls.map((url) => namedCallers(url, key))]),
  );
  const all = [...sellers.values()].flat();
  let isOver = false;
  const buying = Promise.all(all.map((callers) => callers.buyAtOnce(CALLERS, CALLS_EACH, () => isOver)));
  const sellMore = async () => {
    const before = Math.max(...all.map(({ sold }) => sold.length));
    await until('each to sell more', () => all.every(({ sold }) => sold.length >= before + CALLERS));
  };
  const account = await accountOf(database.sql, keys[0] ?? '');
  const [row] = await database.sql<{ bucket: number }[]>`
    select bucket from ledger_accounts where id = ${String(account)}`;
  assert(row !== undefined);
  await sellMore();
  for (const way of ['there', 'back']) {
    for (const callers of all) callers.takeLongestGapMs();
    const startedMs = performance.now();
    const place = await move(row.bucket);
    const tookMs = performance.now() - startedMs;
    await sellMore();
    const gapMs = Math.max(...all.map((each) => each.takeLongestGapMs()));
    const refused = all.flatMap((each) =>
      [...each.takeRefusals()].map(([code, count]) => `${count} × ${code}`),
    );
    t.diagnostic(
      `moved ${way}, to ${place}, in ${Math.round(tookMs)} ms; the longest time between two answers was ${Math.round(gapMs)} ms; refused: ${refused.join(', ') || 'none'}`,
    );
  }
  isOver = true;
  await buying;
  await endOpenCalls(database.sql);
  for (const [key, callers] of sellers)
    await assertChargedOnce(database.sql, {
      key,
      sold: callers.flatMap(({ sold }) => sold),
      grantedMicros: GRANT,
    });
  await doesWhatTriggersDo({ id: account, bucket: row.bucket }, await accountOf(database.sql, keys[1] ?? ''));
  await assertBooksClosed(database.sql);
});

/** A share that is set aside with its call, and taken back with the price once the coordinator has heard of that. */
async function doesWhatTriggersDo(
  customer: { id: bigint; bucket: number },
  beneficiary: bigint,
): Promise<void> {
  const callId = await sellShared(pools, customer, { beneficiary, micros: PRICE / 5n });
  const ledger = createLedger(pools, Date.now, { accountBuckets: BUCKETS });
  const stateOf = async () => {
    const [share] = await database.sql<{ state: number }[]>`
      select state from call_shares where bucket = ${customer.bucket} and call_id = ${callId}`;
    return share?.state;
  };
  assert.equal(await stateOf(), 1, 'it was set aside');
  await giveBackPrice(ledger, customer.id, callId);
  await until('the share to be taken back', async () => (await stateOf()) === 2);
}
