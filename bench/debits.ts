/** (c) the ledger alone, against the usual first implementation: one transaction for each debit. */
import { join } from 'node:path';
import { DECLARED } from '../apps/shop/src/app.ts';
import { connectDatabase } from '../packages/core/src/db/connection.ts';
import { migrate } from '../packages/core/src/db/migrate.ts';
import { booksOf } from '../packages/core/src/declared.ts';
import { proveBooks } from '../packages/core/src/ledger/books.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { order, startProgram } from './answering-process.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

export interface DebitsOrder {
  /** Debits are spread over this many of the accounts; 1: all on one. */
  accounts: number;
  /** Debits in progress at any time. */
  concurrency: number;
  durationMs: number;
}

export interface DebitsResult {
  perSecond: number;
  p99Ms: number;
}

/** Connections of each side, in total. */
export const MAX_CONNECTIONS = 10;
/** The first customer's account; the others follow without a gap. */
const FIRST_ACCOUNT = 1_000_000;
const ACCOUNTS = 10_000;

const CONCURRENCIES = [1, 32, 256];
const GOAL = { concurrency: 256, atLeast: 10 };

/** The opponent's tables: the same columns and keys as ours, without what two-phase transfers need. */
const OPPONENT_SCHEMA = `
  create schema bench_opponent;
  create table bench_opponent.accounts (
    id bigint primary key,
    debits_posted bigint not null default 0,
    credits_posted bigint not null default 0,
    check (debits_posted <= credits_posted)
  ) with (fillfactor = 50);
  create table bench_opponent.transfers (
    account_id bigint not null,
    id uuid not null,
    debit_account bigint not null,
    credit_account bigint not null,
    amount_micros bigint not null check (amount_micros > 0),
    code text not null,
    created_at timestamptz not null,
    primary key (account_id, id)
  );
  create index on bench_opponent.transfers using brin (created_at);
  insert into bench_opponent.accounts (id, credits_posted) select id, credits_posted from ledger_accounts where not house;
`;

/** Customers with credit, and the grants it came from. */
const CUSTOMERS = `
  insert into ledger_accounts (id, house, credits_posted)
    select ${FIRST_ACCOUNT} + n, false, 1000000000000 from generate_series(0, ${ACCOUNTS - 1}) n;
  insert into ledger_transfers (account_id, id, phase, debit_account, credit_account, amount_micros, code, created_at)
    select id, gen_random_uuid(), 1, 4, id, credits_posted, 'operator_grant', now()
    from ledger_accounts where not house;
`;

export async function measureDebits(
  resources: Resources,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const embedded = await startEmbeddedPostgres(resources.folder());
  resources.defer(() => embedded.stop());
  const admin = connectDatabase(embedded.url, 1);
  resources.defer(() => admin.end({ timeout: 5 }));
  await migrate(admin);
  await admin.unsafe(CUSTOMERS);
  await admin.unsafe(OPPONENT_SCHEMA);
  await admin.unsafe('vacuum analyze');

  const start = async (side: 'ledger' | 'opponent') =>
    await startProgram(resources, join(import.meta.dirname, `debits-${side}-program.ts`), {
      environment: { ...process.env, BENCH_DATABASE_URL: embedded.url },
    });
  const ours = await start('ledger');
  const opponent = await start('opponent');
  const debit = (side: typeof ours, command: DebitsOrder) =>
    order<DebitsOrder, DebitsResult>(side.child, command);

  const lines: ComparedLine[] = [];
  for (const side of [ours, opponent])
    await debit(side, { accounts: ACCOUNTS, concurrency: 256, durationMs: plan.warmUpMs });
  for (const accounts of [1, ACCOUNTS]) {
    for (const concurrency of CONCURRENCIES) {
      const command = { accounts, concurrency, durationMs: plan.roundMs };
      const found = await alternate(
        plan.rounds,
        () => debit(ours, command),
        () => debit(opponent, command),
      );
      const measured = `${accounts === 1 ? 'one account' : `${accounts.toLocaleString('en')} accounts`}, ${concurrency} at once`;
      const compared = (pick: keyof DebitsResult) =>
        compare(
          found.ours.map((result) => result[pick]),
          found.opponent.map((result) => result[pick]),
        );
      lines.push(
        {
          part: 'c',
          measured,
          unit: 'debits/s',
          ...compared('perSecond'),
          goal: concurrency === GOAL.concurrency ? { atLeast: GOAL.atLeast } : null,
        },
        { part: 'c', measured: `${measured}, p99`, unit: 'ms', ...compared('p99Ms'), goal: null },
      );
    }
  }
  await Promise.all([ours.stop(), opponent.stop()]);

  const books = await proveBooks(admin, booksOf(DECLARED));
  const [wrong] = await admin`
    select a.id from bench_opponent.accounts a left join bench_opponent.transfers t on t.account_id = a.id
    group by a.id having a.debits_posted <> coalesce(sum(t.amount_micros), 0) limit 1`;
  if (!books.balanced || wrong !== undefined) throw new Error('the books do not balance after (c)');
  return { lines, notes: [`(c) ${books.transfers.toLocaleString('en')} transfers: both books balance`] };
}

/** Keeps this many debits in progress for this long. */
export async function runDebits(
  command: DebitsOrder,
  debit: (accountId: bigint) => Promise<void>,
): Promise<DebitsResult> {
  const durationsMs: number[] = [];
  const startedAtMs = performance.now();
  const endAtMs = startedAtMs + command.durationMs;
  let next = 0;
  await Promise.all(
    Array.from({ length: command.concurrency }, async () => {
      for (let atMs = performance.now(); atMs < endAtMs; atMs = performance.now()) {
        // A step without a common factor with the number of accounts visits all of them, but not in order.
        next = (next + 7_919) % command.accounts;
        await debit(BigInt(FIRST_ACCOUNT + next));
        durationsMs.push(performance.now() - atMs);
      }
    }),
  );
  const seconds = (performance.now() - startedAtMs) / 1_000;
  durationsMs.sort((a, b) => a - b);
  return {
    perSecond: durationsMs.length / seconds,
    p99Ms: durationsMs[Math.ceil(durationsMs.length * 0.99) - 1] ?? Number.NaN,
  };
}
