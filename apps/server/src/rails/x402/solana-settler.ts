/**
 * Settles `exact` payments on Solana with a fee payer of our own. The payer's transaction is looked at as a published
 * facilitator looks at it, and no less, since our key signs it: https://github.com/coinbase/x402/blob/main/specs/schemes/exact/scheme_exact_svm.md
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  getBase58Decoder,
  getBase64Encoder,
  getCompiledTransactionMessageDecoder,
  getTransactionDecoder,
} from '@solana/kit';
import type { Rpc } from '../../chain-rpc/json-rpc.ts';
import { unavailable } from '../../http/problem.ts';
import type { ChainVerdict, OnChainPayment, PaymentRefused } from '../../paid-call/rail.ts';
import type { EndingSender, EndingTransaction, Fate } from '../../relayer/ending-sender.ts';
import type { GasTank } from '../../relayer/gas-tanks.ts';
import { refuse } from '../on-chain/refusals.ts';
import type { SolanaKey } from './solana-key.ts';
import {
  COMPUTE_BUDGET_PROGRAM,
  SET_UNIT_LIMIT,
  SET_UNIT_PRICE,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
} from './solana-programs.ts';
import { endOfBlockhash } from './solana-sending.ts';

const TRANSFER_AT = 2;
/** As the published facilitator has it, in millionths of a lamport for each unit. */
const MAX_UNIT_PRICE = 5_000_000n;
/** What our key pays beyond the signatures: the payer writes the price of a unit and their number, and we pay. */
const MAX_PRIORITY_LAMPORTS = 25_000n;
const MICRO_LAMPORTS = 1_000_000n;
/** Ours and the payer's: each is paid for. */
const SIGNERS = 2;
const SIGNATURE_LAMPORTS = 5_000n;
/** What a settlement costs at most. */
export const SETTLEMENT_LAMPORTS = BigInt(SIGNERS) * SIGNATURE_LAMPORTS + MAX_PRIORITY_LAMPORTS;
const ORDER = 'SetComputeUnitLimit, SetComputeUnitPrice, TransferChecked, then memos and assertions';
const INSTRUCTIONS = { least: 3, most: 7 };

/** Below this the chain is not offered: some thousand settlements, and what an account must hold to exist. */
export const LEAST_SETTLER_LAMPORTS = 20_000_000n;
const SETTLE_TIMEOUT_MS = 15_000;
/** A payment that would have settled so shortly ago is sent without being tried again. */
const TRIED_FRESH_MS = 1_500;
/** A blockhash may be younger than what our node has seen. */
const BLOCKHASH_TRIES = 4;
const BLOCKHASH_PAUSE_MS = 400;
const CUSTOM_INSUFFICIENT = 1;
const CUSTOM_FROZEN = 17;

export interface SolanaSettler {
  /** Our fee payer while it holds enough for fees; null: payments are not taken for it now. */
  readonly feePayer: string | null;
  /** Whether this payment is settled by us: it names our fee payer, or we have signed it. @throws when the database does */
  owns(payment: OnChainPayment): Promise<boolean>;
  /** @throws PaymentRefused when it would not settle, or not at a price that we pay; Problem (503) when nobody can say */
  verify(payment: OnChainPayment): Promise<void>;
  /** @throws when the chain or the database does not say */
  settle(payment: OnChainPayment): Promise<ChainVerdict>;
  /** @throws when the chain or the database does not say */
  look(payment: OnChainPayment): Promise<ChainVerdict>;
}

interface OwnEvidence {
  blockhash: string;
  feePayer?: string;
  forFacilitator: { paymentPayload: Record<string, unknown> };
}

