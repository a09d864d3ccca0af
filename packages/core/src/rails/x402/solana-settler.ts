/** Settles `exact` payments on Solana with a fee payer of our own, which signs what `solana-terms.ts` lets pass. */
import { setTimeout as sleep } from 'node:timers/promises';
import { getBase58Decoder, getTransactionDecoder } from '@solana/kit';
import type { Rpc } from '../../chain-rpc/json-rpc.ts';
import { unavailable } from '../../http/problem.ts';
import type { ChainVerdict, OnChainPayment, PaymentRefused } from '../../paid-call/rail.ts';
import type { EndingSender, EndingTransaction, Fate } from '../../relayer/ending-sender.ts';
import type { GasTank } from '../../relayer/gas-tanks.ts';
import { refuse } from '../on-chain/refusals.ts';
import type { SolanaKey } from './solana-key.ts';
import { endOfBlockhash } from './solana-sending.ts';
import { checkTerms, TRANSFER_AT } from './solana-terms.ts';

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

interface SettlerParts {
  rpc: Rpc;
  sender: EndingSender;
  /** Null: what was signed by an earlier key is still looked up and sent. */
  key: SolanaKey | null;
  /** What is known of its SOL; null without a key. */
  tank: GasTank | null;
  /** Whether the payer's account holds less than the price. Never throws. */
  isPoor(payment: OnChainPayment): Promise<boolean>;
  nowMs(): number;
}

export function solanaSettler(parts: SettlerParts): SolanaSettler {
  return new OwnSettler(parts);
}

class OwnSettler implements SolanaSettler {
  readonly #parts: SettlerParts;
  /** When payments were tried that would have settled. */
  readonly #tried = new WeakMap<OnChainPayment, number>();

  constructor(parts: SettlerParts) {
    this.#parts = parts;
  }

  get feePayer(): string | null {
    const { key, tank } = this.#parts;
    return key === null || tank?.isAble === false ? null : key.address;
  }

  async owns(payment: OnChainPayment): Promise<boolean> {
    const { key, sender } = this.#parts;
    if (key !== null && evidenceOf(payment).feePayer === key.address) return true;
    return (await sender.find(idOf(payment))) !== null;
  }

  async verify(payment: OnChainPayment): Promise<void> {
    const { key } = this.#parts;
    if (key !== null) checkTerms(transactionIn(payment), key.address);
    let refusal: PaymentRefused | null;
    try {
      refusal = await this.#whyNot(payment);
    } catch (error) {
      throw unavailable('CHAIN_UNAVAILABLE', 'Solana does not answer.', 5_000, {}, error);
    }
    if (refusal === null) {
      this.#tried.set(payment, performance.now());
      return;
    }
    // It may have landed already, by a settlement that nobody heard the end of.
    const looked = await this.look(payment).catch((): ChainVerdict => ({ status: 'unknown' }));
    if (looked.status === 'settled') return;
    throw looked.status === 'dead' ? looked.refusal : refusal;
  }

  async settle(payment: OnChainPayment): Promise<ChainVerdict> {
    let refusal: PaymentRefused | null = null;
    const make = async () => {
      const made = await this.#make(payment);
      if ('raw' in made) return made;
      refusal = made.refusal;
      return null;
    };
    const order = { id: idOf(payment), once: true, make, until: 'landed' } as const;
    const delivered = await this.#parts.sender.deliver(order, SETTLE_TIMEOUT_MS);
    if (delivered !== null) {
      const verdict = verdictOf(delivered.hash, delivered.fate);
      return verdict.status === 'open' ? { status: 'unknown', cause: 'not landed in time' } : verdict;
    }
    // Nothing was signed, so nothing is on its way.
    const looked = await this.look(payment);
    return looked.status === 'open' && refusal !== null ? { status: 'refused', refusal } : looked;
  }

  async look(payment: OnChainPayment): Promise<ChainVerdict> {
    const { rpc, sender, nowMs } = this.#parts;
    const stored = await sender.find(idOf(payment));
    if (stored !== null) return verdictOf(stored.hash, await sender.fateOf(stored));
    // Whether it can still land is asked first: what landed since is then found.
    const valid = (await rpc.call('isBlockhashValid', [
      evidenceOf(payment).blockhash,
      { commitment: 'confirmed' },
    ])) as { context: { slot: number }; value: boolean };
    const landed = await this.#lookForUnknown(payment, valid.context.slot);
    if (landed !== null) return landed;
    const isOver = !valid.value && nowMs() >= payment.deadAfterMs;
    return isOver ? { status: 'dead', refusal: refuse('PAYMENT_EXPIRED') } : { status: 'open' };
  }

