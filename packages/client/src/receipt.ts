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

/** @returns null for an answer that was not paid for */
export function receiptOf(
  { status, headers, signed }: HttpAnswer,
  { service, url, nowMs }: { service: string; url: string; nowMs: number },
): Receipt | null {
  if (signed === null || status < 200 || status >= 300) return null;
  const common = {
    callId: headers.get('x-call-id'),
    service,
    replayed: headers.get('idempotent-replayed') === 'true',
    atMs: nowMs,
  };
  const payment = signed['x402/payment'];
  const credential = signed['org.paymentauth/credential'];
  if (payment === undefined && credential === undefined) {
    const used = headers.get('x-credits-used');
    return {
      ...common,
      paidBy: 'key',
      amountUsd: used ?? '0',
      network: null,
      transaction: null,
      creditLeftUsd: headers.get('x-credits-remaining'),
      url: null,
      doubts: used === null || microsOf(used) === null ? ['the answer does not say what it cost'] : [],
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

interface Asked {
  amount: string;
  network: string | null;
}

const termsOfX402 = (payment: Record<string, unknown>): Asked => {
  const { amount, network } = recordOf(payment.accepted);
  return { amount: textOf(amount), network: typeof network === 'string' ? network : null };
};

const termsOfMpp = (credential: unknown): Asked => {
  const { amount, methodDetails } = recordOf(recordOf(recordOf(credential).challenge).request);
  const { chainId } = recordOf(methodDetails);
  return { amount: textOf(amount), network: typeof chainId === 'number' ? `eip155:${chainId}` : null };
};

interface Settled {
  transaction: string | null;
  amount: string | null;
  network: string | null;
  isSaid: boolean;
}

function settlementOf(headers: Headers): Settled {
  const text = headers.get('payment-response') ?? headers.get('x-payment-response') ?? '';
  const receipt = headers.get('payment-receipt') ?? '';
  const said = recordOf(parsed(fromBase64(text === '' ? receipt : text) ?? ''));
  const word = (value: unknown) => (typeof value === 'string' ? value : null);
  return {
    transaction: word(said.transaction) ?? word(said.reference),
    amount: word(said.amount),
    network: word(said.network),
    isSaid: Object.keys(said).length > 0,
  };
}

function doubtsOf(asked: Asked, { transaction, amount, network, isSaid }: Settled): string[] {
  const doubts: string[] = [];
  if (!isSaid) doubts.push('the answer has no receipt');
  else if (transaction === null) doubts.push('the receipt names no transaction');
  if (amount !== null && amount !== asked.amount)
    doubts.push(`the receipt says ${amount.slice(0, 40)} units, and ${asked.amount} were signed`);
  if (network !== null && network !== asked.network)
    doubts.push('the receipt is of another network than what was signed');
  return doubts;
}

/** Keeps the newest receipts in a store. */
export async function keepReceipt(store: Store, receipt: Receipt): Promise<void> {
  const kept = await readReceipts(store);
  await store.set(RECEIPTS, JSON.stringify([receipt, ...kept].slice(0, KEPT)));
}

/** @returns the newest first */
export async function readReceipts(store: Store): Promise<Receipt[]> {
  const kept = parsed((await store.get(RECEIPTS)) ?? '[]');
  return Array.isArray(kept) ? (kept as Receipt[]) : [];
}
