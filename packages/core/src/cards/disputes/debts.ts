import { arrayLiteral } from '../../db/array-literal.ts';
import type { Database, Transaction } from '../../db/connection.ts';
import { FREEZE_CAUSES, type FreezeCause } from '../../keys/freezes.ts';
import type { Keys } from '../../keys/keys.ts';
import { HOUSE_ACCOUNTS } from '../../ledger/accounts.ts';
import type { BucketTurns } from '../../ledger/bucket-turns.ts';
import type { Ledger, Transfer } from '../../ledger/ledger.ts';
import { transferIdFor } from '../../ledger/transfer-id.ts';

const FREEZE: FreezeCause = 'debt';

/**
 * The debts of accounts: a payment went back, and the credit that it had bought was spent by then. As long as something is
 * owed the account's keys are frozen, and what credit comes in pays the debt first.
 */
export interface Debts {
  /**
   * Holds an account and what it owes until the transaction ends. To be called before anything else in it touches the
   * ledger.
   *
   * @returns what the account can spend, in micro-USD
   */
  hold(transaction: Transaction, accountId: bigint): Promise<bigint>;
  /** Books what could not be taken back: the house's claim grows by it. `note` says what for. */
  owe(transaction: Transaction, accountId: bigint, amountMicros: bigint, note: string): Promise<void>;
  /** Takes back at most so much of a claim, because the payment came back after all. @returns how much it was */
  waive(transaction: Transaction, accountId: bigint, amountMicros: bigint, note: string): Promise<bigint>;
  /**
   * Pays what is owed from what is available, once it is known how much of it is found on keys. To be called in the commit
   * of every new credit; `note` says of which.
   */
  collect(transaction: Transaction, accountId: bigint, note: string): Promise<void>;
  /** The debt of an account, in micro-USD. */
  owed(on: Transaction, accountId: bigint): Promise<bigint>;
  /** Lowers a debt by what was found elsewhere of the payment that went back; who calls it has booked the transfer. */
  lower(transaction: Transaction, accountId: bigint, amountMicros: bigint): Promise<void>;
  standing(accountId: bigint): Promise<Standing>;
  /** The debts of all customers together, in micro-USD. */
  total(): Promise<bigint>;
  /**
   * Collects where something became available, such as a call's reservation, so many accounts at a time until there is
   * none left, or until it is told to stop. Accounts that somebody holds are passed by.
   *
   * @returns from how many accounts
   * @throws the first failure, after the others had their turn
   */
  sweep(atOnce: number, stopping?: AbortSignal): Promise<number>;
}

/** The standing of an account: what is between it and its credit. */
export interface Standing {
  owedMicros: bigint;
  /** Credit whose payment is disputed: it comes back if the dispute is won. */
  frozenMicros: bigint;
  /** Why its keys are frozen; empty: they are not. */
  frozenFor: readonly FreezeCause[];
}

