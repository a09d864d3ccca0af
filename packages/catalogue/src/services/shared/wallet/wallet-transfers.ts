import { type Address, BaseError, erc20Abi, getAbiItem, type Hex } from 'viem';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import type { EvmChainName } from '../../../upstreams/adapters/evm-chains.ts';
import type { ChainHead } from './wallet-chains.ts';

/** About five minutes of each chain. */
const WINDOW_BLOCKS: Readonly<Record<EvmChainName, bigint>> = {
  ethereum: 25n,
  base: 150n,
  polygon: 150n,
  arbitrum: 1_200n,
  optimism: 150n,
  bsc: 400n,
};
/** A window is read in this many parts, so that busy chains stay below what nodes give in one reply. */
const PARTS = 6n;
/** Refused parts are asked for again in halves, until this many requests were made. */
const MOST_REQUESTS = 14;
/** What is looked through at most; the window ends where it is reached. */
const MOST_TRANSFERS = 40_000;

const TRANSFER = getAbiItem({ abi: erc20Abi, name: 'Transfer' });

export interface Transfer {
  token: Address;
  from: Address;
  to: Address;
  /** In the token's smallest unit. */
  amount: bigint;
  transactionHash: Hex;
  logIndex: number;
  blockNumber: bigint;
  /** Where the node says it with the event. */
  timestampMs: number | null;
}

export interface ScannedWindow<Kept> {
  fromBlock: bigint;
  toBlock: bigint;
  /** How many transfers were looked through. */
  transfers: number;
  kept: Kept[];
}

/**
 * Looks through the ERC-20 transfers of some tokens in the newest blocks, from the newest back.
 *
 * @param keep what to keep of a transfer; null: nothing
 * @returns the window that was read without a gap; null when the node gave no part of it
 * @throws UpstreamUnavailable when the chain cannot be reached
 */
export async function recentTransfers<Kept>(
  { chain, blockNumber: newest }: ChainHead,
  tokens: readonly Address[],
  keep: (transfer: Transfer) => Kept | null,
): Promise<ScannedWindow<Kept> | null> {
  const window = WINDOW_BLOCKS[chain.name];
  const oldest = newest < window ? 0n : newest - window + 1n;
  let part = window / PARTS;
  let toBlock = newest;
  let transfers = 0;
  const kept: Kept[] = [];
  for (let requests = 0; requests < MOST_REQUESTS && toBlock >= oldest; requests++) {
    const fromBlock = toBlock - part + 1n > oldest ? toBlock - part + 1n : oldest;
    const read = await transfersBetween(chain, tokens, fromBlock, toBlock);
    if (read === null) {
      if (part === 1n) break;
      part /= 2n;
      continue;
    }
    transfers += read.length;
    kept.push(...read.map(keep).filter((one) => one !== null));
    toBlock = fromBlock - 1n;
    if (transfers >= MOST_TRANSFERS) break;
  }
  return toBlock === newest ? null : { fromBlock: toBlock + 1n, toBlock: newest, transfers, kept };
}

/** Null when the node refuses, as nodes do when there is too much to tell. */
async function transfersBetween(
  { client }: EvmChain,
  tokens: readonly Address[],
  fromBlock: bigint,
  toBlock: bigint,
): Promise<Transfer[] | null> {
  try {
    const logs = await client.getLogs({
      address: [...tokens],
      event: TRANSFER,
      strict: true,
      fromBlock,
      toBlock,
    });
    return logs.map((log) => ({
      token: log.address,
      from: log.args.from,
      to: log.args.to,
      amount: log.args.value,
      transactionHash: log.transactionHash,
      logIndex: log.logIndex,
      blockNumber: log.blockNumber,
      timestampMs: log.blockTimestamp == null ? null : Number(log.blockTimestamp) * 1_000,
    }));
  } catch (error) {
    if (error instanceof BaseError) return null;
    throw error;
  }
}
