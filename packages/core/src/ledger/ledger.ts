import { randomInt } from 'node:crypto';
import { arrayLiteral } from '../db/array-literal.ts';
import {
  COMMIT_CONNECTIONS,
  type Database,
  isRefusal,
  type Pools,
  type Transaction,
} from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';
import { sqlFunctionFragment } from '../db/functions.ts';
import { fragment, type SqlFragment, templateOf } from '../db/sql-fragment.ts';
import { HOUSE_ACCOUNTS, type HouseAccount, isHouseAccount } from './accounts.ts';
import {
  type AccountBuckets,
  bucketNow,
  bucketOfAccount,
  createAccountBuckets,
  HOUSE_BUCKET,
  keepPlaces,
  whereItIs,
} from './buckets.ts';
import { GroupCommit, NotBegun } from './group-commit.ts';
import { commitAsOne } from './one-commit.ts';

const LEDGER_APPLY = sqlFunctionFragment('ledger_apply');
const LEDGER_APPLY_PLANNED = sqlFunctionFragment('ledger_apply_planned');

export type TransferPhase = 'posted' | 'pending' | 'post' | 'void';
const PHASES: Record<TransferPhase, number> = { posted: 1, pending: 2, post: 3, void: 4 };

/** Why money moved. Stands in every transfer; `npm run books` knows what each must be matched by. */
export type TransferCode =
  | 'call'
  | 'call_refund'
  | 'onchain_refund'
  | 'settlement_lost'
  | 'usdc_topup'
  | 'usdc_topup_lost'
  | 'sold_key'
  | 'sold_key_trial'
  | 'sold_key_undone'
  | 'key_reversal'
  | 'key_reversal_undone'
  | 'trial_grant'
  | 'trial_expiry'
  | 'operator_grant'
  | 'operator_refund'
  | 'card_payment'
  | 'card_bonus'
  | 'card_reversal'
  | 'card_reversal_undone'
  | 'card_loss'
  | 'card_loss_undone'
  | 'debt_paid'
  | 'share'
  | 'share_back'
  | 'share_reversed'
  | 'share_restored'
  | 'share_payout';

export interface Transfer {
  /** The transfer's id. The same id again is the same transfer: done once, answered twice. */
  id: string;
  /** The customer's account: whose limit is at stake. */
  accountId: bigint;
  phase: TransferPhase;
  /** `debit` takes from the customer, `credit` gives. The other side is the house account. */
  side: 'debit' | 'credit';
  house: HouseAccount;
  /** Above zero. A post or void repeats the amount of the pending transfer. */
  amountMicros: bigint;
  code: TransferCode;
  /** Who did it and why, for transfers that a person ordered. At most 500 characters. */
  note?: string;
}

export type TransferStatus =
  | 'done'
  | 'insufficient'
  | 'above_ceiling'
  | 'id_taken'
  | 'no_such_pending'
  | 'resolved_otherwise';
const STATUSES: readonly Applying['status'][] = [
  'done',
  'insufficient',
  'above_ceiling',
  'id_taken',
  'no_such_pending',
  'resolved_otherwise',
  'locked',
  'elsewhere',
];

export interface TransferResult {
  status: TransferStatus;
  /** The customer's available balance after the transfer, in micro-USD. */
  availableMicros: bigint;
}

export interface Balance {
  /** Granted and bought, minus spent. */
  balanceMicros: bigint;
  /** Reserved by calls that are running. */
  reservedMicros: bigint;
  /** The balance that a new call can reserve. */
  availableMicros: bigint;
  /** Everything ever taken from the account. */
  spentMicros: bigint;
}

export interface Ledger {
  /**
   * Opens a customer's account within a transaction.
   *
   * @param bucket that of whoever buys it; not given, or null: any of those that new accounts are spread over
   * @returns its id
   */
  openAccount(transaction: Transaction, bucket?: number | null): Promise<bigint>;
  /** The bucket for an account that is opened later, such as that of a key which is handed out before it is paid for. */
  newBucket(): number;
  /**
   * Moves money, in one commit with the transfers of other requests. Together with `transferWithin` the only way,
   * but for paid calls, whose transfers travel with their calls (see `paid-call/inside/call-batch.ts`).
   *
   * @throws QueueFull or NotBegun, when nothing was done; any other error when that is not known
   */
  transfer(transfer: Transfer): Promise<TransferResult>;
  /** Moves money in the commit of something else, such as the key that it buys. */
  transferWithin(transaction: Transaction, transfer: Transfer): Promise<TransferResult>;
  balance(accountId: bigint): Promise<Balance>;
  /**
   * Locks accounts within a transaction, in the one order in which everybody locks them.
   *
   * @returns what each can spend, in micro-USD, until the transaction ends
   */
  lock(transaction: Transaction, accountIds: readonly bigint[]): Promise<ReadonlyMap<bigint, bigint>>;
}

