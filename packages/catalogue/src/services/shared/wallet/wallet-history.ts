import type { Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { type Address, BaseError } from 'viem';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import {
  type EvmChainName,
  evmChainFacts,
  type ListedToken,
} from '../../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import { type ChainHead, headOf } from './wallet-chains.ts';
import { evmHoldingsAt, type Holding, nameOf, toMicroUsd, worth } from './wallet-holdings.ts';

/** How many midnights (UTC) are looked up. */
const DAYS = 7;
const DAY_MS = 86_400_000;
/** Each has a record of prices to be asked for. */
const MOST_HELD = 20;
/** A block this much before a midnight stands for it; finding the very last one would take several more requests. */
const NEAR_ENOUGH_MS = 5 * 60_000;
/** Over how many blocks a chain's pace is measured. */
const PACE_BLOCKS = 5_000n;
/** Each request at least halves what is left to search after the first few, so this is enough for any chain. */
const MOST_STEPS = 80;
/** A recorded price farther than this from a midnight, as a part of the day, does not count as that midnight's. */
const LARGEST_OFFSET_MS = 0.1 * DAY_MS;

/** The value of what the wallet held then, at the prices of that time. */
export interface PastValue {
  atMs: number;
  valueUsd: number;
  blocks: { chain: EvmChainName; blockNumber: bigint }[];
}

export interface WalletHistory {
  /** Oldest first; null when a chain's node no longer has the state of past blocks, or has no block that old. */
  points: PastValue[] | null;
  sources: Source[];
  notes: string[];
}

interface Moment {
  blockNumber: bigint;
  timestampMs: number;
}

/**
 * A wallet's value at the last seven midnights (UTC): balances from the state of the chains at those times, prices from
 * DefiLlama's record. Looked for are the well-known tokens, and the most valuable of those that it holds now. If a node keeps no
 * old state there is no history, rather than a guess from today's balances.
 *
 * @throws UpstreamUnavailable when DefiLlama fails
 */
export async function walletHistory(
  wallet: Address,
  chains: readonly { chain: EvmChain; held: readonly ListedToken[] }[],
  { defillama }: Pick<Upstreams, 'defillama'>,
  nowMs: number,
): Promise<WalletHistory> {
  const lastMidnightMs = Math.floor(nowMs / DAY_MS) * DAY_MS;
  const midnights = Array.from({ length: DAYS }, (_, day) => lastMidnightMs - (DAYS - 1 - day) * DAY_MS);
  const firstMs = lastMidnightMs - (DAYS - 1) * DAY_MS;
  const past = await Promise.all(
    chains.map(({ chain, held }) => pastHoldings(chain, tokensOf(chain, held), wallet, midnights)),
  );
  const lacking = past.flatMap((held, index) => (held === null ? [chains[index]?.chain.name ?? ''] : []));
  if (lacking.length > 0) {
    return without(`the node of ${lacking.join(' and ')} does not have the state of past blocks`);
  }

  const coins = [
    ...new Set(
      past.flatMap((held) => held?.flatMap((at) => at?.holdings ?? []) ?? []).map(({ coin }) => coin),
    ),
  ];
  const charts = new Map(
    await Promise.all(
      coins.map(async (coin) => [coin, await defillama.priceChart(coin, firstMs, DAYS, '1d')] as const),
    ),
  );
  const unpriced = new Set<string>();
  const points: PastValue[] = [];
  midnights.forEach((atMs, day) => {
    const blocks: PastValue['blocks'] = [];
    let valueUsd = 0;
    for (const [index, { chain }] of chains.entries()) {
      const held = past[index]?.[day];
      // The chain is younger than that.
      if (held === undefined || held === null) return;
      blocks.push({ chain: chain.name, blockNumber: held.blockNumber });
      for (const holding of held.holdings) {
        const chart = charts.get(holding.coin)?.value ?? [];
        const price = chart.find((point) => Math.abs(point.atMs - atMs) <= LARGEST_OFFSET_MS)?.priceUsd;
        if (price === undefined) unpriced.add(nameOf(holding));
        else valueUsd += worth(holding, price);
      }
    }
    points.push({ atMs, valueUsd: toMicroUsd(valueUsd), blocks });
  });
  if (points.length === 0) {
    return without(
      `${chains.map(({ chain }) => chain.name).join(' or ')} has no block of the last ${DAYS} midnights`,
    );
  }
  const notes: string[] = [
    `history counts the well-known tokens of each chain, and the ${MOST_HELD} most valuable of those that are held now.`,
  ];
  if (points.length < DAYS)
    notes.push(`history begins where all chains have blocks: ${points.length} day(s).`);
  if (unpriced.size > 0) {
    notes.push(`Not in history on some days, for want of a recorded price: ${[...unpriced].join(', ')}.`);
  }
  return { points, sources: [...charts.values()].map(({ source }) => source), notes };
}

/** The well-known tokens of a chain, and the first of those that are held. */
function tokensOf(chain: EvmChain, held: readonly ListedToken[]): ListedToken[] {
  const known = evmChainFacts(chain.name).tokens;
  const addresses = new Set(known.map(({ address }) => address.toLowerCase()));
  return [
    ...known,
    ...held.filter(({ address }) => !addresses.has(address.toLowerCase())).slice(0, MOST_HELD),
  ];
}

function without(reason: string): WalletHistory {
  return { points: null, sources: [], notes: [`history is null: ${reason}.`] };
}

interface PastHoldings {
  blockNumber: bigint;
  holdings: Holding[];
}

/** For each time what the wallet held, null before the chain's first block; null in all when old state is gone. */
async function pastHoldings(
  chain: EvmChain,
  sought: readonly ListedToken[],
  wallet: Address,
  timesMs: readonly number[],
): Promise<(PastHoldings | null)[] | null> {
  try {
    const head = await headOf(chain);
    const paceMs = await paceOf(head);
    return await Promise.all(
      timesMs.map(async (atMs) => {
        const blockNumber = await blockAt(head, paceMs, atMs);
        if (blockNumber === null) return null;
        const { native, tokens } = await evmHoldingsAt(chain, wallet, sought, blockNumber);
        return { blockNumber, holdings: [native, ...tokens].filter(({ amount }) => amount > 0n) };
      }),
    );
  } catch (error) {
    // Nodes word it in many ways, as an error of theirs or as an outage.
    if (error instanceof BaseError || error instanceof UpstreamUnavailable) return null;
    throw error;
  }
}

/** Mean time between the newest blocks, in milliseconds. */
async function paceOf({ chain, blockNumber, timestampMs }: ChainHead): Promise<number> {
  const blocks = blockNumber < PACE_BLOCKS ? blockNumber : PACE_BLOCKS;
  if (blocks === 0n) return 1;
  const { timestamp } = await chain.client.getBlock({ blockNumber: blockNumber - blocks });
  return Math.max(1, (timestampMs - Number(timestamp) * 1_000) / Number(blocks));
}

/**
 * A block of at most five minutes before a time, or the last one before it. Null when the chain began later.
 *
 * Steps back from the newest block by the chain's pace until one is old enough, then closes in between the two by
 * interpolation and by halves in turn: the first is quick on chains of even pace, the second sure on all others.
 */
async function blockAt(head: ChainHead, paceMs: number, atMs: number): Promise<bigint | null> {
  if (head.timestampMs <= atMs) return head.blockNumber;
  let after: Moment = head;
  let before: Moment | null = null;
  for (let step = 0; step < MOST_STEPS; step++) {
    const span = after.blockNumber - (before?.blockNumber ?? -1n);
    if (span <= 1n) break;
    const guess = within(span, stepBack(after, before, atMs, paceMs, step));
    const blockNumber = after.blockNumber - guess;
    const { timestamp } = await head.chain.client.getBlock({ blockNumber });
    const found: Moment = { blockNumber, timestampMs: Number(timestamp) * 1_000 };
    if (found.timestampMs > atMs) {
      after = found;
    } else {
      before = found;
      if (atMs - found.timestampMs <= NEAR_ENOUGH_MS) break;
    }
  }
  return before?.blockNumber ?? null;
}

/** How many blocks to step back from `after`. */
function stepBack(after: Moment, before: Moment | null, atMs: number, paceMs: number, step: number): bigint {
  const aimMs = after.timestampMs - atMs + NEAR_ENOUGH_MS / 2;
  if (before === null) return BigInt(Math.ceil((aimMs / paceMs) * 2 ** Math.min(step, 30)));
  const span = after.blockNumber - before.blockNumber;
  if (step % 2 === 1) return span / 2n;
  return BigInt(Math.ceil((Number(span) * aimMs) / (after.timestampMs - before.timestampMs)));
}

/** At least one, and less than the whole span. */
function within(span: bigint, blocks: bigint): bigint {
  return blocks < 1n ? 1n : blocks >= span ? span - 1n : blocks;
}
