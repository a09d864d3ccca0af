/**
 * Root buyers: the account or the wallet that bought the first of the keys of which each was bought with the credit of the
 * one before. Bounds are counted by it and not by account, since one US dollar can buy any number of accounts in a row.
 */
import type { PendingQuery, Row } from 'postgres';
import type { Database, Transaction } from '../db/connection.ts';
import { bucketOfAccount } from '../ledger/buckets.ts';

/** The buyer by whom an account's bounds are counted. */
export interface RootBuyer {
  /** `account:1015`, or `wallet:0x…`. Two accounts of the same name share their bounds. */
  name: string;
  /** Whether other accounts may have the same name; false where an operator has lifted the bounds. */
  isShared: boolean;
}

/** The root buyer whose bounds hold for an account, by one indexed read. */
export async function rootBuyerOf(on: Database | Transaction, accountId: bigint): Promise<RootBuyer> {
  const own = nameOfAccount(accountId);
  const [row] = await on<{ name: string; lifted: boolean }[]>`
    select r.name, exists (select 1 from lifted_bounds l where l.root_buyer = r.name) as lifted
    from (select coalesce((select root_buyer from root_buyers where account_id = ${String(accountId)}), ${own}) as name) r`;
  if (row === undefined) throw new Error('the database returned no root buyer');
  return row.lifted ? { name: own, isShared: false } : { name: row.name, isShared: true };
}

/**
 * Lets each account of an account's root buyer be counted by itself, as for somebody who sells keys on.
 *
 * @param at now, in ISO 8601
 * @returns whether that is new
 */
export async function liftBounds(transaction: Transaction, accountId: bigint, at: string): Promise<boolean> {
  const rows = await transaction`
    insert into lifted_bounds (root_buyer, lifted_at)
    select coalesce((select root_buyer from root_buyers where account_id = ${String(accountId)}), ${nameOfAccount(accountId)}), ${at}::timestamptz
    on conflict do nothing returning 1`;
  return rows.length === 1;
}

/**
 * Holds a root buyer's bound until the transaction ends, so that of two at once the second counts the first.
 *
 * @param bound what is counted, such as `webhooks`
 */
export async function holdBound(
  transaction: Transaction,
  rootBuyer: RootBuyer,
  bound: string,
): Promise<void> {
  await transaction`select pg_advisory_xact_lock(8405, hashtext(${`${bound} of ${rootBuyer.name}`}))`;
}

/** A query for the accounts that share an account's bounds, itself among them. */
export function accountsBoundWith(
  on: Database | Transaction,
  accountId: bigint,
  { name, isShared }: RootBuyer,
): PendingQuery<Row[]> {
  const own = on`select ${String(accountId)}::bigint as account_id`;
  if (!isShared) return own;
  const root = accountNamed(name);
  return on`
    ${own} union select account_id from root_buyers where root_buyer = ${name}
    ${root === null ? on`` : on`union select ${String(root)}::bigint`}`;
}

/** Records who an account's root buyer is, in the commit that opens the account. */
export async function recordRootBuyer(
  transaction: Transaction,
  accountId: bigint,
  buyer: { accountId: bigint } | { wallet: string },
): Promise<void> {
  const first =
    'wallet' in buyer
      ? transaction`${nameOfWallet(buyer.wallet)}::text`
      : transaction`coalesce((select root_buyer from root_buyers where account_id = ${String(buyer.accountId)}),
                             ${nameOfAccount(buyer.accountId)})`;
  await transaction`
    insert into root_buyers (account_id, root_buyer) select ${String(accountId)}::bigint, ${first}`;
}

/** The bucket that a buyer's accounts lie in, for another one of it; null: it has none yet. */
export async function bucketOfBuyer(
  on: Database | Transaction,
  buyer: { accountId: bigint } | { wallet: string },
): Promise<number | null> {
  if ('accountId' in buyer) return bucketOfAccount(on, buyer.accountId);
  const [row] = await on<{ bucket: number }[]>`
    select a.bucket from root_buyers r join ledger_accounts a on a.id = r.account_id
    where r.root_buyer = ${nameOfWallet(buyer.wallet)} order by r.account_id limit 1`;
  return row?.bucket ?? null;
}

function nameOfAccount(accountId: bigint): string {
  return `account:${accountId}`;
}

function accountNamed(name: string): bigint | null {
  const [, number] = /^account:(\d+)$/.exec(name) ?? [];
  return number === undefined ? null : BigInt(number);
}

/** The name of a wallet as a root buyer. Hex is the same in either case; base58 is not. */
export function nameOfWallet(address: string): string {
  return `wallet:${address.startsWith('0x') ? address.toLowerCase() : address}`;
}
