/** (d) the paid call on a ledger full of past transfers, against the same call on an empty one. */

import { DECLARED } from '../apps/shop/src/app.ts';
import { connectDatabase } from '../packages/core/src/db/connection.ts';
import { migrate } from '../packages/core/src/db/migrate.ts';
import { booksOf } from '../packages/core/src/declared.ts';
import { proveBooks } from '../packages/core/src/ledger/books.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { makeKeys, startFarebox } from './farebox.ts';
import type { Load } from './load.ts';
import { fillWithPastTransfers } from './past-transfers.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const CONNECTIONS = 64;
/** The number of callers: enough that their rows do not all lie on one page. */
const KEYS = 200;
/** Within ten percent. */
const GOAL = { atLeast: 0.9 };

export async function measureHistory(
  resources: Resources,
  load: Load,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  async function prepare(pastTransfers: number) {
    const dataDir = resources.folder();
    const embedded = await startEmbeddedPostgres(dataDir);
    resources.defer(() => embedded.stop());
    const admin = connectDatabase(embedded.url, 1);
    resources.defer(() => admin.end({ timeout: 5 }));
    await migrate(admin);
    if (pastTransfers > 0) await fillWithPastTransfers(admin, pastTransfers);
    const apiKeys = await makeKeys(dataDir, KEYS);
    return { admin, apiKeys, url: await startFarebox(resources, dataDir) };
  }
  const full = await prepare(plan.pastTransfers);
  const empty = await prepare(0);
  const send = ({ url, apiKeys }: typeof full, durationMs: number) =>
    load.send({
      url,
      path: '/x402/ping',
      body: '{}',
      apiKeys,
      connections: CONNECTIONS,
      until: { durationMs },
      expectStatus: 200,
    });
  for (const side of [full, empty]) await send(side, plan.warmUpMs);
  const found = await alternate(
    plan.rounds,
    () => send(full, plan.roundMs),
    () => send(empty, plan.roundMs),
  );
  const compared = (pick: 'perSecond' | 'p99Ms') =>
    compare(
      found.ours.map((result) => result[pick]),
      found.opponent.map((result) => result[pick]),
    );
  const measured = `${plan.pastTransfers.toLocaleString('en')} transfers, ${CONNECTIONS} connections`;

  const books = await proveBooks(full.admin, booksOf(DECLARED));
  if (!books.balanced) {
    const findings = books.checks.flatMap(({ finding }) => finding ?? []).join('; ');
    throw new Error(`the books do not balance after (d): ${findings}`);
  }
  return {
    lines: [
      { part: 'd', measured, unit: 'requests/s', ...compared('perSecond'), goal: GOAL },
      { part: 'd', measured: `${measured}, p99`, unit: 'ms', ...compared('p99Ms'), goal: null },
    ],
    notes: [`(d) ${books.transfers.toLocaleString('en')} transfers at the end: the books balance`],
  };
}
