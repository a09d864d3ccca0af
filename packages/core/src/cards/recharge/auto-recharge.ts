/**
 * Auto-recharge: a card is kept, and charged when the balance is low. The commit that lowers the balance also marks the
 * account as due (`functions/auto_recharge_falls_due.v1.sql`), and a job charges it (`due-recharges.ts`). What here is told
 * how each charge ended keeps the card for the next one, waits, or switches the recharges off.
 *
 * Locks are taken in the order card_orders, ledger_accounts, api_keys, auto_recharges, mails.
 */
import type { Database, Pools, Transaction } from '../../db/connection.ts';
import { Problem } from '../../http/problem.ts';
import { createBucketTurns } from '../../ledger/bucket-turns.ts';
import { transferIdFor } from '../../ledger/transfer-id.ts';
import type { Mailer } from '../../mail/mailer.ts';
import { forgetDisputedCards } from '../disputes/disputed-cards.ts';
import { WITHDRAWN } from '../orders/look.ts';
import type { CardOrder } from '../orders/orders.ts';
import type { Failure } from '../provider.ts';
import { checkAgreed, mostPerDayMicros } from './agreement.ts';
import { declineReason, readDecline } from './declines.ts';
import { DueRecharges, type DueRechargesParts } from './due-recharges.ts';
import { afterMove, type FormerAddress, stillTold } from './former-addresses.ts';
import { type Held, hold, type KeptCard, withoutOrder, write } from './kept-card.ts';
import { type MailText, rechargeMails } from './recharge-mail.ts';
import { checkRecharge, type RechargePatch, type RechargeSettings } from './recharge-settings.ts';
import { describeRecharge, HOW, type RechargeView } from './recharge-view.ts';

export interface AutoRecharges {
  /** Keeps a card, in the commit of the payment that asked for it. Replaces what was kept before. */
  enable(transaction: Transaction, card: NewKeptCard): Promise<void>;
  /** In the commit that grants a recharge order's credit: ready for the next time, or due at once if it is still low. */
  paid(transaction: Transaction, order: CardOrder): Promise<void>;
  /** In the commit that ends a recharge order unpaid: another time, or not any more. */
  failed(transaction: Transaction, order: CardOrder, failure: Failure): Promise<void>;
  /** Switches it off for a reason, such as `dispute`, `refund`, `card_detached`. Nothing happens where it is off. */
  stop(transaction: Transaction, accountId: bigint, reason: string): Promise<void>;
  /**
   * The job: opens orders for all that is due and that nobody holds, and has them charged. Once `stopping` is aborted it
   * begins no more charges.
   *
   * @returns how many it opened
   */
  run(stopping?: AbortSignal): Promise<number>;
  /** The job: forgets cards wherever they are kept that were disputed on some account. */
  forgetDisputed(stopping?: AbortSignal): Promise<void>;
  describe(accountId: bigint): Promise<RechargeView>;
  /**
   * @throws Problem 400 INVALID_AUTO_RECHARGE when a top-up would not reach the threshold; 409 NO_SAVED_CARD when there
   *   is no card to charge, RECHARGE_NOT_AGREED when its owner has agreed to less, ADDRESS_MOVED_TOO_OFTEN
   */
  change(accountId: bigint, patch: RechargePatch): Promise<RechargeView>;
}

export interface NewKeptCard extends RechargeSettings {
  accountId: bigint;
  customerId: string;
  paymentMethodId: string;
  /** The label that its owner knows the card by, such as `visa 4242`. */
  cardLabel: string;
  /** The provider's name for the card, the same wherever it is kept; null: it gave none. */
  cardFingerprint: string | null;
  email: string | null;
}

export interface AutoRechargeParts extends Omit<DueRechargesParts, 'sql' | 'turns' | 'stop'> {
  mailer: Pick<Mailer, 'enqueue'>;
  /** Where the API is, for mail. */
  baseUrl: string;
}

const HOUR_MS = 60 * 60_000;
/** After the first decline in a row that may pass, the second, the third; after one more it is off. */
const BACK_OFF_MS = [HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS];

/** Longer than an order on the replaced card can be under way. */
const REPLACED_TOLD_FOR_MS = 24 * HOUR_MS;

/** Reasons after which the card is not kept: its owner must not be charged without being asked anew. */
const FORGET_CARD_FOR = new Set(['dispute', 'card_detached', 'declined_too_often']);

export function createAutoRecharges(
  pools: Pick<Pools, 'sql' | 'distribution'>,
  parts: AutoRechargeParts,
): AutoRecharges {
  return new KeptCardRecharges(pools, parts);
}

class KeptCardRecharges implements AutoRecharges {
  readonly #sql: Database;
  readonly #parts: AutoRechargeParts;
  readonly #mails: ReturnType<typeof rechargeMails>;
  readonly #due: DueRecharges;

