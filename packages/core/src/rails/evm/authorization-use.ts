/** What became of an authorization on its chain: which transaction used it, and whether that transaction paid us. */
import { isHash } from 'viem';
import { type Rpc, RpcRefusal } from '../../chain-rpc/json-rpc.ts';
import { type MinedTransaction, quantity } from '../../relayer/node-reply.ts';
import {
  type Authorization,
  type Hex,
  stateCalldata,
  TOPIC_CANCELED,
  TOPIC_TRANSFER,
  TOPIC_USED,
  topicOf,
} from './eip3009.ts';
import { hexOf, type Node } from './settlement-call.ts';

/** Widths of a log query in blocks, the longest first. */
const LOG_WINDOWS = [9_000n, 1_900n, 450n];
const MAX_LOG_WINDOWS = 200;
/** An authorization is accepted only with a life of at most an hour. This leaves room for clocks that differ. */
const LONGEST_LIFE_S = 7_200n;
export interface Head {
  number: bigint;
  hash: Hex;
  /** Seconds since 1970. */
  timestamp: bigint;
}

/** The newest block. @throws when the node does not send one */
export async function readHead(rpc: Rpc): Promise<Head> {
  const block = await rpc.call('eth_getBlockByNumber', ['latest', false]);
  const { number, timestamp, hash } = (block ?? {}) as Record<string, unknown>;
  if (typeof hash !== 'string' || !isHash(hash)) throw new Error('the node sent no block');
  return { number: quantity(number), timestamp: quantity(timestamp), hash };
}

/**
 * Whether the asset says, in the state after a block, that the authorization was used or cancelled.
 *
 * One address can be several nodes, of which one stands still: its `latest` may be older than the head that another one
 * named. A block that is asked for by its hash (EIP-1898) is refused by a node that lacks it.
 *
 * @throws what the node's client throws
 */
export async function isUsed(
  { network, rpc }: Node,
  authorization: Authorization,
  at: 'latest' | Head,
): Promise<boolean> {
  const call = { to: network.asset, data: stateCalldata(authorization) };
  const block = at === 'latest' ? at : { blockHash: at.hash, requireCanonical: true };
  return quantity(await rpc.call('eth_call', [call, block])) !== 0n;
}

/**
 * The transaction that used or cancelled the authorization. It is searched from the head back to before the
 * authorization was signed.
 */
export async function useOf(
  { network, rpc }: Node,
  authorization: Authorization,
  head: Head,
): Promise<{ topic: string; hash: string } | null> {
  const topics = [[TOPIC_USED, TOPIC_CANCELED], topicOf(authorization.from), authorization.nonce];
  let last = head.number;
  let width = 0;
  for (let windows = 0; windows < MAX_LOG_WINDOWS; windows++) {
    const window = LOG_WINDOWS[width] ?? 0n;
    const first = last > window ? last - window : 0n;
    try {
      const [log] = (await rpc.call('eth_getLogs', [
        { address: network.asset, topics, fromBlock: hexOf(first), toBlock: hexOf(last) },
      ])) as { topics: string[]; transactionHash: string }[];
      if (log !== undefined) return { topic: log.topics[0]?.toLowerCase() ?? '', hash: log.transactionHash };
    } catch (error) {
      // Public nodes limit the width of a log query differently, and each words the refusal in its own way, so a
      // narrower width is tried.
      if (!(error instanceof RpcRefusal) || width === LOG_WINDOWS.length - 1) throw error;
      width += 1;
      continue;
    }
    const block = (await rpc.call('eth_getBlockByNumber', [hexOf(first), false])) as {
      timestamp: string;
    } | null;
    if (
      first === 0n ||
      block === null ||
      BigInt(block.timestamp) < authorization.validBefore - LONGEST_LIFE_S
    )
      return null;
    last = first - 1n;
  }
  return null;
}

/** As `EvmChain.paidBy`. @param asset the address of the USDC contract, in lower case */
export function paidBy(
  asset: string,
  mined: MinedTransaction,
  { from, to, value, nonce }: Authorization,
): boolean {
  if (mined.status !== 'success') return false;
  // The asset logs the use of the authorization and its transfer one directly after the other. A transfer elsewhere in
  // the transaction may be for something else, or be claimed for two authorizations at once.
  const used = mined.logs.findIndex(
    ({ address, topics }) =>
      address === asset && topics[0] === TOPIC_USED && topics[1] === topicOf(from) && topics[2] === nonce,
  );
  const moved = used === -1 ? undefined : mined.logs[used + 1];
  return (
    moved !== undefined &&
    moved.address === asset &&
    moved.topics[0] === TOPIC_TRANSFER &&
    moved.topics[1] === topicOf(from) &&
    moved.topics[2] === topicOf(to) &&
    BigInt(moved.data) === value
  );
}
