/**
 * Verifying and settling `exact` payments on Solana: the payer signs a transaction that moves the USDC, somebody else
 * signs as its fee payer and sends it: a facilitator, or we (`solana-settler.ts`). https://github.com/coinbase/x402/blob/main/specs/schemes/exact/scheme_exact_svm.md
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Address,
  getBase64Encoder,
  getCompiledTransactionMessageDecoder,
  getPublicKeyFromAddress,
  getTransactionDecoder,
  verifySignature,
} from '@solana/kit';
import { type BatchingRpc, type Rpc, RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import { unavailable } from '../../http/problem.ts';
import type { ChainVerdict, OnChainPayment } from '../../paid-call/rail.ts';
import type { Facilitator, PaymentForFacilitator } from '../on-chain/facilitator.ts';
import { refusalFromFacilitator } from '../on-chain/facilitator-reasons.ts';
import { type NetworkPayments, type Report, reported } from '../on-chain/payments.ts';
import { refuse } from '../on-chain/refusals.ts';
import type { SolanaNetwork } from './networks.ts';
import { fateAt, findAmongTransactions } from './solana-look.ts';
import {
  COMPUTE_BUDGET_PROGRAM,
  LIGHTHOUSE_PROGRAM,
  MEMO_PROGRAM,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
  tokenAccountOf,
} from './solana-programs.ts';
import type { SolanaRefunds } from './solana-refunds.ts';
import type { SolanaSettler } from './solana-settler.ts';

/** What may stand beside the transfer: compute budget, memo, and the assertions that wallets add. */
const HARMLESS = new Set<string>([COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM, LIGHTHOUSE_PROGRAM]);
const TRANSFER_CHECKED = 12;
const MAX_INSTRUCTIONS = 7;
/** A blockhash lives 150 blocks of 0.4 s; after this no node has it any more. */
const BLOCKHASH_LIFE_MS = 150_000;
const SETTLE_TIMEOUT_MS = 15_000;
const LOOK_TIMEOUT_MS = 4_000;
const FIRST_LOOK_MS = 100;
const LAST_LOOK_MS = 1_000;
/** The payer's transactions are looked through from the newest to before the payment could have been made. */
const WATCHED_MS = 600_000;

export interface SolanaTransfer {
  payer: string;
  /** The account that the money leaves. */
  source: string;
  amountUnits: bigint;
  feePayer: string;
  blockhash: string;
  /** SHA-256 of what was signed: the same for every copy of this transaction. */
  messageHash: string;
  /** The text of its first memo; null if it has none. */
  memo: string | null;
}

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

/**
 * Reads what a transaction would move, and that its payer signed it.
 *
 * @param transaction base64 of the wire form
 * @param wanted.payTo null: to anybody, for what was bought when the recipient was another one
 * @throws PaymentRefused when it is anything but one transfer of the asset to the recipient
 */