export function createDebts(
  sql: Database,
  { ledger, keys, turns, nowMs }: { ledger: Ledger; keys: Keys; turns: BucketTurns; nowMs: () => number },
): Debts {
  const now = () => new Date(nowMs()).toISOString();

  /** Changes a debt. @returns a name for the transfer that goes with the change */
  async function change(transaction: Transaction, accountId: bigint, byMicros: bigint): Promise<string> {
    const [row] = await transaction<{ owed_micros: bigint; changes: number }[]>`
      insert into account_debts (account_id, owed_micros, changes, since)
      values (${String(accountId)}, ${String(byMicros > 0n ? byMicros : 0n)}, 1, ${now()})
      on conflict (account_id) do update
      set owed_micros = account_debts.owed_micros + ${String(byMicros)}::bigint, changes = account_debts.changes + 1,
          since = case when account_debts.owed_micros = 0 then excluded.since else account_debts.since end
      returning owed_micros, changes`;
    if (row === undefined) throw new Error('the database returned no debt');
    if (row.owed_micros === 0n) await keys.thaw(transaction, accountId, FREEZE);
    else if (byMicros > 0n) await keys.freeze(transaction, accountId, FREEZE, null);
    return transferIdFor(`debt:${accountId}:${row.changes}`);
  }

  async function owedBy(on: Database | Transaction, accountId: bigint): Promise<bigint> {
    const [row] = await on<{ owed_micros: bigint }[]>`
      select owed_micros from account_debts where account_id = ${String(accountId)}`;
    return row?.owed_micros ?? 0n;
  }

  async function move(transaction: Transaction, transfer: Transfer): Promise<void> {
    const { status } = await ledger.transferWithin(transaction, transfer);
    if (status !== 'done') throw new Error(`a debt's transfer was ${status}`);
  }

  async function collect(transaction: Transaction, accountId: bigint, note: string): Promise<boolean> {
    const owedMicros = await owedBy(transaction, accountId);
    const available = (await ledger.lock(transaction, [accountId])).get(accountId) ?? 0n;
    if (available > 0n) await keys.thaw(transaction, accountId, 'reversal');
    if (owedMicros === 0n || (await isLookedFor(transaction, accountId))) return false;
    const amountMicros = available < owedMicros ? available : owedMicros;
    if (amountMicros <= 0n) return false;
    await move(transaction, {
      id: await change(transaction, accountId, -amountMicros),
      ...DEBT_PAID,
      accountId,
      amountMicros,
      note,
    });
    return true;
  }

  async function hold(transaction: Transaction, accountId: bigint): Promise<bigint> {
    const available = await ledger.lock(transaction, [HOUSE_ACCOUNTS.receivables, accountId]);
    return available.get(accountId) ?? 0n;
  }

  return {
    hold,
    owed: owedBy,
    lower: async (transaction, accountId, amountMicros) =>
      void (await change(transaction, accountId, -amountMicros)),

    standing: (accountId) => standingOf(sql, accountId),

    async owe(transaction, accountId, amountMicros, note) {
      await move(transaction, {
        id: await change(transaction, accountId, amountMicros),
        ...BETWEEN_HOUSES,
        amountMicros,
        side: 'debit',
        code: 'card_reversal',
        note,
      });
    },

    async waive(transaction, accountId, mostMicros, note) {
      const owedMicros = await owedBy(transaction, accountId);
      const amountMicros = owedMicros < mostMicros ? owedMicros : mostMicros;
      if (amountMicros === 0n) return 0n;
      await move(transaction, {
        id: await change(transaction, accountId, -amountMicros),
        ...BETWEEN_HOUSES,
        amountMicros,
        side: 'credit',
        code: 'card_reversal_undone',
        note,
      });
      return amountMicros;
    },

    collect: async (transaction, accountId, note) => void (await collect(transaction, accountId, note)),

    async total() {
      const [row] = await sql<{ owed: bigint }[]>`
        select coalesce(sum(owed_micros), 0)::bigint as owed from account_debts where owed_micros > 0`;
      return row?.owed ?? 0n;
    },

    async sweep(atOnce, stopping) {
      let collected = 0;
      await sweepDebts(sql, { turns, atOnce, stopping }, async (accountId) => {
        await sql.begin(async (transaction) => {
          await hold(transaction, accountId);
          if (await collect(transaction, accountId, `debt of account ${accountId}`)) collected += 1;
        });
      });
      return collected;
    },
  };
}

