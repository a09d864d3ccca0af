/**
 * Settles MPP `tempo` payments. The payer signs a whole transaction, and we send it. Its hash is known before it is
 * sent, so its outcome can always be looked up. https://docs.tempo.xyz
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeFunctionData, type Hex, keccak256, toBytes } from 'viem';
import type { Transaction as TempoTransactions } from 'viem/tempo';
import { type NodeRpc, RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import { unavailable } from '../../http/problem.ts';
import { type ChainVerdict, type OnChainPayment, PaymentRefused } from '../../paid-call/rail.ts';
import { asMined, type MinedTransaction, minedUpTo } from '../../relayer/node-reply.ts';
import type { MovedToUs } from '../evm/paid-since.ts';
import { type NetworkPayments, type Report, reported } from '../on-chain/payments.ts';
import { TEMPO } from './methods.ts';

const SETTLE_TIMEOUT_MS = 15_000;
const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 1_000;
/** How far the chain's clock must be past the end of the transaction before it counts as dead. */
const DEAD_MARGIN_S = 5n;
/**
 * A transaction that ends sooner than this is refused before the service runs: the node would no longer take it
 * afterwards.
 */
const LEAST_LIFE_MS = 4_000;
/** JSON-RPC errors that concern the node's own state and not the transaction. */
const NODE_TROUBLES: readonly number[] = [-32005, -32603];
/** The first bytes of every payment memo: those of keccak256('mpp'), and a version. */
const MEMO_START = `${keccak256(toBytes('mpp')).slice(0, 10)}01`;
const TOPIC_TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

export interface TempoEvidence extends Record<string, unknown> {
  scheme: 'tempo';
  /** The signed transaction. */
  raw: Hex;
  hash: Hex;
  /**
   * The call that pays, if it is the only one. Null when there are others: it may depend on them, for example on a
   * swap.
   */
  data: Hex | null;
  /** Seconds since 1970. */
  validBefore: number;
}

export interface TempoTransaction {
  /** In the canonical encoding, whichever encoding it came in. */
  raw: Hex;
  hash: Hex;
  chainId: number;
  /** Who signed it: recovered from the signature, and proven by the chain when it takes the transaction. */
  sender: string;
  /** Seconds since 1970; null when it has no end, or no beginning. */
  validBefore: number | null;
  validAfter: number | null;
  /** The number of calls in the transaction. */
  callCount: number;
  /** Those of its calls that are transfers with a memo. */
  transfers: readonly { data: Hex; token: string; to: string; amountUnits: bigint; memo: Hex }[];
}

/**
 * What a signed Tempo transaction says about itself.
 *
 * The same transaction can be encoded in many ways: the last byte of a signature may be 0, 27 or 35, for example. A
 * node accepts each of them, re-encodes it canonically, and knows it by the hash of that. We do the same, because
 * otherwise the money would move under a hash that nobody looks for.
 *
 * @throws when it is not a Tempo transaction, or waits for somebody else to pay its fee
 */
export async function readTempoTransaction(given: Hex): Promise<TempoTransaction> {
  if (!given.startsWith('0x76')) throw new Error("not of Tempo's own type");
  // Loaded with the first payment: it takes 34 MB of memory, which a server without Tempo need not spend.
  const { Abis, Transaction } = await import('viem/tempo');
  const transaction = Transaction.deserialize(given as TempoTransactions.TransactionSerializedTempo);
  const { from, signature, calls = [], chainId, feePayerSignature } = transaction;
  // While a fee payer has still to sign, the sender is only claimed. We accept only a sender that follows from the
  // signature.
  if (from === undefined || signature === undefined || feePayerSignature === null)
    throw new Error('unsigned');
  const raw = (await Transaction.serialize(transaction)) as Hex;
  return {
    raw,
    hash: keccak256(raw),
    chainId,
    sender: from.toLowerCase(),
    validBefore: transaction.validBefore ?? null,
    validAfter: transaction.validAfter ?? null,
    callCount: calls.length,
    transfers: calls.flatMap(({ to, data }) => {
      if (to === undefined || to === null || data === undefined) return [];
      try {
        const call = decodeFunctionData({ abi: Abis.tip20, data });
        if (call.functionName !== 'transferWithMemo') return [];
        const [payee, amountUnits, memo] = call.args;
        return [{ data, token: to.toLowerCase(), to: payee.toLowerCase(), amountUnits, memo }];
      } catch {
        return [];
      }
    }),
  };
}

/** Whether a transfer's memo names this challenge, whose id only the payer was told. https://paymentauth.org (tempo) */
export function isBoundTo(memo: Hex, challengeId: string): boolean {
  const nonce = keccak256(toBytes(challengeId)).slice(2, 16);
  return memo.startsWith(MEMO_START) && memo.endsWith(nonce);
}

/** The name of a payment that the chain takes once. */
export function identityOfTempo({ hash }: Pick<TempoTransaction, 'hash'>): string {
  return `${TEMPO}:tx:${hash}`;
}

