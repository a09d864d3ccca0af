/**
 * Settling MPP `tempo` payments: the payer signs a whole transaction of its own, and we send it. Its hash is known
 * before it is sent, so what became of it can always be asked. https://docs.tempo.xyz
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { keccak256 } from 'viem';
import { Transaction } from 'viem/tempo';
import { type Rpc, RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import { type ChainVerdict, type OnChainPayment, PaymentRefused } from '../../paid-call/rail.ts';
import { asMined, type MinedTransaction } from '../../relayer/relayer.ts';
import type { NetworkPayments } from '../x402/evm-payments.ts';

const SETTLE_TIMEOUT_MS = 15_000;
const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 1_000;
/** How far the chain's clock must be past the transaction's end. */
const DEAD_MARGIN_S = 5n;
/** A transaction without an end of its own is watched for so long. */
const UNBOUNDED_LIFE_MS = 300_000;
const TOPIC_TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

export interface TempoEvidence extends Record<string, unknown> {
  scheme: 'tempo';
  /** The signed transaction. */
  raw: `0x${string}`;
  hash: string;
  /** Seconds since 1970; null: it has no end. */
  validBefore: number | null;
}

/** What a signed Tempo transaction says about itself. @throws when it is none */
export function readTempoTransaction(
  raw: `0x${string}`,
  nowMs: number,
): TempoEvidence & { deadAfterMs: number } {
  const transaction = Transaction.deserialize(raw as Transaction.TransactionSerializedTempo);
  const validBefore = 'validBefore' in transaction ? (transaction.validBefore ?? null) : null;
  const seconds = validBefore === null ? null : Number(validBefore);
  return {
    scheme: 'tempo',
    raw,
    hash: keccak256(raw),
    validBefore: seconds,
    deadAfterMs: seconds === null ? nowMs + UNBOUNDED_LIFE_MS : seconds * 1_000,
  };
}

function refused(code: string, message: string, hint: string): PaymentRefused {
  return new PaymentRefused(code, message, hint, { problem: 'verification-failed' });
}

const EXPIRED = () =>
  refused(
    'PAYMENT_EXPIRED',
    'The transaction was not mined before its end.',
    'Answer a fresh challenge, and send the credential at once: a Tempo transaction is valid for about 25 s.',
  );
const FAILED = () =>
  refused(
    'PAYMENT_TRANSACTION_FAILED',
    'The transaction failed on the chain, or moved something else.',
    'Fund the wallet and answer a fresh challenge.',
  );

export function tempoPayments(parts: {
  rpc: Rpc;
  report(step: 'verify' | 'settle', outcome: string): void;
}): Omit<NetworkPayments, 'verify'> {
  const { rpc } = parts;
  const evidenceOf = (payment: OnChainPayment) => payment.evidence as TempoEvidence;

  function pays(mined: MinedTransaction, payment: OnChainPayment): boolean {
    const to = `0x${payment.payTo.slice(2).toLowerCase().padStart(64, '0')}`;
    return (
      mined.status === 'success' &&
      mined.logs.some(
        ({ address, topics, data }) =>
          address === payment.asset.toLowerCase() &&
          topics[0] === TOPIC_TRANSFER &&
          topics[2] === to &&
          BigInt(data) === payment.amountUnits,
      )
    );
  }

  async function look(payment: OnChainPayment): Promise<ChainVerdict> {
    try {
      const { hash, validBefore } = evidenceOf(payment);
      // The head first: the receipt is then asked of a chain that is at least as long.
      const block = (await rpc.call('eth_getBlockByNumber', ['latest', false])) as { timestamp: string };
      const mined = asMined(await rpc.call('eth_getTransactionReceipt', [hash]));
      if (mined !== null) {
        return pays(mined, payment)
          ? { status: 'settled', transaction: mined.hash, blockNumber: mined.blockNumber }
          : { status: 'dead', refusal: FAILED() };
      }
      const over = validBefore !== null && BigInt(block.timestamp) > BigInt(validBefore) + DEAD_MARGIN_S;
      return over ? { status: 'dead', refusal: EXPIRED() } : { status: 'open' };
    } catch (error) {
      return { status: 'unknown', cause: error };
    }
  }

  async function settle(payment: OnChainPayment): Promise<ChainVerdict> {
    const before = await look(payment);
    if (before.status !== 'open') return before;
    const untilMs = performance.now() + SETTLE_TIMEOUT_MS;
    let refusedBy: RpcRefusal | null = null;
    try {
      await rpc.call('eth_sendRawTransaction', [evidenceOf(payment).raw]);
    } catch (error) {
      // Somebody may have sent it before us; else the node will not have it, and nothing is on its way.
      if (error instanceof RpcRefusal && !/already known|already imported/i.test(error.message))
        refusedBy = error;
    }
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_LOOK_MS)) {
      const looked = await look(payment);
      if (looked.status === 'settled' || looked.status === 'dead') return looked;
      if (refusedBy !== null) return { status: 'refused', refusal: FAILED() };
      if (performance.now() + pauseMs > untilMs) return { status: 'unknown', cause: 'not mined in time' };
      await sleep(pauseMs);
    }
  }

  return {
    look,
    async settle(payment) {
      const verdict = await settle(payment).catch(
        (error: unknown) => ({ status: 'unknown', cause: error }) as const,
      );
      parts.report('settle', verdict.status);
      return verdict;
    },
    // A Tempo block is final when it is there.
    async finality(payment, transaction) {
      try {
        const mined = asMined(await rpc.call('eth_getTransactionReceipt', [transaction]));
        return mined !== null && pays(mined, payment) ? 'final' : 'gone';
      } catch {
        return 'unknown';
      }
    },
    canRefund: false,
    refund: async () => null,
  };
}