  constructor(pools: Pick<Pools, 'sql' | 'distribution'>, parts: AutoRechargeParts) {
    this.#sql = pools.sql;
    this.#parts = parts;
    this.#mails = rechargeMails(parts.baseUrl);
    this.#due = new DueRecharges({
      ...parts,
      sql: pools.sql,
      turns: createBucketTurns(pools),
      stop: (transaction, accountId, reason) => this.stop(transaction, accountId, reason),
    });
  }

  run(stopping?: AbortSignal): Promise<number> {
    return this.#due.run(stopping);
  }

  forgetDisputed(stopping?: AbortSignal): Promise<void> {
    const stop: AutoRecharges['stop'] = (...stopped) => this.stop(...stopped);
    return forgetDisputedCards(this.#sql, stop, stopping);
  }

  describe(accountId: bigint): Promise<RechargeView> {
    const { maxPerDay, nowMs } = this.#parts;
    return describeRecharge(this.#sql, accountId, { maxPerDay, nowMs: nowMs() });
  }

  async enable(transaction: Transaction, { accountId, ...card }: NewKeptCard): Promise<void> {
    const held = await hold(transaction, accountId);
    const { kept } = held;
    await this.#write(transaction, held, {
      ...card,
      agreed: { thresholdMicros: card.thresholdMicros, topUpMicros: card.topUpMicros },
      // An order on the earlier card goes on if it was charged, and that card's owner is told.
      orderId: kept?.orderId ?? null,
      formerAddresses: kept?.orderId == null ? [] : withPresent(kept, this.#parts.nowMs()),
      lastChargedAtMs: kept?.lastChargedAtMs ?? null,
      softFailures: 0,
      nextAtMs: null,
      waitingFor: null,
      offReason: null,
    });
    await this.#mail(transaction, card.email, `${accountId}:on:${this.#now()}`, this.#mails.enabled(card));
  }

  async stop(transaction: Transaction, accountId: bigint, reason: string): Promise<void> {
    const held = await hold(transaction, accountId);
    const { balanceMicros, kept } = held;
    if (kept === null) return;
    const forget = FORGET_CARD_FOR.has(reason);
    const wasOn = kept.state !== 'off';
    // What is off stays off for its first reason, unless this one is the end of the card as well.
    if (!wasOn && (!forget || kept.paymentMethodId === null)) return;
    const paymentMethodId = forget ? null : kept.paymentMethodId;
    await this.#write(transaction, held, { ...kept, paymentMethodId, offReason: reason });
    if (!wasOn) return;
    const text = this.#mails.off(kept, { amountMicros: null, balanceMicros, reason, cardIsKept: !forget });
    await this.#mail(transaction, kept.email, `${accountId}:off:${this.#now()}`, text);
  }

  async paid(transaction: Transaction, order: CardOrder): Promise<void> {
    const held = await hold(transaction, accountOf(order));
    const { balanceMicros, kept } = held;
    if (kept === null) return;
    const lastChargedAtMs = this.#parts.nowMs();
    await this.#write(transaction, held, {
      ...withoutOrder(kept, order.id),
      softFailures: 0,
      lastChargedAtMs,
    });
    const text = this.#mails.charged(kept, order.amountMicros, balanceMicros);
    await this.#mail(transaction, kept.email, `${order.id}:paid`, text);
    for (const { email, untilMs } of stillTold(kept.formerAddresses, lastChargedAtMs)) {
      if (email === kept.email) continue;
      const told = this.#mails.chargedAfterMove(kept, order.amountMicros, untilMs);
      await this.#mail(transaction, email, `${order.id}:paid:${email}`, told);
    }
  }

  async failed(transaction: Transaction, order: CardOrder, failure: Failure): Promise<void> {
    const held = await hold(transaction, accountOf(order));
    const { kept } = held;
    if (kept === null) return;
    const free = withoutOrder(kept, order.id);
    // No card was asked, so it says nothing of the card either.
    if (failure.code === WITHDRAWN) return this.#write(transaction, held, free);
    // Where it was switched off meanwhile, or another card is kept by now, this says nothing of what is kept.
    if (kept.state === 'off' || order.paymentMethodId !== kept.paymentMethodId)
      return this.#write(transaction, held, free);
    const pauseMs = readDecline(failure) === 'later' ? BACK_OFF_MS[kept.softFailures] : undefined;
    if (pauseMs === undefined) await this.#endDeclined(transaction, held, free, { order, failure });
    else await this.#waitDeclined(transaction, held, free, { order, failure, pauseMs });
  }

  /** Switches off after a decline that will not pass, or one too many in a row. */
  async #endDeclined(
    transaction: Transaction,
    held: Held,
    kept: KeptCard,
    { order, failure }: { order: CardOrder; failure: Failure },
  ): Promise<void> {
    const reason = declineReason(failure);
    const paymentMethodId = readDecline(failure) === 'forget' ? null : kept.paymentMethodId;
    await this.#write(transaction, held, { ...kept, paymentMethodId, offReason: reason });
    const text = this.#mails.off(kept, {
      amountMicros: order.amountMicros,
      balanceMicros: held.balanceMicros,
      reason,
      cardIsKept: paymentMethodId !== null,
    });
    await this.#mail(transaction, kept.email, `${order.id}:off`, text);
  }

  /** Tries again later after a decline that may pass. */
  async #waitDeclined(
    transaction: Transaction,
    held: Held,
    kept: KeptCard,
    { order, failure, pauseMs }: { order: CardOrder; failure: Failure; pauseMs: number },
  ): Promise<void> {
    const nextAtMs = this.#parts.nowMs() + pauseMs;
    const softFailures = kept.softFailures + 1;
    await this.#write(transaction, held, { ...kept, softFailures, nextAtMs, waitingFor: 'decline' });
    const { balanceMicros } = held;
    const reason = declineReason(failure);
    const text = this.#mails.declined(kept, {
      amountMicros: order.amountMicros,
      balanceMicros,
      reason,
      nextAtMs,
    });
    await this.#mail(transaction, kept.email, `${order.id}:declined`, text);
  }

  async change(accountId: bigint, patch: RechargePatch): Promise<RechargeView> {
    await this.#sql.begin(async (transaction) => {
      const held = await hold(transaction, accountId);
      const { kept } = held;
      if (kept === null) {
        // There is nothing to switch off, so that is done.
        if (patch.enabled === false && Object.keys(patch).length === 1) return;
        throw noSavedCard();
      }
      const { maxPerDay, nowMs } = this.#parts;
      const changed = patched(kept, patch, nowMs());
      await this.#write(transaction, held, changed);
      if (changed.email !== kept.email)
        await this.#mail(
          transaction,
          kept.email,
          `${accountId}:moved:${this.#now()}`,
          this.#mails.movedAway(kept, mostPerDayMicros(kept.agreed, maxPerDay)),
        );
      // Whoever holds the key may ask more of the card; its owner is to know.
      if (changed.topUpMicros > kept.topUpMicros || changed.thresholdMicros > kept.thresholdMicros)
        await this.#mail(
          transaction,
          kept.email,
          `${accountId}:raised:${this.#now()}`,
          this.#mails.raised(changed),
        );
    });
    return this.describe(accountId);
  }

  #write(transaction: Transaction, held: Held, changed: Omit<KeptCard, 'state'>): Promise<void> {
    return write(transaction, held, changed, this.#parts.nowMs());
  }

  /** @param cause makes the mail the same one when it is written twice */
  async #mail(
    transaction: Transaction,
    to: string | null,
    cause: string,
    { subject, text }: MailText,
  ): Promise<void> {
    if (to === null) return;
    const id = transferIdFor(`mail:recharge:${cause}`);
    await this.#parts.mailer.enqueue(transaction, { id, to, subject, text });
  }

  #now(): string {
    return new Date(this.#parts.nowMs()).toISOString();
  }
}

