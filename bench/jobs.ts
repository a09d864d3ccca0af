/** (j) background jobs beside millions of past calls, against the same on an empty database. */
import { connectDatabase, connectPools, type Pools } from '../packages/core/src/db/connection.ts';
import { migrate } from '../packages/core/src/db/migrate.ts';
import { createLedger } from '../packages/core/src/ledger/ledger.ts';
import { newTransferId } from '../packages/core/src/ledger/transfer-id.ts';
import { createCallStore } from '../packages/core/src/paid-call/inside/calls.ts';
import { createReconciler } from '../packages/core/src/paid-call/inside/reconcile-calls.ts';
import { createSettlementStore } from '../packages/core/src/paid-call/inside/settlement-store.ts';
import { createUndeliveredCalls } from '../packages/core/src/paid-call/inside/undelivered.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { fillWithPastTransfers } from './past-transfers.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

/** The calls that a process left open in one round. */
const LEFT_OPEN = 2_000;
const ACCOUNTS = 200;
const FIRST_ACCOUNT = 500_000;
/** A call whose time is over as soon as it begins. */
const LEFT_CALL = {
  bucket: 0,
  keyId: null,
  rail: 'credits',
  service: 'ping',
  priceMicros: 250_000n,
  revenue: 'revenue_credits',
  ttlMs: 0,
  identity: null,
  onChainIdentity: null,
  fingerprint: null,
} as const;
/** The cost should not grow with the history. */
const GOAL = { atLeast: 0.9 };

/** A new database with this many past calls. */
async function filledDatabase(resources: Resources, pastCalls: number): Promise<Pools> {
  const embedded = await startEmbeddedPostgres(resources.folder());
  resources.defer(() => embedded.stop());
  const pools = connectPools(embedded.url, 4);
  resources.defer(() => Promise.all([pools.sql.end({ timeout: 5 }), pools.commits.end({ timeout: 5 })]));
  // The pool for requests gives up after seconds, and filling takes minutes.
  const admin = connectDatabase(embedded.url, 1);
  resources.defer(() => admin.end({ timeout: 5 }));
  await migrate(admin);
  if (pastCalls > 0) await fillWithPastTransfers(admin, pastCalls * 2);
  return pools;
}

export async function measureJobs(resources: Resources, plan: Plan): Promise<ComparedLine[]> {
  async function prepare(pastCalls: number) {
    const pools = await filledDatabase(resources, pastCalls);
    await pools.sql`
      insert into ledger_accounts (id, house, credits_posted)
      select ${FIRST_ACCOUNT} + n, false, 1000000000000 from generate_series(0, ${ACCOUNTS - 1}) n`;
    const nowMs = Date.now;
    const calls = createCallStore(pools, { nowMs, answerTtlMs: 3_600_000 });
    const reconciler = createReconciler({
      calls,
      undelivered: createUndeliveredCalls(pools.sql, nowMs),
      ledger: createLedger(pools, nowMs),
      freeCalls: { giveBack: async () => {} },
      report: () => {},
    });
    return { calls, reconciler, settlements: createSettlementStore(pools.sql, nowMs) };
  }
  type Side = Awaited<ReturnType<typeof prepare>>;

  /** @returns calls given back in a second */
  async function giveBack({ calls, reconciler }: Side): Promise<number> {
    const left = Array.from({ length: LEFT_OPEN }, (_, n) =>
      calls.begin({
        ...LEFT_CALL,
        id: newTransferId(Date.now()),
        accountId: BigInt(FIRST_ACCOUNT + (n % ACCOUNTS)),
      }),
    );
    await Promise.all(left);
    const startedAtMs = performance.now();
    const ended = await reconciler.run();
    if (ended !== LEFT_OPEN) throw new Error(`${ended} of ${LEFT_OPEN} calls were given back`);
    return (ended * 1_000) / (performance.now() - startedAtMs);
  }

  /** @returns rounds in a second in which there is nothing to do */
  async function lookAround({ calls, reconciler, settlements }: Side): Promise<number> {
    const startedAtMs = performance.now();
    let rounds = 0;
    for (; performance.now() - startedAtMs < plan.roundMs; rounds++) {
      await reconciler.run();
      await calls.reservedMicros();
      await calls.dropExpiredAnswers(1_000);
      await settlements.dueNetworks('undecided');
      await settlements.dueNetworks('watched');
      await settlements.leaseDueRefunds(1, 1_000);
    }
    return (rounds * 1_000) / (performance.now() - startedAtMs);
  }

  const lines: ComparedLine[] = [];
  const empty = await prepare(0);
  for (const pastCalls of plan.pastCalls) {
    const full = await prepare(pastCalls);
    for (const side of [full, empty]) await giveBack(side);
    for (const [what, unit, work] of [
      ['calls given back', 'calls/s', giveBack],
      ['rounds with nothing due', 'rounds/s', lookAround],
    ] as const) {
      const found = await alternate(
        plan.rounds,
        () => work(full),
        () => work(empty),
      );
      const measured = `${what}, ${pastCalls.toLocaleString('en')} past calls`;
      lines.push({ part: 'j', measured, unit, ...compare(found.ours, found.opponent), goal: GOAL });
    }
  }
  return lines;
}