/**
 * A result from the database. A transfer on a locked account is tried again, and one whose account is in another bucket goes there; callers
 * never see `locked` or `elsewhere`.
 */
interface Applying {
  status: TransferStatus | 'locked' | 'elsewhere';
  availableMicros: bigint;
}

/** A transfer with the bucket of its account. */
interface PlacedTransfer {
  transfer: Transfer;
  bucket: number;
}

/** Finds the bucket of a transfer's account. One that is not there has none: the database says so when it is asked for it. */
async function placed(
  buckets: AccountBuckets,
  on: Database | Transaction,
  transfer: Transfer,
): Promise<PlacedTransfer> {
  const known = await buckets.of(on, [transfer.accountId]);
  return { transfer, bucket: known.get(transfer.accountId) ?? HOUSE_BUCKET };
}

async function openAccount(
  transaction: Transaction,
  bucket: number,
  distribution: DistributionNote,
): Promise<bigint> {
  await commitAsOne(transaction, distribution);
  const [row] = await transaction<{ id: bigint }[]>`
    insert into ledger_accounts (id, house, bucket) values (nextval('ledger_account_ids'), false, ${bucket}) returning id`;
  if (row === undefined) throw new Error('the database returned no account');
  return row.id;
}

/** Locks accounts in order of id. Where the database is spread, a statement that locks is of one bucket. */
async function lockAccounts(
  transaction: Transaction,
  accountIds: readonly bigint[],
  { buckets, distribution }: { buckets: AccountBuckets; distribution: DistributionNote },
): Promise<ReadonlyMap<bigint, bigint>> {
  const within = async (where: ReturnType<Transaction>) => {
    const rows = await transaction<{ id: bigint; available: bigint }[]>`
      select id, credits_posted - debits_posted - debits_pending as available from ledger_accounts
      where ${where} order by id for no key update`;
    return rows.map(({ id, available }) => [id, available] as const);
  };
  if (!distribution.isDistributed)
    return new Map(await within(transaction`id = any(${arrayLiteral(accountIds)}::text::bigint[])`));
  // Whoever holds accounts changes something of theirs, on their servers and on the coordinator.
  await commitAsOne(transaction, distribution);
  const places = await buckets.of(transaction, accountIds);
  const locked: (readonly [bigint, bigint])[] = [];
  for (const id of [...new Set(accountIds)].sort((a, b) => (a < b ? -1 : 1))) {
    let bucket = places.get(id);
    for (let looks = 0; looks < MOST_PLACES; looks++) {
      const found =
        bucket === undefined ? [] : await within(transaction`bucket = ${bucket} and id = ${String(id)}`);
      locked.push(...found);
      if (found.length > 0) break;
      // It was moved since it was looked for, or is not there.
      await keepPlaces(transaction, distribution);
      buckets.forget(id);
      const now = (await buckets.of(transaction, [id])).get(id);
      if (now === undefined) break;
      bucket = now;
    }
  }
  return new Map(locked);
}

/** The arguments that the two functions have in common. @param at now, in ISO 8601 */
function argumentsOf(batch: readonly PlacedTransfer[], at: string): SqlFragment {
  const column = (pick: (transfer: Transfer) => Parameters<typeof arrayLiteral>[0][number]) =>
    arrayLiteral(batch.map(({ transfer }) => pick(transfer)));
  const house = (transfer: Transfer) => HOUSE_ACCOUNTS[transfer.house];
  const anyNote = batch.some(({ transfer }) => transfer.note !== undefined);
  return fragment`
    ${String(batch[0]?.bucket ?? HOUSE_BUCKET)}::text::smallint,
    ${column((t) => t.accountId)}::text::bigint[], ${column((t) => t.id)}::text::uuid[],
    ${column((t) => PHASES[t.phase])}::text::smallint[],
    ${column((t) => (t.side === 'debit' ? t.accountId : house(t)))}::text::bigint[],
    ${column((t) => (t.side === 'debit' ? house(t) : t.accountId))}::text::bigint[],
    ${column((t) => t.amountMicros)}::text::bigint[], ${column((t) => t.code)}::text::text[],
    ${anyNote ? column((t) => t.note ?? null) : null}::text::text[], null, null,
    ${at}::timestamptz`;
}

function check(transfer: Transfer): void {
  if (transfer.amountMicros <= 0n) throw new RangeError('a transfer moves more than nothing');
  if ((transfer.note?.length ?? 0) > 500) throw new RangeError('a note has at most 500 characters');
}

/** In how many buckets an account is looked for at most that is being moved again and again. */
const MOST_PLACES = 5;
/** For how long a transfer's caller waits. */
const DEADLINE_MS = 4_000;

interface Applied {
  status: number[];
  available: bigint[];
}

