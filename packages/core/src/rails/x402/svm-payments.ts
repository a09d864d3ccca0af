/**
 * Verifying and settling `exact` payments on Solana: the payer signs a transaction that moves the USDC, somebody else
 * signs as its fee payer and sends it: a facilitator, or we (`solana-settler.ts`). https://github.com/coinbase/x402/blob/main/specs/schemes/exact/scheme_exact_svm.md
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BatchingRpc, type Rpc, RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import { unavailable } from '../../http/problem.ts';
import type { ChainVerdict, Finality, OnChainPayment } from '../../paid-call/rail.ts';
import type { Facilitator, PaymentForFacilitator } from '../on-chain/facilitator.ts';
import { refusalFromFacilitator } from '../on-chain/facilitator-reasons.ts';
import { type NetworkPayments, type Report, reported } from '../on-chain/payments.ts';
import { refuse } from '../on-chain/refusals.ts';
import type { SolanaNetwork } from './networks.ts';
import { fateAt, findAmongTransactions } from './solana-look.ts';
import type { SolanaRefunds } from './solana-refunds.ts';
import type { SolanaSettler } from './solana-settler.ts';

/** A blockhash lives 150 blocks of 0.4 s; after this no node has it any more. */
export const BLOCKHASH_LIFE_MS = 150_000;
const SETTLE_TIMEOUT_MS = 15_000;
const LOOK_TIMEOUT_MS = 4_000;
const FIRST_LOOK_MS = 100;
const LAST_LOOK_MS = 1_000;
/** The payer's transactions are looked through from the newest to before the payment could have been made. */
const WATCHED_MS = 600_000;

export interface SvmEvidence extends Record<string, unknown> {
  scheme: 'exact-svm';
  source: string;
  blockhash: string;
  messageHash: string;
  /** These two are absent in what was stored by earlier versions. */
  memo?: string | null;
  feePayer?: string;
  forFacilitator: PaymentForFacilitator;
}

/** Whether the account that the money would leave holds less than the price. Never throws. */
export async function isPoor(rpc: Rpc, payment: OnChainPayment): Promise<boolean> {
  try {
    const { value } = (await rpc.call('getTokenAccountBalance', [
      (payment.evidence as SvmEvidence).source,
      { commitment: 'confirmed' },
    ])) as { value: { amount: string } };
    return BigInt(value.amount) < payment.amountUnits;
  } catch (error) {
    // An account that was never made holds nothing; a node that does not answer says nothing.
    return error instanceof RpcRefusal;
  }
}

/** When a transaction that was presented now can no longer settle. */
export function solanaDeadAfterMs(nowMs: number): number {
  return nowMs + BLOCKHASH_LIFE_MS;
}

interface SvmParts {
  network: SolanaNetwork;
  rpc: BatchingRpc;
  /** Null: facilitators settle everything. */
  settler: SolanaSettler | null;
  /** Null: no refunds can be sent. */
  refunds: SolanaRefunds | null;
  facilitators(version: 1 | 2): readonly Facilitator[];
  nowMs(): number;
}

/** Verifies and settles payments on Solana. We settle a payment that names our fee payer; facilitators settle the others. */
export function svmPayments(parts: SvmParts & { report: Report }): NetworkPayments {
  const payments = new SvmPayments(parts);
  const { refunds } = parts;
  return {
    look: (payment) => payments.look(payment),
    finality: (_payment, transaction) => payments.finality(transaction),
    canRefund: refunds !== null,
    refund: async (refund) => (await refunds?.refund(refund)) ?? null,
    ...reported(
      {
        verify: (payment) => payments.verify(payment),
        settle: (payment) => payments.settle(payment),
      },
      parts.report,
    ),
  };
}

class SvmPayments {
  readonly #parts: SvmParts;

  constructor(parts: SvmParts) {
    this.#parts = parts;
  }

