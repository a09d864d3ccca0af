/** What was paid for an answer, as its headers say, compared with what was signed for it. */
import type { HttpAnswer } from './http.ts';
import { fromBase64, parsed, recordOf, textOf } from './json.ts';
import { inUsd, microsOf } from './money.ts';
import type { Store } from './store.ts';

const KEPT = 200;
const RECEIPTS = 'farebox-receipts';

export interface Receipt {
  /** The server's name for the call; null when it gave none. */
  callId: string | null;
  service: string;
  paidBy: 'key' | 'x402' | 'mpp';
  amountUsd: string;
  /** Whether the answer had been bought before, and cost nothing more. */
  replayed: boolean;
  /** The chain and transaction of a wallet's payment. */
  network: string | null;
  transaction: string | null;
  /** The credit that a key has left, in USD. */
  creditLeftUsd: string | null;
  /** Where the server tells the state of a wallet's payment. */
  url: string | null;
  atMs: number;
  /** What does not agree with what was signed; empty when all does. */
  doubts: string[];
}

/**
 * @param micros the price that was agreed to; 0 where a key pays whatever it is
 * @returns null for an answer that was not paid for
 */
export function receiptOf(
  { status, headers, signed }: HttpAnswer,
  { service, url, nowMs, micros }: { service: string; url: string; nowMs: number; micros: bigint },
): Receipt | null {
  if (signed === null || status < 200 || status >= 300) return null;
  const common = {
    callId: wordIn(headers.get('x-call-id')),
    service,
    replayed: headers.get('idempotent-replayed') === 'true',
    atMs: nowMs,
  };
  const payment = signed['x402/payment'];
  const credential = signed['org.paymentauth/credential'];
  if (payment === undefined && credential === undefined) {
    const used = amountIn(headers.get('x-credits-used'));
    return {
      ...common,
      paidBy: 'key',
      amountUsd: used ?? '0',
      network: null,
      transaction: null,
      creditLeftUsd: amountIn(headers.get('x-credits-remaining')),
      url: null,
      doubts: doubtsOfKey(used, micros),
    };
  }
  const settled = settlementOf(headers);
  const asked = payment === undefined ? termsOfMpp(credential) : termsOfX402(payment);
  return {
    ...common,
    paidBy: payment === undefined ? 'mpp' : 'x402',
    amountUsd: inUsd(BigInt(asked.amount)),
    network: asked.network,
    transaction: settled.transaction,
    creditLeftUsd: null,
    url: common.callId === null ? null : `${url}/x402/receipts/${encodeURIComponent(common.callId)}`,
    doubts: doubtsOf(asked, settled),
  };
}

function doubtsOfKey(used: string | null, micros: bigint): string[] {
  if (used === null) return ['the answer does not say what it cost'];
  if (micros === 0n || (microsOf(used) ?? 0n) <= micros) return [];
  return [`${used} USD were charged, and the price that was told is ${inUsd(micros)} USD`];
}

const amountIn = (text: string | null): string | null =>
  text !== null && microsOf(text) !== null ? text : null;
/** A name that the server gave something; null for what is none. */
const wordIn = (value: unknown): string | null =>
  typeof value === 'string' && /^[\x21-\x7e]{1,100}$/.test(value) ? value : null;

/** The terms that were signed. */
interface Asked {
  amount: string;
  network: string | null;
  /** The address that pays, in small letters; null where the payment does not have it in plain. */
  payer: string | null;
  /** The method of MPP; null for x402. */
  method: string | null;
}

const termsOfX402 = (payment: Record<string, unknown>): Asked => {
  const { amount, network } = recordOf(payment.accepted);
  const { from } = recordOf(recordOf(payment.payload).authorization);
  const payer = typeof from === 'string' ? from.toLowerCase() : null;
  return { amount: textOf(amount), network: wordIn(network), payer, method: null };
};

const termsOfMpp = (credential: unknown): Asked => {
  const { method, request } = recordOf(recordOf(credential).challenge);
  const { amount, methodDetails } = recordOf(request);
  const { chainId } = recordOf(methodDetails);
  const network = typeof chainId === 'number' ? `eip155:${chainId}` : null;
  return { amount: textOf(amount), network, payer: null, method: textOf(method) };
};

interface Settled {
  transaction: string | null;
  amount: string | null;
  network: string | null;
  payer: string | null;
  method: string | null;
  isSaid: boolean;
  /** Whether it says that the money has moved. */
  isSettled: boolean;
}

function settlementOf(headers: Headers): Settled {
  const text = headers.get('payment-response') ?? headers.get('x-payment-response') ?? '';
  const receipt = headers.get('payment-receipt') ?? '';
  const said = recordOf(parsed(fromBase64(text === '' ? receipt : text) ?? ''));
  return {
    transaction: wordIn(said.transaction) ?? wordIn(said.reference),
    amount: wordIn(said.amount),
    network: wordIn(said.network),
    payer: wordIn(said.payer)?.toLowerCase() ?? null,
    method: wordIn(said.method),
    isSaid: Object.keys(said).length > 0,
    isSettled: said.success === true || said.status === 'success',
  };
}

function doubtsOf(asked: Asked, settled: Settled): string[] {
  const { transaction, amount, network, payer, method } = settled;
  if (!settled.isSaid) return ['the answer has no receipt'];
  const doubts: string[] = [];
  if (!settled.isSettled) doubts.push('the receipt does not say that the payment was settled');
  if (transaction === null) doubts.push('the receipt names no transaction');
  if (payer !== null && asked.payer !== null && payer !== asked.payer)
    doubts.push('the receipt is of another payer than who signed');
  if (method !== null && asked.method !== null && method !== asked.method)
    doubts.push('the receipt is of another method than what was signed');
  if (amount !== null && amount !== asked.amount)
    doubts.push(`the receipt says ${amount.slice(0, 40)} units, and ${asked.amount} were signed`);
  if (network !== null && network !== asked.network)
    doubts.push('the receipt is of another network than what was signed');
  return doubts;
}

/** Keeps the newest receipts in a store, one after another: what is read is not written over by who read it before. */
export function receiptKeeper(store: Store): (receipt: Receipt) => Promise<void> {
  let turn: Promise<unknown> = Promise.resolve();
  return (receipt) => {
    const keep = async () => {
      const kept = await readReceipts(store);
      // An answer that comes again is no second purchase.
      if (receipt.callId !== null && kept.some(({ callId }) => callId === receipt.callId)) return;
      await store.set(RECEIPTS, JSON.stringify([receipt, ...kept].slice(0, KEPT)));
    };
    const next = turn.then(() => (store.exclusively === undefined ? keep() : store.exclusively(keep)));
    turn = next.catch(() => undefined);
    return next;
  };
}

/** @returns the newest first */
export async function readReceipts(store: Store): Promise<Receipt[]> {
  const kept = parsed((await store.get(RECEIPTS)) ?? '[]');
  return Array.isArray(kept) ? (kept as Receipt[]) : [];
}
