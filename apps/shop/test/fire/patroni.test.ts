/** A cluster under Patroni loses its primary, twice, in two ways, while calls are sold: nothing answered is lost, and nothing is charged twice. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connectPools, endPools } from '../../../../packages/core/src/db/connection.ts';
import { migrate } from '../../../../packages/core/src/db/migrate.ts';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { grantKey } from '../../../../packages/core/src/keys/trial.ts';
import { createLedger } from '../../../../packages/core/src/ledger/ledger.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { type NamedCallers, namedCallers } from './named-callers.fixture.ts';
import { type Member, type PatroniCluster, startPatroniCluster, withoutPatroni } from './patroni.fixture.ts';
import { type ServerProcess, startServerProcess } from './server-process.fixture.ts';
import { until } from './until.fixture.ts';

const CALLERS = 8;
const CALLS_EACH = 12;
const GRANT = usdToMicros('1000');
/** A bound of waits: a machine that does much else is many times slower. */
const REPLACED_WITHIN_MS = 120_000;

if (withoutPatroni !== false)
  process.stdout.write(`Left out: a cluster under Patroni, because ${withoutPatroni}\n`);

let cluster: PatroniCluster;
let server: ServerProcess;
let callers: NamedCallers;
before(async () => {
  if (withoutPatroni !== false) return;
  cluster = await startPatroniCluster();
  const pools = connectPools(cluster.url, 4);
  await migrate(pools.patient);
  const parts = {
    sql: pools.sql,
    keys: createKeys(pools.sql, Date.now),
    ledger: createLedger(pools, Date.now),
    nowMs: Date.now,
  };
  const { apiKey } = await grantKey(parts, { amountMicros: GRANT, label: 'test', note: 'test' });
  await endPools(pools, 1);
  server = await startServerProcess({ DATABASE_URL: cluster.url, RECONCILE_INTERVAL_MS: '100' });
  callers = namedCallers(server.url, apiKey);
});
after(async () => {
  await server?.end('SIGKILL');
  await cluster?.close();
});

/** Sells while a primary is lost, until another one has sold as well. */
async function lose(loss: (primary: Member) => void): Promise<void> {
  await cluster.whole();
  const lost = await cluster.leader();
  assert(lost !== null);
  const soldBefore = callers.sold.length;
  let soldWhenReplaced = Number.POSITIVE_INFINITY;
  const isOver = () => callers.sold.length > soldWhenReplaced + CALLERS;
  const buying = callers.buyAtOnce(CALLERS, CALLS_EACH, isOver);
  const replaced = async () => {
    const leader = await cluster.leader();
    return leader !== null && leader.name !== lost.name;
  };
  try {
    await until('calls to be sold', () => callers.sold.length > soldBefore + 2 * CALLERS);
    loss(lost);
    await until('another one to be the primary', replaced, REPLACED_WITHIN_MS);
  } finally {
    soldWhenReplaced = callers.sold.length;
    await buying;
  }
}

for (const [what, loss] of [
  ['killed', (primary: Member) => primary.killPostgres()],
  ['cut off from its network', (primary: Member) => primary.cutOff()],
] as const)
  test(`a primary that is ${what} under load`, { skip: withoutPatroni }, async (t) => {
    await lose(loss);
    t.diagnostic(`the longest time between two answers was ${Math.round(callers.takeLongestGapMs())} ms`);
    // It leads to whichever is the primary now: on a busy machine Patroni may have replaced it once more.
    const pools = connectPools(cluster.url, 2);
    try {
      await callers.assertCharged(pools.sql, GRANT);
    } finally {
      await endPools(pools, 1);
    }
  });