  /**
   * Looks for the payment among the transactions of the account that the money leaves.
   *
   * @param others signatures that are known to belong to other transactions; each one that is found is added
   */
  async #lookAmong(payment: OnChainPayment, others = new Set<string>()): Promise<ChainVerdict> {
    const { rpc, nowMs } = this.#parts;
    const evidence = evidenceOf(payment);
    try {
      // The blockhash is asked about before the signatures, so that a payment that lands in between is found.
      const valid = (await rpc.call('isBlockhashValid', [
        evidence.blockhash,
        { commitment: 'confirmed' },
      ])) as { context: { slot: number }; value: boolean };
      const isOver = !valid.value && nowMs() >= payment.deadAfterMs;
      const found = await findAmongTransactions(
        rpc,
        evidence,
        { sinceMs: payment.deadAfterMs - WATCHED_MS, isOver, minContextSlot: valid.context.slot },
        others,
      );
      if (found.status === 'landed')
        return found.ok
          ? { status: 'settled', transaction: found.signature, blockNumber: null }
          : { status: 'dead', refusal: refuse('PAYMENT_INSUFFICIENT_FUNDS') };
      if (found.status === 'not shown') return { status: 'unknown' };
      // A payer whose transactions are more than are looked through may still pay, because the chain takes this
      // transaction only once. A payment that was not found when its blockhash had expired did not land.
      return isOver ? { status: 'dead', refusal: refuse('PAYMENT_EXPIRED') } : { status: 'open' };
    } catch (error) {
      return { status: 'unknown', cause: error };
    }
  }

  /** @param signature the one that a facilitator named; null: none was named */
  async #lookUntil(
    payment: OnChainPayment,
    timeoutMs: number,
    signature: string | null,
  ): Promise<ChainVerdict> {
    const untilMs = performance.now() + timeoutMs;
    const others = new Set<string>();
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_LOOK_MS)) {
      const became =
        signature === null
          ? 'unseen'
          : await fateAt(this.#parts.rpc, signature, evidenceOf(payment).messageHash).catch(
              () => 'unseen' as const,
            );
      if (became === 'paid' && signature !== null)
        return { status: 'settled', transaction: signature, blockNumber: null };
      const looked = await this.#lookAmong(payment, others);
      if (looked.status === 'settled' || looked.status === 'dead') return looked;
      if (performance.now() + pauseMs > untilMs) return looked;
      await sleep(pauseMs);
    }
  }

  async look(payment: OnChainPayment): Promise<ChainVerdict> {
    const { settler } = this.#parts;
    try {
      return settler !== null && (await settler.owns(payment))
        ? await settler.look(payment)
        : await this.#lookAmong(payment);
    } catch (error) {
      return { status: 'unknown', cause: error };
    }
  }

  async settle(payment: OnChainPayment): Promise<ChainVerdict> {
    const { settler, facilitators } = this.#parts;
    if (settler !== null && (await settler.owns(payment))) return settler.settle(payment);
    const { forFacilitator } = evidenceOf(payment);
    const before = await this.#lookAmong(payment);
    if (before.status !== 'open') return before;
    for (const facilitator of facilitators(forFacilitator.x402Version)) {
      const settlement = await facilitator.settle(forFacilitator);
      if (settlement.status === 'unavailable' && !settlement.reached) continue;
      const signature = settlement.status === 'unavailable' ? null : settlement.transaction;
      const looked = await this.#lookUntil(payment, signature === null ? 0 : SETTLE_TIMEOUT_MS, signature);
      if (looked.status !== 'open') return looked;
      if (signature !== null) return { status: 'unknown' };
      // A facilitator may refuse after it has sent the transaction, so its reason proves nothing. The next one is asked.
    }
    const looked = await this.#lookUntil(payment, LOOK_TIMEOUT_MS, null);
    return looked.status === 'open' ? { status: 'unknown' } : looked;
  }

  async #verifyWithFacilitator(payment: OnChainPayment): Promise<void> {
    const { rpc, facilitators } = this.#parts;
    const { forFacilitator } = evidenceOf(payment);
    for (const facilitator of facilitators(forFacilitator.x402Version)) {
      const verdict = await facilitator.verify(forFacilitator);
      if (verdict.status === 'valid') return;
      if (verdict.status === 'unavailable') continue;
      // The payment may have landed already, in a settlement whose outcome never reached us.
      const looked = await this.#lookAmong(payment);
      if (looked.status === 'settled') return;
      if (looked.status === 'dead') throw looked.refusal;
      const refusal = refusalFromFacilitator(verdict.reason);
      // For a payer without funds, a facilitator says only that the transaction would fail.
      if (refusal.code === 'PAYMENT_VERIFICATION_FAILED' && (await isPoor(rpc, payment)))
        throw refuse('PAYMENT_INSUFFICIENT_FUNDS');
      throw refusal;
    }
    throw unavailable('FACILITATOR_UNAVAILABLE', 'No facilitator answers.', 5_000);
  }

  async verify(payment: OnChainPayment): Promise<void> {
    const { settler, rpc, network } = this.#parts;
    if (settler !== null && (await settler.owns(payment))) await settler.verify(payment);
    else await this.#verifyWithFacilitator(payment);
    // The node is needed after the settlement too, so a payment is taken only while the node answers.
    await rpc.call('getLatestBlockhash', [{ commitment: 'confirmed' }]).catch((error: unknown) => {
      throw unavailable('CHAIN_UNAVAILABLE', `${network.title} does not answer.`, 5_000, {}, error);
    });
  }

  async finality(transaction: string): Promise<Finality> {
    try {
      const { value } = (await this.#parts.rpc.call('getSignatureStatuses', [
        [transaction],
        { searchTransactionHistory: true },
      ])) as { value: ({ confirmationStatus: string; err: unknown } | null)[] };
      const [status] = value;
      if (status === null || status === undefined || status.err !== null) return 'gone';
      return status.confirmationStatus === 'finalized' ? 'final' : 'waiting';
    } catch {
      return 'unknown';
    }
  }
}

function evidenceOf(payment: OnChainPayment): SvmEvidence {
  return payment.evidence as SvmEvidence;
}