/** The payment behind a transfer to us, as far as the chain tells of it; null: it bears no memo of a challenge. */
export function forgottenTempoPayment(
  place: { network: string; asset: string; payTo: string },
  { mined, from, units }: MovedToUs,
): OnChainPayment | null {
  const { hash, logs } = mined;
  const bearsMemo = logs.some(({ topics, data }) =>
    [...topics, data].some((text) => text.includes(MEMO_START)),
  );
  if (!bearsMemo) return null;
  return {
    ...place,
    identity: identityOfTempo({ hash }),
    payer: from,
    amountUnits: units,
    movedBefore: true,
    deadAfterMs: 0,
    evidence: { scheme: 'tempo', raw: '0x', hash, data: null, validBefore: 0, forgotten: true },
  };
}

function refused(code: string, message: string, hint: string): PaymentRefused {
  return new PaymentRefused(code, message, hint);
}

const EXPIRED = () =>
  refused(
    'PAYMENT_EXPIRED',
    'The transaction was not mined before its end.',
    'Answer a fresh challenge, and send the credential at once: a Tempo transaction is valid for about 25 s.',
  );
const INSUFFICIENT = () =>
  refused(
    'PAYMENT_INSUFFICIENT_FUNDS',
    'The token does not let the payer move the price: its wallet does not hold it, or is blocked.',
    'Fund the wallet, and answer a fresh challenge.',
  );
const FAILED = () =>
  refused(
    'PAYMENT_TRANSACTION_FAILED',
    'The transaction failed on the chain, or moved something else.',
    'Fund the wallet and answer a fresh challenge.',
  );

/** The receipt of a transaction, if it was mined, and whether it can be mined no more. @throws when the node does not say */
async function outcomeOf(
  rpc: Pick<NodeRpc, 'call' | 'together'>,
  { hash, validBefore }: TempoEvidence,
): Promise<{ mined: MinedTransaction | null; isOver: boolean }> {
  // The head is read first, so that a receipt which is missing up to it is missing for good.
  const head = (await rpc.call('eth_getBlockByNumber', ['latest', false])) as {
    timestamp: string;
    hash: Hex;
  };
  const isOver = BigInt(head.timestamp) > BigInt(validBefore) + DEAD_MARGIN_S;
  const found = asMined(await rpc.call('eth_getTransactionReceipt', [hash]));
  return { mined: found === null && isOver ? await minedUpTo(rpc, head.hash, hash) : found, isOver };
}

/** @param parts.refunds null when no refunds can be sent */
export function tempoPayments(parts: {
  rpc: Pick<NodeRpc, 'call' | 'together'>;
  refunds: Pick<NetworkPayments, 'refund'> | null;
  nowMs(): number;
  report: Report;
}): NetworkPayments {
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
      const { mined, isOver } = await outcomeOf(rpc, evidenceOf(payment));
      if (mined !== null) {
        return pays(mined, payment)
          ? { status: 'settled', transaction: mined.hash, blockNumber: mined.blockNumber }
          : { status: 'dead', refusal: FAILED() };
      }
      return isOver ? { status: 'dead', refusal: EXPIRED() } : { status: 'open' };
    } catch (error) {
      return { status: 'unknown', cause: error };
    }
  }

  async function verify(payment: OnChainPayment): Promise<void> {
    const { data, validBefore } = evidenceOf(payment);
    if (validBefore * 1_000 < parts.nowMs() + LEAST_LIFE_MS) throw EXPIRED();
    if (data === null) return;
    try {
      // Simulates the transfer alone, because not every node simulates a whole transaction, as the library wants.
      await rpc.call('eth_call', [{ from: payment.payer, to: payment.asset, data }, 'latest']);
    } catch (error) {
      if (error instanceof RpcRefusal && !NODE_TROUBLES.includes(error.code)) throw INSUFFICIENT();
      throw unavailable('CHAIN_UNAVAILABLE', 'Tempo does not answer.', 5_000, {}, error);
    }
  }

  async function settle(payment: OnChainPayment): Promise<ChainVerdict> {
    const before = await look(payment);
    if (before.status !== 'open') return before;
    const untilMs = performance.now() + SETTLE_TIMEOUT_MS;
    let isSent = false;
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LAST_LOOK_MS)) {
      // A node may pass the transaction on and still answer with an error of any code, so a failed send proves nothing.
      // Until the chain is past its end the transaction may be mined, so the only verdicts are those of `look`.
      if (!isSent) {
        isSent = await rpc.call('eth_sendRawTransaction', [evidenceOf(payment).raw]).then(
          () => true,
          () => false,
        );
      }
      const looked = await look(payment);
      if (looked.status === 'settled' || looked.status === 'dead') return looked;
      if (performance.now() + pauseMs > untilMs) return { status: 'unknown', cause: 'not mined in time' };
      await sleep(pauseMs);
    }
  }

  return {
    look,
    ...reported({ verify, settle }, parts.report),
    // A Tempo block is final as soon as it exists.
    async finality(payment, transaction) {
      try {
        const mined = asMined(await rpc.call('eth_getTransactionReceipt', [transaction]));
        return mined !== null && pays(mined, payment) ? 'final' : 'gone';
      } catch {
        return 'unknown';
      }
    },
    canRefund: parts.refunds !== null,
    refund: async (refund) => (await parts.refunds?.refund(refund)) ?? null,
  };
}
