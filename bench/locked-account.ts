/**
 * (l) the paid call while another session locks the account of another caller, against the same while no account is
 * locked.
 */
import { connectDatabase } from '../packages/core/src/db/connection.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { makeKeys, startFarebox } from './farebox.ts';
import type { Load } from './load.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const PATH = '/x402/ping';
const CONNECTIONS = 64;
const ORDER = { path: PATH, body: '{}', connections: CONNECTIONS, expectStatus: 200 };
const KEYS = 200;
/** Callers of the locked account. Each waits for its answer, and asks again. */
const HELD_CALLERS = 4;
/** A lock on one account must not measurably affect the others. */
const GOALS = { perSecond: { atLeast: 0.9 }, p99Ms: { below: 1.5 } } as const;

export async function measureLockedAccount(
  resources: Resources,
  load: Load,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const dataDir = resources.folder();
  const embedded = await startEmbeddedPostgres(dataDir);
  resources.defer(() => embedded.stop());
  const stranger = connectDatabase(embedded.url, 1);
  resources.defer(() => stranger.end({ timeout: 5 }));
  const url = await startFarebox(resources, dataDir);
  const [heldKey = '', ...apiKeys] = await makeKeys(dataDir, KEYS + 1);
  const told = { held: 0, sold: 0 };

  const send = (durationMs: number) => load.send({ ...ORDER, url, apiKeys, until: { durationMs } });

  async function askForHeld(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const response = await fetch(url + PATH, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': heldKey },
        body: '{}',
      });
      await response.arrayBuffer();
      if (response.ok) told.sold += 1;
      else told.held += 1;
    }
  }

  async function sendWhileHeld(durationMs: number) {
    let isOver = false;
    let callers: Promise<void>[] = [];
    const result = await stranger.begin(async (transaction) => {
      // Without this the server's own setting would end the idle transaction.
      await transaction`set local idle_in_transaction_session_timeout = 0`;
      const [account] = await transaction`
        select a.id from ledger_accounts a join api_keys k on k.account_id = a.id
        where k.digest = sha256(convert_to(${heldKey}, 'UTF8')) for no key update of a`;
      if (account === undefined) throw new Error('(l) there is no account to hold');
      callers = Array.from({ length: HELD_CALLERS }, () => askForHeld(() => isOver));
      try {
        return await send(durationMs);
      } finally {
        isOver = true;
      }
    });
    await Promise.all(callers);
    return result;
  }

  await send(plan.warmUpMs);
  const found = await alternate(
    plan.rounds,
    () => sendWhileHeld(plan.roundMs),
    () => send(plan.roundMs),
  );
  const compared = (pick: 'perSecond' | 'p99Ms') =>
    compare(
      found.ours.map((result) => result[pick]),
      found.opponent.map((result) => result[pick]),
    );
  const measured = `${CONNECTIONS} connections`;
  return {
    lines: [
      { part: 'l', measured, unit: 'requests/s', ...compared('perSecond'), goal: GOALS.perSecond },
      { part: 'l', measured: `${measured}, p99`, unit: 'ms', ...compared('p99Ms'), goal: GOALS.p99Ms },
    ],
    notes: [`(l) calls of the held account: ${told.held} were told that it is busy, ${told.sold} were sold`],
  };
}