/** @param parts.key null: what was signed by an earlier key is still looked up and sent */
export function solanaSettler(parts: {
  rpc: Rpc;
  sender: EndingSender;
  key: SolanaKey | null;
  /** What is known of its SOL; null without a key. */
  tank: GasTank | null;
  /** Whether the payer's account holds less than the price. Never throws. */
  isPoor(payment: OnChainPayment): Promise<boolean>;
  nowMs(): number;
}): SolanaSettler {
  const { rpc, sender, key, tank } = parts;
  const tried = new WeakMap<OnChainPayment, number>();
  const idOf = (payment: OnChainPayment) => `settle:${payment.identity}`;
  const evidenceOf = (payment: OnChainPayment) => payment.evidence as unknown as OwnEvidence;

  /** Why the chain would not take it now; null: it would. @throws what the node's client throws */
  async function whyNot(payment: OnChainPayment): Promise<PaymentRefused | null> {
    for (let tries = 1; ; tries++) {
      const { value } = (await rpc.call('simulateTransaction', [
        transactionIn(payment),
        { encoding: 'base64', commitment: 'confirmed', sigVerify: false },
      ])) as { value: { err: unknown } };
      const { err } = value;
      if (err === null) return null;
      if (err === 'BlockhashNotFound') {
        if (tries >= BLOCKHASH_TRIES) return refuse('PAYMENT_EXPIRED');
        await sleep(BLOCKHASH_PAUSE_MS);
        continue;
      }
      if (err === 'AlreadyProcessed') return refuse('PAYMENT_AUTHORIZATION_USED');
      if (err === 'AccountNotFound' || err === 'InsufficientFundsForFee' || isRentOfFeePayer(err)) {
        if (key !== null) tank?.saw(key.address, 0n);
        return refuse('PAYMENT_SETTLER_OUT_OF_GAS');
      }
      const code = customCodeAt(err, TRANSFER_AT);
      if (code === CUSTOM_FROZEN) return refuse('PAYMENT_PAYER_BLOCKED');
      if (code === CUSTOM_INSUFFICIENT || (await parts.isPoor(payment)))
        return refuse('PAYMENT_INSUFFICIENT_FUNDS');
      return refuse('PAYMENT_VERIFICATION_FAILED');
    }
  }

  /** What the chain knows it by once our key has signed; the same each time. */
  function signed(payment: OnChainPayment, by: SolanaKey): { hash: string; raw: string } {
    const wire = Buffer.from(transactionIn(payment), 'base64');
    const { messageBytes } = getTransactionDecoder().decode(wire);
    const signature = by.sign(Uint8Array.from(messageBytes));
    // The fee payer's signature is the first, after a byte with their number.
    wire.set(signature, 1);
    return { hash: getBase58Decoder().decode(signature), raw: wire.toString('base64') };
  }

  function verdictOf(hash: string, fate: Fate): ChainVerdict {
    if (fate.status === 'over') return { status: 'dead', refusal: refuse('PAYMENT_EXPIRED') };
    if (fate.status === 'unseen') return { status: 'open' };
    return fate.ok
      ? { status: 'settled', transaction: hash, blockNumber: null }
      : { status: 'dead', refusal: refuse('PAYMENT_INSUFFICIENT_FUNDS') };
  }

  async function look(payment: OnChainPayment): Promise<ChainVerdict> {
    const stored = await sender.find(idOf(payment));
    if (stored !== null) return verdictOf(stored.hash, await sender.fateOf(stored));
    // Nothing of ours was ever sent. A database that was put back may not know it, but the signature follows from the key.
    const valid = (await rpc.call('isBlockhashValid', [
      evidenceOf(payment).blockhash,
      { commitment: 'confirmed' },
    ])) as { value: boolean };
    if (key !== null && evidenceOf(payment).feePayer === key.address) {
      const { hash } = signed(payment, key);
      const { value } = (await rpc.call('getSignatureStatuses', [
        [hash],
        { searchTransactionHistory: true },
      ])) as { value: ({ err: unknown; confirmationStatus: string } | null)[] };
      const [status] = value;
      if (status !== null && status !== undefined && status.confirmationStatus !== 'processed')
        return verdictOf(hash, { status: 'landed', ok: status.err === null, final: false });
    }
    const isOver = !valid.value && parts.nowMs() >= payment.deadAfterMs;
    return isOver ? { status: 'dead', refusal: refuse('PAYMENT_EXPIRED') } : { status: 'open' };
  }

  return {
    get feePayer() {
      return key === null || tank?.isAble === false ? null : key.address;
    },
    async owns(payment) {
      if (key !== null && evidenceOf(payment).feePayer === key.address) return true;
      return (await sender.find(idOf(payment))) !== null;
    },

    async verify(payment) {
      if (key !== null) checkTerms(payment, key.address);
      let refusal: PaymentRefused | null;
      try {
        refusal = await whyNot(payment);
      } catch (error) {
        throw unavailable('CHAIN_UNAVAILABLE', 'Solana does not answer.', 5_000, {}, error);
      }
      if (refusal === null) {
        tried.set(payment, performance.now());
        return;
      }
      // It may have landed already, by a settlement that nobody heard the end of.
      const looked = await look(payment).catch((): ChainVerdict => ({ status: 'unknown' }));
      if (looked.status === 'settled') return;
      throw looked.status === 'dead' ? looked.refusal : refusal;
    },

    async settle(payment) {
      let refusal: PaymentRefused | null = null;
      const make = async (): Promise<EndingTransaction | null> => {
        if (key === null) return null;
        checkTerms(payment, key.address);
        const triedMs = tried.get(payment);
        if (triedMs === undefined || performance.now() - triedMs > TRIED_FRESH_MS)
          refusal = await whyNot(payment);
        const endsAt = refusal === null ? await endOfBlockhash(rpc, evidenceOf(payment).blockhash) : null;
        if (endsAt === null) {
          refusal ??= refuse('PAYMENT_EXPIRED');
          return null;
        }
        return { ...signed(payment, key), endsAt, paidBy: key.address };
      };
      const order = { id: idOf(payment), once: true, make, until: 'landed' } as const;
      const delivered = await sender.deliver(order, SETTLE_TIMEOUT_MS);
      if (delivered !== null) {
        const verdict = verdictOf(delivered.hash, delivered.fate);
        return verdict.status === 'open' ? { status: 'unknown', cause: 'not landed in time' } : verdict;
      }
      // Nothing was signed, so nothing is on its way.
      const looked = await look(payment);
      return looked.status === 'open' && refusal !== null ? { status: 'refused', refusal } : looked;
    },

    look,
  };
}