/**
 * Applies a change by whoever holds the key to what is kept.
 *
 * @throws Problem 400 INVALID_AUTO_RECHARGE, 409 RECHARGE_NOT_AGREED, ADDRESS_MOVED_TOO_OFTEN, NO_SAVED_CARD
 */
function patched(kept: KeptCard, { enabled, ...settings }: RechargePatch, nowMs: number): KeptCard {
  const formerAddresses =
    settings.email === undefined ? kept.formerAddresses : afterMove(kept, settings.email, nowMs);
  const changed = { ...kept, ...settings, formerAddresses };
  checkRecharge(changed);
  checkAgreed(changed, kept.agreed);
  if (enabled === true && kept.state === 'off') {
    if (kept.paymentMethodId === null) throw noSavedCard();
    return { ...changed, offReason: null, softFailures: 0 };
  }
  if (enabled === false && kept.state !== 'off') return { ...changed, offReason: 'owner' };
  return changed;
}

/** All who hear of charges of a card that another one replaces. */
function withPresent({ email, formerAddresses }: KeptCard, nowMs: number): FormerAddress[] {
  const former = stillTold(formerAddresses, nowMs);
  return email === null ? former : [...former, { email, untilMs: nowMs + REPLACED_TOLD_FOR_MS }];
}

function noSavedCard(): Problem {
  return new Problem(409, 'NO_SAVED_CARD', 'There is no card that may be charged for this key.', {
    details: { how: HOW, charged: false },
  });
}

function accountOf({ id, accountId }: CardOrder): bigint {
  if (accountId === null) throw new Error(`order ${id} recharges no account`);
  return accountId;
}
