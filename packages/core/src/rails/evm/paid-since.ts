/** Reads from a chain with the EVM's logs what was paid to us, and what was sent back by us, since a time. */
import type { NodeRpc } from '../../chain-rpc/json-rpc.ts';
import type { OnChainPayment } from '../../paid-call/rail.ts';
import { asMined, field, type MinedTransaction, quantity } from '../../relayer/node-reply.ts';

/** The most blocks that every provider lists logs of at once. */
const LOG_WINDOW = 450n;
/** Two weeks of a chain with a block every two seconds. */
const MAX_WINDOWS = 1_400;
const RECEIPTS_AT_ONCE = 20;
/** `Transfer(address indexed from, address indexed to, uint256 value)` */
const TOPIC_TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** A payment that came, and that its payer had signed for us. */
export interface CamePayment {
  payment: OnChainPayment;
  transaction: string;
  /** Null on a chain where block numbers play no part. */
  blockNumber: bigint | null;
}

/** A transfer from one of our refunding keys. */
export interface SentBack {
  transaction: string;
  to: string;
  units: bigint;
  /** The call that the transaction says it is for; null: it says none. */
  callId: string | null;
}

/** What a chain says of a time. */
export interface PaidSince {
  came: readonly CamePayment[];
  /** Transfers to us that no authorization moved: their senders may name them by their hash, and buy by it. */
  plain: readonly { transaction: string; from: string; units: bigint }[];
  /** Transfers from our refunding keys. */
  sentBack: readonly SentBack[];
}

/** The same of one of our chains. */
export interface PaidOnNetwork {
  /** CAIP-2. */
  network: string;
  /** The rail that its payments come by. */
  rail: 'x402' | 'mpp';
  /** Null: its node has forgotten a part of that time. */
  paid: PaidSince | null;
  /** How long a refund that was sent may still land beside another one of the same call; 0: the keys' nonces let one of them land. */
  landsWithinMs: number;
}

interface Log {
  transactionHash: string;
  topics: readonly string[];
  data: string;
}

/** The place that payments come to. */
interface PaidPlace {
  /** The chain's name, for people. */
  title: string;
  rpc: Pick<NodeRpc, 'call'>;
  /** The token's contract, in lower case. */
  asset: string;
  /** Our recipient, in lower case. */
  payTo: string;
  /** The addresses of our refunding keys. */
  refunders: readonly string[];
  /** Reads the payment behind a transfer to us; null: its sender signed no payment for us. */
  paymentOf(transfer: MovedToUs): OnChainPayment | null;
}

/** A transfer to us, in its transaction. */
export interface MovedToUs {
  mined: MinedTransaction;
  /** The place of its log among those of the transaction. */
  index: number;
  /** In lower case. */
  from: string;
  units: bigint;
}

/**
 * Reads all blocks since a time.
 *
 * @throws what the node's client throws; RangeError when that is too long ago to be read at once
 */
export async function paidSince(place: PaidPlace, sinceMs: number): Promise<PaidSince> {
  const { rpc, title, asset, payTo, refunders } = place;
  const head = quantity(await rpc.call('eth_blockNumber', []));
  const first = await blockAt(rpc, head, BigInt(Math.floor(sinceMs / 1_000)));
  if (head - first > LOG_WINDOW * BigInt(MAX_WINDOWS))
    throw new RangeError(`${title} has ${head - first} blocks since then: too many to be read`);
  const toUs = new Set<string>();
  const sentBack: PaidSince['sentBack'][number][] = [];
  for (let from = first; from <= head; from += LOG_WINDOW) {
    const last = from + LOG_WINDOW - 1n < head ? from + LOG_WINDOW - 1n : head;
    const logsOf = async (topics: readonly unknown[]) =>
      (await rpc.call('eth_getLogs', [
        { address: asset, topics, fromBlock: hexOf(from), toBlock: hexOf(last) },
      ])) as Log[];
    for (const { transactionHash } of await logsOf([TOPIC_TRANSFER, null, topicOf(payTo)]))
      toUs.add(transactionHash);
    if (refunders.length === 0) continue;
    for (const log of await logsOf([TOPIC_TRANSFER, refunders.map(topicOf)]))
      sentBack.push({
        transaction: log.transactionHash,
        to: addressIn(log.topics[2]),
        units: BigInt(log.data),
        callId: null,
      });
  }
  const came: CamePayment[] = [];
  const plain: PaidSince['plain'][number][] = [];
  for (const moved of await readTransfers(place, [...toUs])) {
    const { mined, from, units } = moved;
    const payment = place.paymentOf(moved);
    const { hash: transaction, blockNumber } = mined;
    if (payment === null) plain.push({ transaction, from, units });
    else came.push({ payment, transaction, blockNumber });
  }
  return { came, plain, sentBack };
}

/** Reads the transfers to us in these transactions. */
async function readTransfers(
  { rpc, asset, payTo }: PaidPlace,
  transactions: readonly string[],
): Promise<MovedToUs[]> {
  const us = topicOf(payTo);
  const all = await inBatches(transactions, async (hash) => {
    const mined = asMined(await rpc.call('eth_getTransactionReceipt', [hash]));
    if (mined === null) throw new Error(`the node lists ${hash} and does not have it`);
    return [...mined.logs.entries()].flatMap(([index, { address, topics, data }]): MovedToUs[] =>
      address === asset && topics[0] === TOPIC_TRANSFER && topics[2] === us && BigInt(data) > 0n
        ? [{ mined, index, from: addressIn(topics[1]), units: BigInt(data) }]
        : [],
    );
  });
  return all.flat();
}

/** The first block that is not older than a time, in seconds since 1970. */
async function blockAt(rpc: Pick<NodeRpc, 'call'>, head: bigint, seconds: bigint): Promise<bigint> {
  let [low, high] = [0n, head];
  while (low < high) {
    const middle = (low + high) / 2n;
    const block = await rpc.call('eth_getBlockByNumber', [hexOf(middle), false]);
    if (quantity(field(block, 'timestamp')) < seconds) low = middle + 1n;
    else high = middle;
  }
  return low;
}

async function inBatches<T, R>(all: readonly T[], act: (each: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (let at = 0; at < all.length; at += RECEIPTS_AT_ONCE)
    done.push(...(await Promise.all(all.slice(at, at + RECEIPTS_AT_ONCE).map(act))));
  return done;
}

const topicOf = (address: string) => `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;
const addressIn = (topic: string | undefined) => `0x${topic?.slice(26) ?? ''}`.toLowerCase();
const hexOf = (value: bigint) => `0x${value.toString(16)}`;