function transactionIn(payment: OnChainPayment): string {
  const { payload } = (payment.evidence as unknown as OwnEvidence).forFacilitator.paymentPayload as {
    payload: { transaction: string };
  };
  return payload.transaction;
}

/**
 * What our key signs beside what `readSolanaTransfer` asks for: the compute budget first and within our bounds, then the
 * transfer; no account of ours in any instruction; two signatures.
 *
 * @throws PaymentRefused
 */
function checkTerms(payment: OnChainPayment, feePayer: string): void {
  const wire = getBase64Encoder().encode(transactionIn(payment));
  const message = getCompiledTransactionMessageDecoder().decode(
    getTransactionDecoder().decode(wire).messageBytes,
  );
  const unsuitable = (details: Record<string, unknown>) => refuse('PAYMENT_TRANSACTION_UNSUITABLE', details);
  if (message.version !== 0 && message.version !== 'legacy') throw unsuitable({ field: 'version' });
  const { instructions, header, staticAccounts } = message;
  if (staticAccounts[0] !== feePayer) throw unsuitable({ feePayer });
  if (header.numSignerAccounts !== SIGNERS) throw unsuitable({ signatures: SIGNERS });
  if (instructions.length < INSTRUCTIONS.least || instructions.length > INSTRUCTIONS.most)
    throw unsuitable({ instructions: INSTRUCTIONS });
  // The fee payer is the first account: nothing but the fee may be taken from it, nor anything said in its name.
  if (instructions.some(({ accountIndices = [] }) => accountIndices.includes(0)))
    throw unsuitable({ feePayer: 'must be in no instruction' });
  const programs = instructions.map(({ programAddressIndex }) => staticAccounts[programAddressIndex]);
  const [limit, price] = instructions.map(({ data }, index) =>
    programs[index] === COMPUTE_BUDGET_PROGRAM ? Buffer.from(data ?? []) : null,
  );
  if (
    limit?.length !== 5 ||
    limit[0] !== SET_UNIT_LIMIT ||
    price?.length !== 9 ||
    price[0] !== SET_UNIT_PRICE
  )
    throw unsuitable({ instructions: ORDER });
  const isTransferNext =
    programs[TRANSFER_AT] === TOKEN_PROGRAM || programs[TRANSFER_AT] === TOKEN_2022_PROGRAM;
  if (!isTransferNext || programs.slice(TRANSFER_AT).includes(COMPUTE_BUDGET_PROGRAM))
    throw unsuitable({ instructions: ORDER });
  const unitPrice = price.readBigUInt64LE(1);
  const priority = BigInt(limit.readUInt32LE(1)) * unitPrice;
  if (unitPrice > MAX_UNIT_PRICE || priority > MAX_PRIORITY_LAMPORTS * MICRO_LAMPORTS)
    throw unsuitable({
      maxUnitPriceMicroLamports: String(MAX_UNIT_PRICE),
      maxPriorityFeeLamports: String(MAX_PRIORITY_LAMPORTS),
    });
}

/** The token program's own code, if it was that instruction which failed. */
function customCodeAt(err: unknown, index: number): number | null {
  if (typeof err !== 'object' || err === null || !('InstructionError' in err)) return null;
  const { InstructionError: failed } = err as { InstructionError: [number, unknown] };
  const [at, why] = failed;
  if (at !== index || typeof why !== 'object' || why === null || !('Custom' in why)) return null;
  return Number(why.Custom);
}

function isRentOfFeePayer(err: unknown): boolean {
  if (typeof err !== 'object' || err === null || !('InsufficientFundsForRent' in err)) return false;
  const { InsufficientFundsForRent: why } = err as { InsufficientFundsForRent: { account_index?: number } };
  return why.account_index === 0;
}