export async function readSolanaTransfer(
  transaction: string,
  wanted: { asset: string; payTo: string | null },
): Promise<SolanaTransfer> {
  try {
    const decoded = getTransactionDecoder().decode(getBase64Encoder().encode(transaction));
    const message = getCompiledTransactionMessageDecoder().decode(decoded.messageBytes);
    if (message.version !== 0 && message.version !== 'legacy') throw new Error('unknown version');
    if ('addressTableLookups' in message && (message.addressTableLookups?.length ?? 0) > 0)
      throw new Error('looks accounts up elsewhere');
    const accounts: readonly Address[] = message.staticAccounts;
    const at = (index: number | undefined): Address => {
      const found = index === undefined ? undefined : accounts[index];
      if (found === undefined) throw new Error('no such account');
      return found;
    };
    if (message.instructions.length > MAX_INSTRUCTIONS) throw new Error('too many instructions');
    const transfers = message.instructions.filter(
      ({ programAddressIndex }) => !HARMLESS.has(at(programAddressIndex)),
    );
    const [transfer] = transfers;
    if (transfers.length !== 1 || transfer === undefined) throw new Error('not one transfer');
    const program = at(transfer.programAddressIndex);
    if (program !== TOKEN_PROGRAM && program !== TOKEN_2022_PROGRAM) throw new Error('not the token program');
    const data = Buffer.from(transfer.data ?? []);
    if (data.length !== 10 || data.readUInt8(0) !== TRANSFER_CHECKED) throw new Error('not TransferChecked');
    const [source, mint, destination, authority] = (transfer.accountIndices ?? []).map(at);
    if (source === undefined || authority === undefined || mint !== wanted.asset)
      throw new Error('another asset');
    const { payTo } = wanted;
    if (payTo !== null && destination !== (await tokenAccountOf(payTo, wanted.asset)))
      throw refuse('PAYMENT_RECIPIENT_MISMATCH', { payTo });
    const feePayer = at(0);
    if (feePayer === authority) throw new Error('the payer would pay the fee');
    const signature = decoded.signatures[authority];
    if (signature === undefined || signature === null) throw refuse('PAYMENT_SIGNATURE_INVALID');
    const memo = message.instructions.find(
      ({ programAddressIndex }) => at(programAddressIndex) === MEMO_PROGRAM,
    );
    const key = await getPublicKeyFromAddress(authority);
    if (!(await verifySignature(key, signature, decoded.messageBytes)))
      throw refuse('PAYMENT_SIGNATURE_INVALID');
    return {
      payer: authority,
      source,
      amountUnits: data.readBigUInt64LE(1),
      feePayer,
      blockhash: message.lifetimeToken,
      messageHash: createHash('sha256').update(Uint8Array.from(decoded.messageBytes)).digest('hex'),
      memo: memo === undefined ? null : Buffer.from(memo.data ?? []).toString('utf8'),
    };
  } catch (error) {
    if (error instanceof Error && error.name === 'PaymentRefused') throw error;
    throw refuse('PAYMENT_TRANSACTION_UNSUITABLE');
  }
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

/**
 * Verifying and settling on Solana: by a fee payer of our own what names ours, by facilitators what names theirs.
 *
 * @param parts.settler null: facilitators settle everything
 * @param parts.refunds null: none can be sent
 */
export function svmPayments(parts: {
  network: SolanaNetwork;
  rpc: BatchingRpc;
  settler: SolanaSettler | null;
  refunds: SolanaRefunds | null;
  facilitators(version: 1 | 2): readonly Facilitator[];
  nowMs(): number;
  report: Report;
}): NetworkPayments {
  const { network, rpc, settler } = parts;
  const evidenceOf = (payment: OnChainPayment) => payment.evidence as SvmEvidence;

  /** @param others signatures that are known to be of something else; grows */
  async function lookAmong(payment: OnChainPayment, others = new Set<string>()): Promise<ChainVerdict> {
    const evidence = evidenceOf(payment);
    try {
      // Whether it can still land is asked first: what landed since is then among the signatures.
      const valid = (await rpc.call('isBlockhashValid', [
        evidence.blockhash,
        { commitment: 'confirmed' },
      ])) as { context?: { slot: number }; value: boolean };
      const isOver = !valid.value && parts.nowMs() >= payment.deadAfterMs;
      const found = await findAmongTransactions(
        rpc,
        evidence,
        { sinceMs: payment.deadAfterMs - WATCHED_MS, isOver, minContextSlot: valid.context?.slot },
        others,
      );
      if (found.status === 'landed')
        return found.ok
          ? { status: 'settled', transaction: found.signature, blockNumber: null }
          : { status: 'dead', refusal: refuse('PAYMENT_INSUFFICIENT_FUNDS') };
      if (found.status === 'not shown') return { status: 'unknown' };
      // Who does more than is looked through may pay all the same: the chain takes this transaction once. What was not
      // found by the end of its blockhash did not land.
      return isOver ? { status: 'dead', refusal: refuse('PAYMENT_EXPIRED') } : { status: 'open' };
    } catch (error) {
      return { status: 'unknown', cause: error };
    }
  }

  async function lookUntil(
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
          : await fateAt(rpc, signature, evidenceOf(payment).messageHash).catch(() => 'unseen' as const);
      if (became === 'paid' && signature !== null)
        return { status: 'settled', transaction: signature, blockNumber: null };
      const looked = await lookAmong(payment, others);
      if (looked.status === 'settled' || looked.status === 'dead') return looked;
      if (performance.now() + pauseMs > untilMs) return looked;
      await sleep(pauseMs);
    }
  }

  async function look(payment: OnChainPayment): Promise<ChainVerdict> {
    try {
      return settler !== null && (await settler.owns(payment))
        ? await settler.look(payment)
        : await lookAmong(payment);
    } catch (error) {
      return { status: 'unknown', cause: error };
    }
  }

  async function settle(payment: OnChainPayment): Promise<ChainVerdict> {
    if (settler !== null && (await settler.owns(payment))) return settler.settle(payment);
    const { forFacilitator } = evidenceOf(payment);
    const before = await lookAmong(payment);
    if (before.status !== 'open') return before;
    for (const facilitator of parts.facilitators(forFacilitator.x402Version)) {
      const settlement = await facilitator.settle(forFacilitator);
      if (settlement.status === 'unavailable' && !settlement.reached) continue;
      const signature = settlement.status === 'unavailable' ? null : settlement.transaction;
      const looked = await lookUntil(payment, signature === null ? 0 : SETTLE_TIMEOUT_MS, signature);
      if (looked.status !== 'open') return looked;
      if (signature !== null) return { status: 'unknown' };
      // It may have sent the transaction and refused all the same: its reason proves nothing, and the next one is asked.
    }
    const looked = await lookUntil(payment, LOOK_TIMEOUT_MS, null);
    return looked.status === 'open' ? { status: 'unknown' } : looked;
  }

  async function verifyWithFacilitator(payment: OnChainPayment): Promise<void> {
    const { forFacilitator } = evidenceOf(payment);
    for (const facilitator of parts.facilitators(forFacilitator.x402Version)) {
      const verdict = await facilitator.verify(forFacilitator);
      if (verdict.status === 'valid') return;
      if (verdict.status === 'unavailable') continue;
      // It may have landed already, by a settlement that nobody heard the end of.
      const looked = await lookAmong(payment);
      if (looked.status === 'settled') return;
      if (looked.status === 'dead') throw looked.refusal;
      const refusal = refusalFromFacilitator(verdict.reason);
      // That the transaction would fail is all it says when the payer is poor.
      if (refusal.code === 'PAYMENT_VERIFICATION_FAILED' && (await isPoor(rpc, payment)))
        throw refuse('PAYMENT_INSUFFICIENT_FUNDS');
      throw refusal;
    }
    throw unavailable('FACILITATOR_UNAVAILABLE', 'No facilitator answers.', 5_000);
  }

  async function verify(payment: OnChainPayment): Promise<void> {
    if (settler !== null && (await settler.owns(payment))) await settler.verify(payment);
    else await verifyWithFacilitator(payment);
    // A node that cannot be asked afterwards must not be relied on before.
    await rpc.call('getLatestBlockhash', [{ commitment: 'confirmed' }]).catch((error: unknown) => {
      throw unavailable('CHAIN_UNAVAILABLE', `${network.title} does not answer.`, 5_000, {}, error);
    });
  }

  return {
    look,
    canRefund: parts.refunds !== null,
    refund: async (refund) => (await parts.refunds?.refund(refund)) ?? null,
    ...reported({ verify, settle }, parts.report),
    async finality(_payment, transaction) {
      try {
        const { value } = (await rpc.call('getSignatureStatuses', [
          [transaction],
          { searchTransactionHistory: true },
        ])) as { value: ({ confirmationStatus: string; err: unknown } | null)[] };
        const [status] = value;
        if (status === null || status === undefined || status.err !== null) return 'gone';
        return status.confirmationStatus === 'finalized' ? 'final' : 'waiting';
      } catch {
        return 'unknown';
      }
    },
  };
}
