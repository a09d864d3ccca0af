/** The origins of the credit that keys are bought with: which part of a price was trial credit, and which a card paid. */
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import { transferIdFor } from '../ledger/transfer-id.ts';
import { leftOf, lotsOf, type Part } from './credit-lots.ts';

/** Records what a key's price is paid from, while its payer's account is held. @param parts in the order of spending */
export async function recordOrigins(
  transaction: Transaction,
  sale: { callId: string; payerAccount: bigint; priceMicros: bigint; parts: readonly Part[]; at: string },
): Promise<void> {
  const { callId, parts } = sale;
  const known = parts.reduce((sum, { micros }) => sum + micros, 0n);
  const rows = parts.map(({ lot, micros }) => ({
    payerLot: lot.id,
    orderId: lot.orderId,
    trial: lot.trialEndsAt !== null,
    micros,
  }));
  // Credit of which no inflow is known lasts, and no card paid it.
  if (known < sale.priceMicros)
    rows.push({ payerLot: '', orderId: null, trial: false, micros: sale.priceMicros - known });
  await transaction`
    insert into credit_origins (call_id, nth, lot, payer_account, payer_lot, order_id, trial, amount_micros, created_at)
    select ${callId}::uuid, x.nth, x.lot, ${String(sale.payerAccount)}::bigint, x.payer_lot, x.order_id, x.trial, x.micros,
           ${sale.at}::timestamptz
    from unnest(${arrayLiteral(rows.map((_, nth) => nth))}::text::smallint[],
                ${arrayLiteral(rows.map((_, nth) => transferIdFor(`lot:${callId}:${nth}`)))}::text::uuid[],
                ${arrayLiteral(rows.map(({ payerLot }) => (payerLot === '' ? null : payerLot)))}::text::uuid[],
                ${arrayLiteral(rows.map(({ orderId }) => orderId))}::text::uuid[],
                ${arrayLiteral(rows.map(({ trial }) => trial))}::text::boolean[],
                ${arrayLiteral(rows.map(({ micros }) => micros))}::text::bigint[])
         as x (nth, lot, payer_lot, order_id, trial, micros)`;
}

/** How much of a key's price is trial credit, in micro-USD. */
export async function trialPartOf(on: Database | Transaction, callId: string): Promise<bigint> {
  const [row] = await on<{ micros: bigint }[]>`
    select coalesce(sum(amount_micros), 0)::bigint as micros from credit_origins where call_id = ${callId} and trial`;
  return row?.micros ?? 0n;
}

/** Names the account that a key's credit is on, in the commit that grants it. */
export async function placeOrigins(
  transaction: Transaction,
  callId: string,
  accountId: bigint,
): Promise<void> {
  await transaction`update credit_origins set account_id = ${String(accountId)} where call_id = ${callId}`;
}

/** Ends the origins of a key whose price went back: its payer can spend that credit again. */
export async function endOrigins(transaction: Transaction, callId: string): Promise<void> {
  await transaction`update credit_origins set ended = true where call_id = ${callId}`;
}

/** Forgets the origins of a key that was never paid. */
export async function forgetOrigins(transaction: Transaction, callId: string): Promise<void> {
  await transaction`delete from credit_origins where call_id = ${callId}`;
}

/**
 * Finds what an account still has of the credit that a card order brought it, to be asked while it is held.
 *
 * @returns null when no key was bought with it
 */
export async function boughtWith(
  transaction: Transaction,
  order: { orderId: string; accountId: bigint; availableMicros: bigint; now: string },
): Promise<bigint | null> {
  const { orderId, accountId, availableMicros, now } = order;
  const sold = await transaction`
    select 1 from credit_origins where order_id = ${orderId} and not ended limit 1`;
  if (sold.length === 0) return null;
  const lots = await lotsOf(transaction, accountId, { since: now, now });
  const left = leftOf(lots, availableMicros);
  return lots.reduce((sum, lot, index) => sum + (lot.id === orderId ? (left[index] ?? 0n) : 0n), 0n);
}

/** Accounts of keys that were bought with a card order, newest first. @param below the last one that was seen */
export async function keysToTake(
  on: Database | Transaction,
  orderId: string,
  below: bigint | null,
  limit: number,
): Promise<bigint[]> {
  const rows = await on<{ account_id: bigint }[]>`
    select distinct account_id from credit_origins
    where order_id = ${orderId} and account_id is not null and not ended and taken_micros < amount_micros
      and ${below === null ? on`true` : on`account_id < ${String(below)}`}
    order by account_id desc limit ${limit}`;
  return rows.map(({ account_id }) => account_id);
}

/** Accounts of keys from which credit of a card order was taken, oldest first. @param above the last one that was seen */
export async function keysToGive(
  on: Database | Transaction,
  orderId: string,
  above: bigint | null,
  limit: number,
): Promise<bigint[]> {
  const rows = await on<{ account_id: bigint }[]>`
    select distinct account_id from credit_origins
    where order_id = ${orderId} and taken_micros > 0 and not ended
      and ${above === null ? on`true` : on`account_id > ${String(above)}`}
    order by account_id limit ${limit}`;
  return rows.map(({ account_id }) => account_id);
}

/** Sums the micro-USD of a card order's credit that were taken from keys. */
export async function takenOf(on: Database | Transaction, orderId: string): Promise<bigint> {
  const [row] = await on<{ micros: bigint }[]>`
    select coalesce(sum(taken_micros), 0)::bigint as micros from credit_origins
    where order_id = ${orderId} and not ended`;
  return row?.micros ?? 0n;
}

/** Notes as taken what a key has left of a card order's credit, while its account is held. @returns how much it was */
export async function takeParts(
  transaction: Transaction,
  from: { orderId: string; accountId: bigint; availableMicros: bigint; mostMicros: bigint; now: string },
): Promise<bigint> {
  const { orderId, accountId, now } = from;
  const lots = await lotsOf(transaction, accountId, { since: now, now });
  const left = leftOf(lots, from.availableMicros);
  let rest = from.mostMicros;
  for (const [index, lot] of lots.entries()) {
    const leftMicros = left[index] ?? 0n;
    const micros = leftMicros < rest ? leftMicros : rest;
    if (lot.orderId !== orderId || !lot.isFirst || micros === 0n) continue;
    await transaction`
      update credit_origins set taken_micros = taken_micros + ${String(micros)}::bigint
      where account_id = ${String(accountId)} and lot = ${lot.id}`;
    rest -= micros;
  }
  return from.mostMicros - rest;
}

/** Notes as given back what was taken from a key of a card order's credit. @returns how much it was */
export async function givePartsBack(
  transaction: Transaction,
  to: { orderId: string; accountId: bigint; mostMicros: bigint },
): Promise<bigint> {
  const taken = await transaction<{ lot: string; taken_micros: bigint }[]>`
    select lot, taken_micros from credit_origins
    where account_id = ${String(to.accountId)} and order_id = ${to.orderId} and taken_micros > 0 and not ended order by nth`;
  let rest = to.mostMicros;
  for (const { lot, taken_micros: takenMicros } of taken) {
    const micros = takenMicros < rest ? takenMicros : rest;
    await transaction`
      update credit_origins set taken_micros = taken_micros - ${String(micros)}::bigint
      where account_id = ${String(to.accountId)} and lot = ${lot}`;
    rest -= micros;
  }
  return to.mostMicros - rest;
}
