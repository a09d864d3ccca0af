/**
 * The lots that an account's credit consists of: a trial's, what came with the key, then each inflow by its time. Credit is
 * spent in that order, so what is left are the last lots. A lot of which a key was bought is reduced by that key's part.
 */
import type { Database, Transaction } from '../db/connection.ts';

/** Credit that came to an account together. */
export interface Lot {
  /** The card order, the inflow's transfer, or the lot that came with the key. */
  id: string;
  /** The card order that it came from, over any number of keys; null: no card paid it. */
  orderId: string | null;
  /** The time until which it lasts, as trial credit; null: it lasts. */
  trialEndsAt: Date | null;
  /** The micro-USD that came, less what was taken back. */
  amountMicros: bigint;
  /** The micro-USD of keys that were bought with it, in all and below it since a time. */
  soldMicros: bigint;
  soldLatelyMicros: bigint;
  /** When it came. */
  at: Date;
  /** Whether the account was opened with it. */
  isFirst: boolean;
}

/** A part of a lot. */
export interface Part {
  lot: Lot;
  micros: bigint;
}

/**
 * Works out what is left of each lot, in their order.
 *
 * @param lots in the order in which they are spent
 * @param availableMicros what the account can spend
 */
export function leftOf(lots: readonly Lot[], availableMicros: bigint): bigint[] {
  const left = lots.map(() => 0n);
  let rest = availableMicros;
  for (const [back, lot] of lots.toReversed().entries()) {
    const micros = least(rest, unsoldOf(lot));
    left[lots.length - 1 - back] = micros;
    rest -= micros;
  }
  return left;
}

/**
 * Works out which parts of the lots pay for a key, once its price is reserved: what was spent last. What a key was bought with before is
 * not spent again.
 *
 * @param availableMicros what the account can spend beside the price
 * @returns in the order in which it is spent; less than the price where the lots do not tell
 */
export function spentLast(
  lots: readonly Lot[],
  { availableMicros, priceMicros }: { availableMicros: bigint; priceMicros: bigint },
): Part[] {
  const left = leftOf(lots, availableMicros);
  const parts: Part[] = [];
  let rest = priceMicros;
  for (const [back, lot] of lots.toReversed().entries()) {
    const micros = least(rest, unsoldOf(lot) - (left[lots.length - 1 - back] ?? 0n));
    if (micros > 0n) parts.unshift({ lot, micros });
    rest -= micros;
  }
  return parts;
}

interface Row {
  kind: 'trial' | 'expired' | 'sold' | 'inflow';
  id: string;
  order_id: string | null;
  micros: bigint;
  at: Date;
}

interface OriginRow {
  lot: string;
  order_id: string | null;
  trial: boolean;
  micros: bigint;
  at: Date;
}

/** The lots of an account, in the order in which they are spent. @param since of `soldLatelyMicros`, in ISO 8601 */
export async function lotsOf(
  on: Database | Transaction,
  accountId: bigint,
  { since, now }: { since: string; now: string },
): Promise<Lot[]> {
  const account = String(accountId);
  const inflows = await on<Row[]>`
    select case when name in ('trial', 'expired', 'sold') then name else 'inflow' end as kind,
           coalesce((array_agg(order_id))[1], (array_agg(id order by created_at, id))[1]) as id,
           (array_agg(order_id))[1] as order_id, sum(micros)::bigint as micros, min(created_at) as at
    from (
      select id, created_at, case when credit_account = account_id then amount_micros else -amount_micros end as micros,
             case when code in ('card_payment', 'card_bonus', 'card_reversal', 'card_reversal_undone')
                  then substring(note from '^order (.*)$')::uuid end as order_id,
             case when code in ('trial_grant', 'sold_key_trial') then 'trial'
                  when code = 'trial_expiry' then 'expired'
                  when code = 'sold_key' then 'sold'
                  when code in ('operator_grant', 'share_payout') then id::text
                  else note end as name
      from ledger_transfers
      where account_id = ${account} and code <> 'call' and phase in (1, 3)
        and code in ('card_payment', 'card_bonus', 'card_reversal', 'card_reversal_undone', 'trial_grant',
                     'sold_key_trial', 'trial_expiry', 'sold_key', 'operator_grant', 'share_payout', 'usdc_topup',
                     'usdc_topup_lost')
    ) t group by name order by min(created_at), 2`;
  const origins = await on<OriginRow[]>`
    select lot, order_id, trial, amount_micros - taken_micros as micros, created_at as at
    from credit_origins where account_id = ${account} order by nth`;
  const sales = await on<{ lot: string; sold: bigint; lately: bigint }[]>`
    select payer_lot as lot, sum(amount_micros)::bigint as sold,
           (coalesce(sum(amount_micros) filter (where created_at > ${since}), 0))::bigint as lately
    from credit_origins where payer_account = ${account} and payer_lot is not null and not ended group by 1`;
  const [trial] = await on<{ ends_at: Date }[]>`
    select expires_at as ends_at from trial_credits
    where account_id = ${account} and ended is null and expires_at > ${now}`;
  const sold = new Map(sales.map((sale) => [sale.lot, sale]));
  const lotFor = (row: Omit<Row, 'kind'>, isFirst: boolean, isTrial = false): Lot => ({
    id: row.id,
    orderId: row.order_id,
    trialEndsAt: isTrial ? (trial?.ends_at ?? null) : null,
    amountMicros: row.micros,
    soldMicros: sold.get(row.id)?.sold ?? 0n,
    soldLatelyMicros: sold.get(row.id)?.lately ?? 0n,
    at: row.at,
    isFirst,
  });
  const ofKind = (kind: Row['kind']) => inflows.filter((row) => row.kind === kind);
  const expired = ofKind('expired').reduce((sum, row) => sum + row.micros, 0n);
  const ofOrigin = (isTrial: boolean) =>
    origins.filter((row) => row.trial === isTrial).map((row) => ({ ...row, id: row.lot }));
  // What came with the key is known by its parts; before there were parts, by its transfers.
  const isKnown = origins.length > 0;
  const ofTrial = (isKnown ? ofOrigin(true) : ofKind('trial')).map((row) => ({
    ...row,
    micros: row.micros + expired,
  }));
  const ofSale = isKnown ? ofOrigin(false) : ofKind('sold');
  return [
    ...ofTrial.map((row) => lotFor(row, true, true)),
    ...ofSale.map((row) => lotFor(row, true)),
    ...ofKind('inflow').map((row) => lotFor(row, false)),
  ];
}

function unsoldOf({ amountMicros, soldMicros }: Lot): bigint {
  return amountMicros > soldMicros ? amountMicros - soldMicros : 0n;
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