/**
 * Applies transfers of one bucket.
 *
 * @param how.waits whether for an account that somebody else holds; if not, its transfers are `locked`, and the connection is
 * one of group commits, which plans as these need it
 * @param how.atMs the time that the transfers are stamped with
 */
async function apply(
  on: Database | Transaction,
  batch: readonly PlacedTransfer[],
  { waits, atMs }: { waits: boolean; atMs: number },
): Promise<Applying[]> {
  const transfers = argumentsOf(batch, new Date(atMs).toISOString());
  const statement = waits
    ? fragment`select status, available from ${LEDGER_APPLY}(${transfers})`
    : fragment`select status, available from ${LEDGER_APPLY_PLANNED}(${transfers}, false)`;
  const [applied] = await on<Applied[]>(...templateOf(statement));
  return batch.map((_, index) => {
    const status = STATUSES[applied?.status[index] ?? -1];
    if (status === undefined) throw new Error(`ledger_apply answered ${applied?.status[index]}`);
    return { status, availableMicros: applied?.available[index] ?? 0n };
  });
}

/** Does a transfer in the caller's transaction, and waits for its account: `Ledger.transferWithin`. */
async function transferWithin(
  transaction: Transaction,
  transfer: Transfer,
  how: { buckets: AccountBuckets; distribution: DistributionNote; nowMs: () => number },
): Promise<TransferResult> {
  const { buckets, distribution, nowMs } = how;
  check(transfer);
  await commitAsOne(transaction, distribution);
  const { bucket: remembered } = await placed(buckets, transaction, transfer);
  const result = await whereItIs(transfer.accountId, {
    remembered,
    async act(bucket) {
      const [applied] = await apply(transaction, [{ transfer, bucket }], { waits: true, atMs: nowMs() });
      if (applied === undefined) throw new Error('the ledger answered nothing');
      return applied;
    },
    async bucketNow() {
      buckets.forget(transfer.accountId);
      await keepPlaces(transaction, distribution);
      return bucketOfAccount(transaction, transfer.accountId);
    },
  });
  return result as TransferResult;
}

/**
 * The ledger on a database. `nowMs` stamps transfers.
 *
 * @param options.accountBuckets over how many buckets new accounts are spread; 1 unless given
 *
 * @example
 * ```ts
 * import { createLedger } from '@farebox/core/ledger/ledger';
 *
 * const books = createLedger(given.pools, given.nowMs);
 * typeof books.transfer; // 'function'
 * ```
 */
export function createLedger(
  { sql, commits: connection, distribution }: Pools,
  nowMs: () => number,
  { accountBuckets = 1 }: { accountBuckets?: number } = {},
): Ledger {
  const buckets = createAccountBuckets();
  const commits = new GroupCommit<PlacedTransfer, Applying>({
    maxBatch: 512,
    isRefusal,
    maxFlights: COMMIT_CONNECTIONS,
    maxWaiting: 20_000,
    maxAttempts: 4,
    deadlineMs: DEADLINE_MS,
    firstBackoffMs: 50,
    keysOf: ({ transfer }) => [transfer.id],
    laneOf: ({ bucket }) => bucket,
    lockOf: ({ transfer: { accountId, id } }) => (isHouseAccount(accountId) ? id : String(accountId)),
    isLocked: ({ status }) => status === 'locked',
    flush: (batch) => apply(connection, batch, { waits: false, atMs: nowMs() }),
  });

  return {
    openAccount: (transaction, bucket) =>
      openAccount(transaction, bucket ?? randomInt(accountBuckets), distribution),

    newBucket: () => randomInt(accountBuckets),

    async transfer(transfer) {
      check(transfer);
      const work = await placed(buckets, sql, transfer).catch((error: unknown) => {
        throw new NotBegun('not sent', error);
      });
      const result = await whereItIs(transfer.accountId, {
        remembered: work.bucket,
        act: (bucket) => commits.submit({ transfer, bucket }),
        bucketNow() {
          buckets.forget(transfer.accountId);
          return bucketNow(sql, transfer.accountId, distribution);
        },
      });
      return result as TransferResult;
    },

    transferWithin: (transaction, transfer) =>
      transferWithin(transaction, transfer, { buckets, distribution, nowMs }),

    lock: (transaction, accountIds) => lockAccounts(transaction, accountIds, { buckets, distribution }),

    async balance(accountId) {
      const [row] = await sql<{ dp: bigint; d: bigint; c: bigint }[]>`
        select debits_pending as dp, debits_posted as d, credits_posted as c
        from ledger_accounts where id = ${String(accountId)}`;
      if (row === undefined) throw new Error(`no account ${accountId}`);
      return {
        balanceMicros: row.c - row.d,
        reservedMicros: row.dp,
        availableMicros: row.c - row.d - row.dp,
        spentMicros: row.d,
      };
    },
  };
}
