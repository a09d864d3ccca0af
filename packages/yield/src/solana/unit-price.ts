/**
 * The price paid for a unit of work, in millionths of a lamport, so that a transaction lands while others compete for the same accounts.
 * Nodes tell the least that landed in each slot, which is nothing as a rule. Some tell percentiles too; elsewhere the transactions
 * that wrote to the reserve in recent blocks are read.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { RpcRefusal } from '@farebox/core/chain-rpc/json-rpc';
import { COMPUTE_BUDGET_PROGRAM, LIQUIDITY_VAULT, USDC_RESERVE } from './addresses.ts';
import type { Landed, Node } from './node.ts';

export const LEVELS = ['low', 'medium', 'high'] as const;
export type Level = (typeof LEVELS)[number];
/** A level, or the price itself. */
export type Priority = Level | bigint;

/** The part of those who compete that pays less, in hundredths of a percent. */
const PERCENTILES: Readonly<Record<Level, number>> = { low: 5_000, medium: 7_500, high: 9_000 };
const LEAST: Readonly<Record<Level, bigint>> = { low: 1_000n, medium: 1_000n, high: 5_000n };
/** No market moves a price above these: somebody could pay much for a few transactions to make others pay. */
const MOST: Readonly<Record<Level, bigint>> = { low: 200_000n, medium: 500_000n, high: 2_000_000n };
/** The most that a caller can ask for: with 200,000 units it is 0.002 SOL. */
export const MOST_ASKED = 10_000_000n;
/** How many recent transactions are read, and from how many slots. */
const RECENT = { transactions: 12, slots: 150 };
/** The longest that a caller waits for prices. */
const PATIENCE_MS = 2_000;
/** The instruction that sets the price: its number, and the bytes of a u64 behind it. */
const SET_UNIT_PRICE = { number: 3, bytes: 9 };

export interface Prices {
  levels: Readonly<Record<Level, bigint>>;
  /** `least`: neither could be asked, so the least is paid. */
  source: 'percentiles' | 'recent_blocks' | 'least';
}

/** The price for a unit, and how it came about. */
export interface UnitPrice extends Prices {
  price: bigint;
  priority: Level | 'asked';
}

const NONE: Prices = { levels: LEAST, source: 'least' };

type Asked = Pick<Node, 'priorityFees' | 'recentWrites' | 'transaction'>;

/** Reads the prices that others pay now. Whatever the node says or does not say, this answers within two seconds. */
export async function pricesNow(node: Asked): Promise<Prices> {
  const stopped = new AbortController();
  const late = pause(PATIENCE_MS, NONE, { signal: stopped.signal }).catch(() => NONE);
  try {
    return await Promise.race([pricesOf(node).catch(() => NONE), late]);
  } finally {
    stopped.abort();
  }
}

/** @param priority what the caller asks for */
export function priceFor(prices: Prices, priority: Priority): UnitPrice {
  return typeof priority === 'bigint'
    ? { ...prices, price: priority, priority: 'asked' }
    : { ...prices, price: prices.levels[priority], priority };
}

async function pricesOf(node: Asked): Promise<Prices> {
  const told = await percentilesOf(node);
  if (told !== null) return { levels: told, source: 'percentiles' };
  // Who asks for no priority does not compete: a few such transactions must not hide those who do.
  const paid = (await recentlyPaid(node)).filter((price) => price > 0n);
  return { levels: levelsOf((level) => percentile(paid, PERCENTILES[level])), source: 'recent_blocks' };
}

/** @returns null: this node has none. One that does not know the word answers with the least of each slot all the same. */
async function percentilesOf(node: Asked): Promise<Record<Level, bigint> | null> {
  const accounts = [USDC_RESERVE, LIQUIDITY_VAULT];
  try {
    const [least, ...higher] = await Promise.all([
      node.priorityFees(accounts, null),
      ...LEVELS.map((level) => node.priorityFees(accounts, PERCENTILES[level])),
    ]);
    const [low = [], medium = [], high = []] = higher;
    const isMore = sumOf(high) > sumOf(least);
    if (!isMore) return null;
    const found = { low, medium, high };
    // Slots in which nobody paid say nothing about those who compete.
    return levelsOf((level) =>
      percentile(
        found[level].filter((fee) => fee > 0n),
        5_000,
      ),
    );
  } catch (error) {
    if (error instanceof RpcRefusal) return null;
    throw error;
  }
}

/** The unit prices of transactions that wrote to the reserve in recent blocks. */
async function recentlyPaid(node: Asked): Promise<bigint[]> {
  const listed = await node.recentWrites(LIQUIDITY_VAULT, RECENT.transactions);
  const newest = listed[0]?.slot ?? 0;
  const recent = listed.filter(({ slot }) => slot > newest - RECENT.slots);
  const landed = await Promise.all(
    recent.map(({ signature }) => node.transaction(signature, 'confirmed').catch(() => null)),
  );
  return landed.filter((each) => each !== null && each !== 'unreadable').map(paidIn);
}

/** The unit price of a transaction; 0: it asked for no priority. */
function paidIn({ instructions }: Landed): bigint {
  for (const { program, data } of instructions)
    if (
      program === COMPUTE_BUDGET_PROGRAM &&
      data[0] === SET_UNIT_PRICE.number &&
      data.length === SET_UNIT_PRICE.bytes
    )
      return Buffer.from(data).readBigUInt64LE(1);
  return 0n;
}

/** Each level within its bounds, and none below the one before it. */
function levelsOf(of: (level: Level) => bigint): Record<Level, bigint> {
  const low = within('low', of('low'));
  const medium = larger(within('medium', of('medium')), low);
  return { low, medium, high: larger(within('high', of('high')), medium) };
}

function within(level: Level, price: bigint): bigint {
  return price < LEAST[level] ? LEAST[level] : price > MOST[level] ? MOST[level] : price;
}

/** The least that so many of them do not exceed; 0 of none. @param part in hundredths of a percent */
function percentile(prices: readonly bigint[], part: number): bigint {
  const sorted = prices.toSorted((one, other) => (one < other ? -1 : one > other ? 1 : 0));
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * part) / 10_000))] ?? 0n;
}

function sumOf(fees: readonly bigint[]): bigint {
  return fees.reduce((sum, fee) => sum + fee, 0n);
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}
