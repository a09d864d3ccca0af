/**
 * What a chain itself states about a wallet: what it is, how much it has sent, since when, and with whom it dealt
 * recently.
 */

import type { Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { type Address, BaseError, erc20Abi, getAbiItem, isAddressEqual, zeroAddress } from 'viem';
import type { Upstreams } from '../../../upstreams/index.ts';
import { searchBack } from '../chain/chain-logs.ts';
import type { ChainHead } from './wallet-chains.ts';

const TRANSFER = getAbiItem({ abi: erc20Abi, name: 'Transfer' });
/** Blocks that are asked at once while the first transaction is looked for. */
const PROBES = 3;
const LOG_WINDOW = { blocks: 50_000n, blocksPerRequest: 10_000n, requests: 8 };
/** Wallets with more counterparties are services. Counting stops here, and the answer says so. */
const MOST_COUNTERPARTIES = 5_000;
/** What code begins with when an account of a person acts by a contract's code (EIP-7702). */
const DELEGATION = '0xef0100';

export interface WalletActivity {
  /** Transactions sent; of a contract, contracts made, itself counted as one. */
  transactions: number;
  account: 'externally_owned' | 'contract' | 'delegated';
  /** Where the code of a delegated account comes from. */
  delegate: string | null;
  /** Wei. */
  balance: bigint;
  /** Block of its first transaction; null when it has sent none, or neither the node nor an index can say. */
  first: { blockNumber: bigint; timestampMs: number } | null;
  /** The index that told the first transaction; empty where the node did, or nobody. */
  sources: Source[];
  notes: string[];
}

/**
 * Reads all of it at one block. The first transaction is found by asking for the nonce at past blocks, in ever smaller
 * spans. Nodes without old state cannot answer that: then an index of transactions is asked, where one is configured.
 *
 * @throws UpstreamUnavailable when the chain cannot be reached
 */
export async function walletActivity(
  { chain, blockNumber }: ChainHead,
  wallet: Address,
  { etherscan }: Pick<Upstreams, 'etherscan'>,
): Promise<WalletActivity> {
  const { client } = chain;
  const [transactions, code, balance] = await Promise.all([
    client.getTransactionCount({ address: wallet, blockNumber }),
    client.getCode({ address: wallet, blockNumber }),
    client.getBalance({ address: wallet, blockNumber }),
  ]);
  const delegated = code?.toLowerCase().startsWith(DELEGATION) === true;
  const account =
    code === undefined || code === '0x' ? 'externally_owned' : delegated ? 'delegated' : 'contract';
  const delegate = delegated ? `0x${code?.slice(DELEGATION.length)}` : null;
  const facts = { transactions, account, delegate, balance } as const;
  if (transactions === 0) {
    return {
      ...facts,
      first: null,
      sources: [],
      notes: ['The age is null: the wallet has sent no transaction on this chain.'],
    };
  }
  const first = await firstTransaction({ chain, blockNumber }, wallet);
  if (first !== null) return { ...facts, first, sources: [], notes: [] };
  return { ...facts, ...(await firstByIndex({ chain }, wallet, etherscan)) };
}

/** The first transaction by an index, for a chain whose node keeps no old state. */
async function firstByIndex(
  { chain }: Pick<ChainHead, 'chain'>,
  wallet: Address,
  etherscan: Upstreams['etherscan'],
): Promise<Pick<WalletActivity, 'first' | 'sources' | 'notes'>> {
  const unknown = (why: string) => ({
    first: null,
    sources: [],
    notes: [
      `The age is null: the node of ${chain.name} does not keep the state of old blocks, and ${why}. It is unknown, not zero.`,
    ],
  });
  try {
    const { value, source } = await etherscan.firstSent(chain.chainId, wallet);
    if (!value.known) {
      return unknown(
        value.why === 'chain_not_covered'
          ? 'the plan of the index does not cover this chain'
          : 'none of its first transactions in the index was sent by it',
      );
    }
    const { blockNumber, timestampMs } = value;
    return {
      first: { blockNumber, timestampMs },
      sources: [{ ...source, asOf: source.retrievedAt }],
      notes: [`Its first transaction on ${chain.name} is told by Etherscan: the node keeps no old state.`],
    };
  } catch (error) {
    if (!(error instanceof UpstreamUnavailable)) throw error;
    return unknown(
      error.reason === 'not_configured'
        ? 'no index of transactions is configured (UPSTREAM_ETHERSCAN_API_KEY)'
        : `the index of transactions is ${error.reason.replaceAll('_', ' ')}`,
    );
  }
}

/** The first block after which the wallet had sent something; null when the node cannot say. */
async function firstTransaction(
  { chain, blockNumber }: Pick<ChainHead, 'chain' | 'blockNumber'>,
  wallet: Address,
): Promise<WalletActivity['first']> {
  const sentBy = (block: bigint) =>
    chain.client.getTransactionCount({ address: wallet, blockNumber: block }).then((nonce) => nonce > 0);
  try {
    // Sent nothing at `before`, something at `at`.
    let before = -1n;
    let at = blockNumber;
    while (at - before > 1n) {
      const span = at - before;
      const probes = Array.from(
        { length: PROBES },
        (_, index) => before + (span * BigInt(index + 1)) / BigInt(PROBES + 1),
      ).filter((block, index, all) => block > before && block < at && all.indexOf(block) === index);
      const sent = await Promise.all(probes.map(sentBy));
      probes.forEach((block, index) => {
        if (sent[index] === true && block < at) at = block;
        if (sent[index] === false && block > before) before = block;
      });
      if (probes.length === 0) break;
    }
    const { timestamp } = await chain.client.getBlock({ blockNumber: at });
    return { blockNumber: at, timestampMs: Number(timestamp) * 1_000 };
  } catch (error) {
    // Nodes report this in many ways, as an error or as an outage. Everything else was read from the same node, so it
    // is not an outage.
    if (error instanceof BaseError || error instanceof UpstreamUnavailable) return null;
    throw error;
  }
}

export interface Counterparty {
  address: Address;
  /** One of the transfers between the two. */
  transactionHash: string;
  direction: 'sent_to' | 'received_from';
}

export interface Counterparties {
  /** Each address and direction once, the newest first. */
  found: Counterparty[];
  fromBlock: bigint;
  toBlock: bigint;
  notes: string[];
}

/**
 * The addresses with which a wallet exchanged ERC-20 tokens in the newest blocks. Transfers of the chain's own coin
 * leave no such events.
 *
 * @returns null when the node lets nobody search
 * @throws UpstreamUnavailable when the chain cannot be reached
 */
export async function recentCounterparties(
  { chain, blockNumber }: ChainHead,
  wallet: Address,
): Promise<Counterparties | null> {
  const search = (args: { from: Address } | { to: Address }) =>
    searchBack(
      (range) => chain.client.getLogs({ event: TRANSFER, args, strict: true, ...range }),
      blockNumber,
      LOG_WINDOW,
    );
  try {
    const [sent, received] = await Promise.all([search({ from: wallet }), search({ to: wallet })]);
    const seen = new Map<string, Counterparty>();
    const add = (address: Address, direction: Counterparty['direction'], transactionHash: string) => {
      const key = `${direction}:${address.toLowerCase()}`;
      if (isAddressEqual(address, zeroAddress) || isAddressEqual(address, wallet) || seen.has(key)) return;
      if (seen.size < MOST_COUNTERPARTIES) seen.set(key, { address, direction, transactionHash });
    };
    for (const { args, transactionHash } of sent.found) add(args.to, 'sent_to', transactionHash);
    for (const { args, transactionHash } of received.found) add(args.from, 'received_from', transactionHash);
    const fromBlock = sent.fromBlock > received.fromBlock ? sent.fromBlock : received.fromBlock;
    return {
      found: [...seen.values()],
      fromBlock,
      toBlock: blockNumber,
      notes: [
        fromBlock === 0n
          ? 'Counterparties are those of ERC-20 transfers on this chain; transfers of the chain’s own coin leave no events.'
          : `Counterparties are those of ERC-20 transfers since block ${fromBlock}; older ones, and transfers of the chain’s own coin, are not seen.`,
        ...(seen.size >= MOST_COUNTERPARTIES
          ? [`Only the newest ${MOST_COUNTERPARTIES} counterparties were looked at.`]
          : []),
      ],
    };
  } catch (error) {
    if (error instanceof BaseError) return null;
    throw error;
  }
}
