/** Works out what a wallet's shares have cost it, from its own movements in the index. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@farebox/core/db/connection';
import type { Address } from 'viem';
import type { Indexer } from './indexer.ts';
import { keyOf } from './moves.ts';
import type { EntryCost, EntryCostOf } from './position.ts';

/** More movements of one wallet are not added up while somebody waits. */
const MAX_MOVES = 20_000;

/** The longest that a caller waits for the index, which may have a lot to read. */
const PATIENCE_MS = 4_000;

/** One movement of a wallet's shares, with a price. */
interface Own {
  /** Whether the shares came. */
  came: boolean;
  shares: bigint;
  /** The USDC units that were paid for them; null: they came from somebody else. */
  paid: bigint | null;
  /** The worth of so many shares then; null before the first price was told. */
  price: { assets: bigint; shares: bigint } | null;
}

/** Shares that go take their part of the cost with them (average cost). */
function costOf(moves: readonly Own[]): { shares: bigint; cost: EntryCost } {
  let [shares, paid, worthAtEntry] = [0n, 0n, 0n];
  for (const move of moves) {
    if (move.came) {
      const { price } = move;
      const worth = price === null ? 0n : (price.assets * move.shares) / price.shares;
      shares += move.shares;
      worthAtEntry += worth;
      paid += move.paid ?? worth;
      continue;
    }
    const left = shares > move.shares ? shares - move.shares : 0n;
    paid = shares === 0n ? 0n : (paid * left) / shares;
    worthAtEntry = shares === 0n ? 0n : (worthAtEntry * left) / shares;
    shares = left;
  }
  return { shares, cost: { paid, worthAtEntry } };
}

interface Row {
  came: boolean;
  shares: string;
  paid: string | null;
  priced_assets: string | null;
  priced_shares: string | null;
}

/** Asks the index, after it has caught up with the chain. What it cannot say for sure it does not say. */
export function entryCostFrom(sql: Database, indexer: Indexer, vault: Address): EntryCostOf {
  const key = vault.toLowerCase();
  return async (wallet, { shares, block }) => {
    const indexed = await Promise.race([
      indexer.catchUp().catch(() => null),
      sleep(PATIENCE_MS, null, { ref: false }),
    ]);
    if (indexed === null || indexed < block.number)
      return {
        cost: null,
        reason: `The vault’s events are not read up to block ${block.number} yet, so the yield is not known yet.`,
      };
    const its = keyOf(wallet);
    const rows = await sql<Row[]>`
      SELECT to_wallet IS NOT DISTINCT FROM ${its} AS came, m.shares::text, m.assets::text AS paid,
        coalesce(m.priced_assets, near.priced_assets)::text AS priced_assets,
        coalesce(m.priced_shares, near.priced_shares)::text AS priced_shares
      FROM yield_moves m
      LEFT JOIN LATERAL (
        SELECT p.priced_assets, p.priced_shares FROM yield_moves p
        WHERE m.priced_shares IS NULL AND p.vault = m.vault AND p.priced_shares IS NOT NULL
          AND (p.block_number, p.log_index) < (m.block_number, m.log_index)
        ORDER BY p.block_number DESC, p.log_index DESC LIMIT 1
      ) near ON true
      WHERE m.vault = ${key} AND (m.from_wallet = ${its} OR m.to_wallet = ${its}) AND m.block_number <= ${block.number}
      ORDER BY m.block_number, m.log_index LIMIT ${MAX_MOVES + 1}`;
    if (rows.length > MAX_MOVES)
      return {
        cost: null,
        reason: `This wallet moved shares more than ${MAX_MOVES} times, which is not added up here.`,
      };
    const found = costOf(
      rows.map((row) => ({
        came: row.came,
        shares: BigInt(row.shares),
        paid: row.paid === null ? null : BigInt(row.paid),
        price:
          row.priced_assets === null || row.priced_shares === null
            ? null
            : { assets: BigInt(row.priced_assets), shares: BigInt(row.priced_shares) },
      })),
    );
    if (found.shares === shares) return { cost: found.cost };
    return {
      cost: null,
      reason:
        'The events that were read do not add up to the shares of this wallet, so its yield is not told.',
    };
  };
}