/** Goes through the accounts that owe and can spend something. @throws the first failure, after the others had their turn */
async function sweepDebts(
  sql: Database,
  { turns, atOnce, stopping }: { turns: BucketTurns; atOnce: number; stopping: AbortSignal | undefined },
  collectFrom: (accountId: bigint) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  const lasts = new Map<number | null, bigint>();
  const sweepPage = async (bucket: number | null) => {
    const last = lasts.get(bucket) ?? 0n;
    const page = await (bucket === null
      ? collectable(sql, last, atOnce)
      : collectableOf(sql, bucket, { above: last, atMost: atOnce }));
    lasts.set(bucket, page.looked.at(-1) ?? last);
    for (const accountId of page.due) {
      if (stopping?.aborted) break;
      await collectFrom(accountId).catch((error: unknown) => void failures.push(error));
    }
    return page.looked.length;
  };
  await turns.each(atOnce, sweepPage, stopping).catch((error: unknown) => void failures.push(error));
  if (failures.length > 0) throw failures[0];
}

/** The part that every payment of a debt by its account has in common. */
const DEBT_PAID = { phase: 'posted', side: 'debit', house: 'receivables', code: 'debt_paid' } as const;
/** The part that a debt has in common with its end: it moves between receivables and the card provider. */
const BETWEEN_HOUSES = {
  accountId: HOUSE_ACCOUNTS.receivables,
  phase: 'posted',
  house: 'card_clearing',
} as const;

async function standingOf(sql: Database, accountId: bigint): Promise<Standing> {
  const [row] = await sql<{ owed: bigint; frozen: bigint; causes: string | null }[]>`
    select coalesce((select owed_micros from account_debts where account_id = ${String(accountId)}), 0)::bigint as owed,
           (select coalesce(sum(disputed_micros), 0)::bigint from card_orders
            where account_id = ${String(accountId)} and disputed_micros > 0) as frozen,
           (select string_agg(cause, ',' order by cause) from account_freezes
            where account_id = ${String(accountId)}) as causes`;
  if (row === undefined) throw new Error('the database returned nothing');
  const frozenFor = FREEZE_CAUSES.filter((cause) => row.causes?.split(',').includes(cause));
  return { owedMicros: row.owed, frozenMicros: row.frozen, frozenFor };
}

/** Whether what an account owes is still looked for on keys that were bought with the payment. */
async function isLookedFor(transaction: Transaction, accountId: bigint): Promise<boolean> {
  const rows = await transaction`
    select 1 from reversal_walks w where w.account_id = ${String(accountId)} and w.take_micros > 0
      and exists (select 1 from credit_origins o where o.order_id = w.order_id and not o.ended) limit 1`;
  return rows.length > 0;
}

/** Accounts that owe, in order, and those of them that can spend something. */
interface OwingPage {
  looked: readonly bigint[];
  due: readonly bigint[];
}

/** Accounts above one that owe and can spend something, in order; but those that somebody holds. */
async function collectable(sql: Database, above: bigint, atMost: number): Promise<OwingPage> {
  const rows = await sql<{ account_id: bigint }[]>`
    select d.account_id from account_debts d join ledger_accounts a on a.id = d.account_id
    where d.owed_micros > 0 and d.account_id > ${String(above)}
      and a.credits_posted - a.debits_posted - a.debits_pending > 0
    order by d.account_id limit ${atMost} for no key update of a skip locked`;
  const due = rows.map(({ account_id }) => account_id);
  return { looked: due, due };
}

/** The same for those of one bucket, which lie on another server than the debts. */
async function collectableOf(
  sql: Database,
  bucket: number,
  { above, atMost }: { above: bigint; atMost: number },
): Promise<OwingPage> {
  const owing = await sql<{ account_id: bigint }[]>`
    select account_id from account_debts where owed_micros > 0 and account_id > ${String(above)}
    order by account_id limit ${atMost}`;
  const looked = owing.map(({ account_id }) => account_id);
  if (looked.length === 0) return { looked, due: [] };
  const able = await sql<{ id: bigint }[]>`
    select id from ledger_accounts where bucket = ${bucket} and id = any(${arrayLiteral(looked)}::text::bigint[])
      and credits_posted - debits_posted - debits_pending > 0 order by id`;
  return { looked, due: able.map(({ id }) => id) };
}
