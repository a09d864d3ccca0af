/** (m) the paid call against what a user would write instead: a prepaid-credits middleware of the usual kind. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { connectDatabase } from '../packages/core/src/db/connection.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { startProgram } from './answering-process.ts';
import { makeKeys, startFarebox } from './farebox.ts';
import type { Load } from './load.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const PATH = '/x402/ping';
const BODY = JSON.stringify({ message: 'hello' });
/** The keys used in turn, each with its own account: one key makes one hot row, many keys are many callers. */
const CALLERS = [1, 200];
const CONNECTIONS = [1, 64];

const SCHEMA = `
  create schema prepaid;
  create table prepaid.accounts (
    id bigint primary key generated always as identity,
    key_digest bytea not null unique,
    balance_micros bigint not null check (balance_micros >= 0)
  ) with (fillfactor = 50);
  create table prepaid.charges (
    id uuid primary key,
    account_id bigint not null references prepaid.accounts,
    service text not null,
    amount_micros bigint not null check (amount_micros > 0),
    created_at timestamptz not null
  );
`;
/** More than any run can spend. */
const BALANCE_MICROS = '1000000000000000';

export async function measurePrepaid(
  resources: Resources,
  load: Load,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const dataDir = resources.folder();
  const ours = await startFarebox(resources, dataDir);
  const apiKeys = await makeKeys(dataDir, Math.max(...CALLERS));
  const answer = await fetch(ours + PATH, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': apiKeys[0] ?? '' },
    body: BODY,
  });
  if (!answer.ok) throw new Error(`the paid call answered ${answer.status}: ${await answer.text()}`);

  // Its own database server, configured like ours.
  const embedded = await startEmbeddedPostgres(resources.folder());
  resources.defer(() => embedded.stop());
  const admin = connectDatabase(embedded.url, 1);
  resources.defer(() => admin.end({ timeout: 5 }));
  await admin.unsafe(SCHEMA);
  for (const apiKey of apiKeys) {
    await admin`
      insert into prepaid.accounts (key_digest, balance_micros)
      values (${createHash('sha256').update(apiKey).digest()}, ${BALANCE_MICROS})`;
  }
  const opponent = await startProgram<{ url: string }>(
    resources,
    join(import.meta.dirname, 'prepaid-program.ts'),
    {
      environment: {
        ...process.env,
        BENCH_ANSWER: await answer.text(),
        BENCH_DATABASE_URL: embedded.localUrl,
      },
    },
  );

  const send = (url: string, callers: number, connections: number, durationMs: number) =>
    load.send({
      url,
      path: PATH,
      body: BODY,
      apiKeys: apiKeys.slice(0, callers),
      connections,
      until: { durationMs },
      expectStatus: 200,
    });
  const lines: ComparedLine[] = [];
  for (const url of [ours, opponent.first.url]) await send(url, Math.max(...CALLERS), 64, plan.warmUpMs);
  for (const callers of CALLERS) {
    for (const connections of CONNECTIONS) {
      const found = await alternate(
        plan.rounds,
        () => send(ours, callers, connections, plan.roundMs),
        () => send(opponent.first.url, callers, connections, plan.roundMs),
      );
      const compared = (pick: 'perSecond' | 'p50Ms' | 'p99Ms') =>
        compare(
          found.ours.map((result) => result[pick]),
          found.opponent.map((result) => result[pick]),
        );
      const measured = `${callers === 1 ? 'one key' : `${callers} keys in turn`}, ${connections} connection${connections === 1 ? '' : 's'}`;
      lines.push(
        { part: 'm', measured, unit: 'requests/s', ...compared('perSecond'), goal: null },
        { part: 'm', measured: `${measured}, p50`, unit: 'ms', ...compared('p50Ms'), goal: null },
        { part: 'm', measured: `${measured}, p99`, unit: 'ms', ...compared('p99Ms'), goal: null },
      );
    }
  }
  await opponent.stop();
  const [wrong] = await admin`
    select a.id from prepaid.accounts a left join prepaid.charges c on c.account_id = a.id
    group by a.id having ${BALANCE_MICROS}::bigint - a.balance_micros <> coalesce(sum(c.amount_micros), 0) limit 1`;
  if (wrong !== undefined) throw new Error("the opponent's books do not balance after (m)");
  const [{ charges = 0n } = {}] = await admin<
    { charges: bigint }[]
  >`select count(*) as charges from prepaid.charges`;
  return {
    lines,
    notes: [`(m) the opponent charged ${charges.toLocaleString('en')} calls: its books balance`],
  };
}
