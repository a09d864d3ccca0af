/** The keeper's moves, from the index of the vault's events, with the reasons that a keeper of ours gave. */

import type { Database } from '@farebox/core/db/connection';
import type { Address } from 'viem';
import type { ProtocolName } from '../contracts/protocols.ts';
import { timeText, usdcText } from '../figures.ts';
import type { MoveReason } from '../keeper/report.ts';

/** The newest are told; a keeper that moves every six hours makes fewer in seven weeks. */
const MAX_MOVES = 200;
const DAY_MS = 86_400_000;

interface Row {
  at: Date;
  block_number: bigint;
  transaction_hash: string;
  from_protocol: ProtocolName;
  to_protocol: ProtocolName;
  assets: string;
  received: string;
  reason: MoveReason | null;
}

export type KeeperMoves = ReturnType<typeof keeperMovesFrom>;

/** @returns reads the moves of so many days, the oldest first; of many the newest */
export function keeperMovesFrom(sql: Database, vaultAddress: Address, nowMs: () => number) {
  const vault = vaultAddress.toLowerCase();
  return async (days: number) => {
    const rows = await sql<Row[]>`
      SELECT moved.at, moved.block_number, moved.transaction_hash, moved.from_protocol, moved.to_protocol,
        moved.assets::text, moved.received::text, noted.reason
      FROM yield_keeper_moves moved
      LEFT JOIN LATERAL (
        SELECT reason FROM yield_keeper_reasons its
        WHERE its.vault = moved.vault AND its.allowed_at <= extract(epoch FROM moved.at)
          AND its.from_protocol = moved.from_protocol AND its.to_protocol = moved.to_protocol
          AND its.assets = moved.assets
        ORDER BY its.allowed_at DESC LIMIT 1
      ) noted ON true
      WHERE moved.vault = ${vault} AND moved.at > ${new Date(nowMs() - days * DAY_MS)}
      ORDER BY moved.block_number DESC, moved.log_index DESC LIMIT ${MAX_MOVES}`;
    return rows.reverse().map(told);
  };
}

function told(row: Row) {
  const { reason } = row;
  return {
    at: timeText(row.at.getTime()),
    blockNumber: String(row.block_number),
    transaction: row.transaction_hash,
    from: row.from_protocol,
    to: row.to_protocol,
    amountUsdc: usdcText(BigInt(row.assets)),
    receivedUsdc: usdcText(BigInt(row.received)),
    reason:
      reason === null
        ? null
        : {
            yearlyPercentBefore: reason.yearlyPercentBefore,
            yearlyPercentAfter: reason.yearlyPercentAfter,
            gainUsdcPerYear: usdcText(BigInt(reason.gainMicrosPerYear)),
            costUsdc: usdcText(BigInt(reason.costMicros)),
            partial: reason.partial,
          },
  };
}
