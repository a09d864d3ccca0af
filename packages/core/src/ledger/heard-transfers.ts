/**
 * Transfers that the coordinator of a spread database has to hear of, such as a price that is given back: it ends what was told of the
 * account, its trial and the key that was bought with it. The transfer lies on a worker, and these tables on the coordinator; no commit is of
 * both. So the worker notes the transfer in its own commit (`ledger_transfer_is_noted.spread.v1.sql`), and this job goes two steps: it writes
 * the transfer into the table of what was heard, whose triggers do what is to be done, and only then strikes the note. A process that dies in
 * between finds the note again, and the transfer heard.
 */
import type { Database, Pools } from '../db/connection.ts';
import type { BucketTurns } from './bucket-turns.ts';
import { commitAsOne } from './one-commit.ts';

/** A transfer by its key, as a server has noted it. */
interface Noted {
  bucket: number;
  account_id: bigint;
  id: string;
  phase: number;
}

/** How long a transfer is known to have been heard, at least, once its note is struck. */
const FORGOTTEN_AFTER = '1 minute';

/**
 * Hears of all transfers that are noted, so many of a bucket at a time. Does nothing on one PostgreSQL. It may run in several processes.
 *
 * @returns how many were heard
 * @throws the first failure, after the others had their turn
 */
export async function hearTransfers(
  { sql, distribution }: Pick<Pools, 'sql' | 'distribution'>,
  { turns, atOnce, stopping }: { turns: BucketTurns; atOnce: number; stopping?: AbortSignal | undefined },
): Promise<number> {
  if (!distribution.isDistributed) return 0;
  let heard = 0;
  const failures: unknown[] = [];
  const lasts = new Map<number | null, Noted>();
  const hearPage = async (bucket: number | null) => {
    const noted = await notesOf(sql, bucket, { after: lasts.get(bucket), atOnce });
    for (const each of noted) {
      if (stopping?.aborted === true) break;
      lasts.set(bucket, each);
      try {
        if (!(await hear(sql, each))) continue;
        await strike(sql, each);
        heard += 1;
      } catch (error) {
        // Those behind it are heard all the same, and it is tried again in the next round.
        failures.push(error);
      }
    }
    return noted.length;
  };
  await turns.each(atOnce, hearPage, stopping).catch((error: unknown) => void failures.push(error));
  await forget(sql, atOnce);
  if (failures.length > 0) throw failures[0];
  return heard;
}

/** The notes of a bucket in the order of their keys, behind one of them. */
function notesOf(
  sql: Database,
  bucket: number | null,
  { after, atOnce }: { after: Noted | undefined; atOnce: number },
): Promise<Noted[]> {
  const behind =
    after === undefined
      ? sql``
      : sql`and (account_id, id, phase) > (${String(after.account_id)}::bigint, ${after.id}::uuid, ${after.phase}::smallint)`;
  return sql<Noted[]>`
    select bucket, account_id, id, phase from ledger_outbox where bucket = ${bucket} ${behind}
    order by account_id, id, phase limit ${atOnce}`;
}

/** @returns false when another process is at it, or has done it */
function hear(sql: Database, { bucket, account_id, id, phase }: Noted): Promise<boolean> {
  return sql.begin(async (transaction) => {
    await commitAsOne(transaction, { isDistributed: true });
    // Whoever hears of a transfer holds its note: no other can have struck it meanwhile, and forgotten that it was heard.
    const held = await transaction`
      select 1 from ledger_outbox
      where bucket = ${bucket} and account_id = ${String(account_id)} and id = ${id} and phase = ${phase}
      for no key update skip locked`;
    if (held.length === 0) return false;
    await transaction`
      insert into ledger_transfers_heard
        (bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, note, created_at)
      select bucket, account_id, id, phase, debit_account, credit_account, amount_micros, code, note, created_at
      from ledger_transfers
      where bucket = ${bucket} and account_id = ${String(account_id)} and id = ${id} and phase = ${phase}
      on conflict do nothing`;
    return true;
  });
}

async function strike(sql: Database, { bucket, account_id, id, phase }: Noted): Promise<void> {
  await sql`
    delete from ledger_outbox
    where bucket = ${bucket} and account_id = ${String(account_id)} and id = ${id} and phase = ${phase}`;
}

/** Forgets what was heard and whose note is struck. */
async function forget(sql: Database, atOnce: number): Promise<void> {
  const old = await sql<Noted[]>`
    select bucket, account_id, id, phase from ledger_transfers_heard
    where heard_at < now() - ${FORGOTTEN_AFTER}::interval order by heard_at limit ${atOnce}`;
  for (const { bucket, account_id, id, phase } of old) {
    const [noted] = await sql`
      select 1 from ledger_outbox
      where bucket = ${bucket} and account_id = ${String(account_id)} and id = ${id} and phase = ${phase}`;
    if (noted !== undefined) continue;
    await sql`
      delete from ledger_transfers_heard
      where account_id = ${String(account_id)} and id = ${id} and phase = ${phase}`;
  }
}
