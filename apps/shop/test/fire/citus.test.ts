/**
 * The shop on a database that Citus spreads over a coordinator and two workers: calls are sold for credits and for payments on a chain,
 * a worker is killed under load, and what was answered was charged, once.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { connectDatabase } from '../../../../packages/core/src/db/connection.ts';
import { distribute } from '../../../../packages/core/src/db/distribute.ts';
import { migrate } from '../../../../packages/core/src/db/migrate.ts';
import { usdToMicros } from '../../../../packages/core/src/ledger/money.ts';
import { StartError } from '../../../../packages/process/src/start-error.ts';
import { type PaymentWorld, paymentHeader, signPayment, startPaymentWorld } from '../x402.fixture.ts';
import {
  keysOnBothWorkers,
  openSpreadDatabase,
  runBooks,
  type SpreadDatabase,
  withoutCitus,
} from './citus.fixture.ts';
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

const start = async (environment: Record<string, string> = {}) => {
  const server = await startServerProcess({
    DATABASE_URL: database.url,
    ACCOUNT_BUCKETS: String(BUCKETS),
    RECONCILE_INTERVAL_MS: '1000',
    SERVICES: 'ping',
    ...world.environment,
    ...environment,
  });
  servers.push(server);
  return server;
};

/** What was answered was charged, once, and nothing else was. */
async function assertCharged(sellers: ReadonlyMap<string, readonly NamedCallers[]>): Promise<void> {
  await endOpenCalls(database.sql);
  for (const [key, callers] of sellers)
    await assertChargedOnce(database.sql, {
      key,
      sold: callers.flatMap((each) => each.sold),
      grantedMicros: GRANT,
    });
  await assertBooksClosed(database.sql);
}

test('a cluster that is not ready, or that a server runs on, is refused in a sentence', {
  skip: withoutCitus,
}, async () => {
  const { sql, url } = database;
  await migrate(sql);
  const nodes = await sql<{ nodename: string; nodeport: number; groupid: number }[]>`
    select nodename, nodeport, groupid from pg_dist_node order by groupid`;
  const steps: string[] = [];
  const refused = (on: typeof sql, why: RegExp) =>
    assert.rejects(
      distribute(on, { shards: 4, report: (step) => steps.push(step) }),
      (error) => error instanceof StartError && why.test(error.message),
    );
  await sql`insert into replicas (started_at, seen_at) values (now(), now())`;
  await refused(sql, /a server runs on this database/);
  await sql`delete from replicas`;
  const [coordinator, worker] = nodes;
  assert(coordinator !== undefined && worker !== undefined);
  const atWorker = new URL(url);
  [atWorker.hostname, atWorker.port] = [worker.nodename, String(worker.nodeport)];
  const other = connectDatabase(String(atWorker), 1);
  await refused(other, /leads to a worker/).finally(() => other.end({ timeout: 1 }));
  for (const { nodename, nodeport } of nodes.slice(1))
    await sql`select citus_remove_node(${nodename}, ${nodeport})`;
  await refused(sql, /Citus has no workers/);
  await sql`select citus_remove_node(${coordinator.nodename}, ${coordinator.nodeport})`;
  await refused(sql, /does not know the address of its coordinator/);
  await sql`select citus_set_coordinator_host(${coordinator.nodename}, ${coordinator.nodeport})`;
  for (const { nodename, nodeport } of nodes.slice(1))
    await sql`select citus_add_node(${nodename}, ${nodeport})`;
  assert.doesNotMatch(steps.join('\n'), /spread|copy/, 'nothing was spread');
});

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
  for (const key of await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT })) {
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
  const books = await runBooks({ DATABASE_URL: database.url, ...world.environment });
  assert.match(books, /^ok {4}eip155:8453: 1 settlement, each asked of the chain$/m);
  assert.match(books, /The books balance\.\n$/);
});

test('two replicas sell while a worker is killed and comes back; one of them asks the workers themselves', {
  skip: withoutCitus,
}, async (t) => {
  const hot = await start({ DATABASE_HOT_HOSTS: database.hotHosts });
  const urls = [servers[0]?.url ?? '', hot.url];
  const sellers = new Map(
    (await keysOnBothWorkers(database.url, { buckets: BUCKETS, amountMicros: GRANT })).map(
      (key) => [key, urls.map((url) => namedCallers(url, key))] as const,
    ),
  );
  const all = [...sellers.values()].flat();
  const soldBy = (count: number) => all.every(({ sold }) => sold.length >= count);
  let isOver = false;
  const buying = Promise.all(all.map((callers) => callers.buyAtOnce(CALLERS, CALLS_EACH, () => isOver)));
  await until('each to have sold', () => soldBy(CALLERS));
  const asked = await database.sql<{ result: string }[]>`
    select result from run_command_on_workers($$
      select count(*) from pg_stat_activity
      where datname = current_database() and application_name = 'farebox' and query ~ 'calls_(begin|finish)'$$)`;
  assert(
    asked.some(({ result }) => result !== '0'),
    'no worker is asked by a server of ours',
  );
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
