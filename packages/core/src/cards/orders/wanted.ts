/**
 * Whether a charge that an order asks for is still wanted. An order may wait for the provider for hours, and much may happen
 * meanwhile: its owner switches the recharges off, keeps another card, or has no key left; a payment is refunded or disputed;
 * the account is frozen.
 */
import type { Transaction } from '../../db/connection.ts';
import { isCardDisputed } from '../disputes/disputed-cards.ts';
import type { CardOrder } from './orders.ts';

/**
 * To be asked in the transaction that writes the attempt down. Holds what is kept of the card until then: who switches off
 * meanwhile waits, and is told of the attempt.
 */
export async function isChargeWanted(
  transaction: Transaction,
  order: CardOrder,
  nowMs: number,
): Promise<boolean> {
  if (order.kind === 'recharge')
    return (await isKeptFor(transaction, order)) && (await hasKey(transaction, order.accountId, nowMs));
  const { accountId, cardFingerprint } = order;
  if (await isCardDisputed(transaction, cardFingerprint)) return false;
  return accountId === null || maySpend(transaction, accountId, nowMs);
}

/** Whether it is on, for this order and its card, for no less than the order's amount, and the card is not disputed. */
async function isKeptFor(transaction: Transaction, order: CardOrder): Promise<boolean> {
  const { id, accountId, paymentMethodId, amountMicros } = order;
  const [kept] = await transaction<{ card_fingerprint: string | null }[]>`
    select card_fingerprint from auto_recharges
    where account_id = ${String(accountId)} and off_reason is null and order_id = ${id}
      and payment_method_id = ${paymentMethodId} and top_up_micros >= ${String(amountMicros)}
    for share`;
  return kept !== undefined && !(await isCardDisputed(transaction, kept.card_fingerprint));
}

/** Whether there is a key that pays. A frozen one does not. */
async function hasKey(transaction: Transaction, accountId: bigint | null, nowMs: number): Promise<boolean> {
  const rows = await transaction`
    select 1 from api_keys where account_id = ${String(accountId)} and status = 'active'
      and (expires_at is null or expires_at > ${new Date(nowMs).toISOString()}) limit 1`;
  return rows.length > 0;
}

/** Whether what is bought for an account can be spent: by a key that is frozen for a debt too, since the purchase pays it. */
async function maySpend(transaction: Transaction, accountId: bigint, nowMs: number): Promise<boolean> {
  const rows = await transaction`
    select 1 from api_keys where account_id = ${String(accountId)} and status <> 'revoked'
      and (expires_at is null or expires_at > ${new Date(nowMs).toISOString()})
      and not exists (
        select 1 from account_freezes where account_id = ${String(accountId)} and cause = 'operator') limit 1`;
  return rows.length > 0;
}