  /**
   * What became of a payment that no record tells of. A database that was put back may not know what was sent, but the
   * signature follows from the key.
   *
   * @param bySlot the slot that the answering node must have seen: one address can be several nodes
   * @throws when the node does not say, or is behind
   */
  async #lookForUnknown(payment: OnChainPayment, bySlot: number): Promise<ChainVerdict | null> {
    const { rpc, key } = this.#parts;
    if (key === null || evidenceOf(payment).feePayer !== key.address) return null;
    const { hash } = await signed(payment, key);
    const { context, value } = (await rpc.call('getSignatureStatuses', [
      [hash],
      { searchTransactionHistory: true },
    ])) as { context: { slot: number }; value: ({ err: unknown; confirmationStatus: string } | null)[] };
    const [status] = value;
    if (status === null || status === undefined || status.confirmationStatus === 'processed') {
      if (!(context.slot >= bySlot)) throw new Error('the node is behind');
      return null;
    }
    return verdictOf(hash, { status: 'landed', ok: status.err === null, final: false });
  }

  /** Signs the payer's transaction. @returns why not, where it is not signed; null: no key of ours could */
  async #make(payment: OnChainPayment): Promise<EndingTransaction | { refusal: PaymentRefused | null }> {
    const { rpc, key } = this.#parts;
    if (key === null) return { refusal: null };
    checkTerms(transactionIn(payment), key.address);
    const triedMs = this.#tried.get(payment);
    const isFresh = triedMs !== undefined && performance.now() - triedMs <= TRIED_FRESH_MS;
    const refusal = isFresh ? null : await this.#whyNot(payment);
    if (refusal !== null) return { refusal };
    const endsAt = await endOfBlockhash(rpc, evidenceOf(payment).blockhash);
    if (endsAt === null) return { refusal: refuse('PAYMENT_EXPIRED') };
    return { ...(await signed(payment, key)), endsAt, paidBy: key.address };
  }

  /** Why the chain would not take it now; null: it would. @throws what the node's client throws */
  async #whyNot(payment: OnChainPayment): Promise<PaymentRefused | null> {
    for (let tries = 1; ; tries++) {
      const { value } = (await this.#parts.rpc.call('simulateTransaction', [
        transactionIn(payment),
        { encoding: 'base64', commitment: 'confirmed', sigVerify: false },
      ])) as { value: { err: unknown } };
      if (value.err === null) return null;
      if (value.err !== 'BlockhashNotFound') return this.#refusalFor(value.err, payment);
      if (tries >= BLOCKHASH_TRIES) return refuse('PAYMENT_EXPIRED');
      await sleep(BLOCKHASH_PAUSE_MS);
    }
  }

  /** What the simulation's error means. */
  async #refusalFor(err: unknown, payment: OnChainPayment): Promise<PaymentRefused> {
    const { key, tank, isPoor } = this.#parts;
    if (err === 'AlreadyProcessed') return refuse('PAYMENT_AUTHORIZATION_USED');
    if (err === 'AccountNotFound' || err === 'InsufficientFundsForFee' || isRentOfFeePayer(err)) {
      if (key !== null) tank?.saw(key.address, 0n);
      return refuse('PAYMENT_SETTLER_OUT_OF_GAS');
    }
    const code = customCodeAt(err, TRANSFER_AT);
    if (code === CUSTOM_FROZEN) return refuse('PAYMENT_PAYER_BLOCKED');
    if (code === CUSTOM_INSUFFICIENT || (await isPoor(payment))) return refuse('PAYMENT_INSUFFICIENT_FUNDS');
    return refuse('PAYMENT_VERIFICATION_FAILED');
  }
}

function idOf(payment: OnChainPayment): string {
  return `settle:${payment.identity}`;
}

function evidenceOf(payment: OnChainPayment): OwnEvidence {
  return payment.evidence as unknown as OwnEvidence;
}

/** What the chain knows it by once our key has signed; the same each time. */
async function signed(payment: OnChainPayment, by: SolanaKey): Promise<{ hash: string; raw: string }> {
  const wire = Buffer.from(transactionIn(payment), 'base64');
  const { messageBytes } = getTransactionDecoder().decode(wire);
  const signature = await by.sign(Uint8Array.from(messageBytes));
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

function transactionIn(payment: OnChainPayment): string {
  const { payload } = evidenceOf(payment).forFacilitator.paymentPayload as {
    payload: { transaction: string };
  };
  return payload.transaction;
}

/** The token program's own code, if it was that instruction which failed. */
function customCodeAt(err: unknown, index: number): number | null {
  if (typeof err !== 'object' || err === null || !('InstructionError' in err)) return null;
  const { InstructionError: failed } = err as { InstructionError: [number, unknown] };
  const [at, why] = failed;
  if (at !== index || typeof why !== 'object' || why === null || !('Custom' in why)) return null;
  return typeof why.Custom === 'number' ? why.Custom : null;
}

function isRentOfFeePayer(err: unknown): boolean {
  if (typeof err !== 'object' || err === null || !('InsufficientFundsForRent' in err)) return false;
  const { InsufficientFundsForRent: why } = err as { InsufficientFundsForRent: { account_index?: number } };
  return why.account_index === 0;
}
