/** Rates and holdings over time, for charts: noted every few minutes, told in as many points as a chart needs. */

import type { Database } from '@farebox/core/db/connection';
import type { Address } from 'viem';
import { PROTOCOLS, type ProtocolName } from '../contracts/protocols.ts';
import { timeText, usdcText } from '../figures.ts';
import { rounded } from './rates.ts';
import { type Snapshot, worthOf } from './snapshot.ts';

const SLOT_MS = 300_000;
const KEPT_DAYS = 400;
const DAY_MS = 86_400_000;
const MAX_POINTS = 300;
export const MAX_HISTORY_DAYS = 365;
/** A share, which has twelve decimals. */
const SHARE = 10n ** 12n;

export interface Samples {
  /** Notes this time's sample, unless it is noted. */
  note(read: () => Promise<Snapshot>): Promise<void>;
  history(days: number): Promise<{ everySeconds: number; points: readonly Point[] }>;
}

type Point = ReturnType<typeof pointOf>;
interface Row {
  at: Date;
  block_number: bigint;
  total_assets: string;
  priced_assets: string;
  active: ProtocolName;
  protocols: Record<ProtocolName, { apyPercent: number | null; assets: string }>;
  idle: string;
}

export function createSamples(sql: Database, vaultAddress: Address, nowMs: () => number): Samples {
  const vault = vaultAddress.toLowerCase();
  return {
    async note(read) {
      const at = new Date(nowMs() - (nowMs() % SLOT_MS));
      const [there] = await sql`SELECT FROM yield_samples WHERE vault = ${vault} AND at = ${at}`;
      if (there !== undefined) return;
      const { block, vault: state, protocols } = await read();
      const told = Object.fromEntries(
        Object.values(protocols).map(({ protocol, grossApyPercent, vaultAssets }) => [
          protocol,
          {
            apyPercent: grossApyPercent === null ? null : rounded(grossApyPercent),
            assets: String(vaultAssets),
          },
        ]),
      );
      await sql`
        INSERT INTO yield_samples (vault, at, block_number, total_assets, priced_assets, active, protocols, idle)
        VALUES (${vault}, ${at}, ${block.number}, ${String(state.totalAssets)}, ${String(state.pricedAssets)},
          ${state.active}, ${sql.json(told)}, ${String(state.idle)})
        ON CONFLICT DO NOTHING`;
      await sql`DELETE FROM yield_samples WHERE vault = ${vault} AND at < ${new Date(nowMs() - KEPT_DAYS * DAY_MS)}`;
    },
    async history(days) {
      const everySeconds = Math.max(
        SLOT_MS / 1_000,
        Math.ceil((days * DAY_MS) / MAX_POINTS / SLOT_MS) * (SLOT_MS / 1_000),
      );
      // The last of each stretch, found by its key: of a year a point is one row of three hundred and fifty.
      const [sinceMs, untilMs, stretchMs] = [nowMs() - days * DAY_MS, nowMs(), everySeconds * 1_000];
      const first = Math.floor(sinceMs / stretchMs);
      const rows = await sql<Row[]>`
        SELECT at, block_number, total_assets::text, priced_assets::text, active, protocols, idle::text
        FROM generate_series(${first}::integer, ${Math.floor(untilMs / stretchMs)}::integer) AS stretch
        CROSS JOIN LATERAL (
          SELECT * FROM yield_samples
          WHERE vault = ${vault} AND at > ${new Date(sinceMs)}
            AND at >= to_timestamp(stretch::bigint * ${everySeconds})
            AND at < to_timestamp((stretch::bigint + 1) * ${everySeconds})
          ORDER BY at DESC LIMIT 1
        ) last
        ORDER BY stretch`;
      return { everySeconds, points: rows.map(pointOf) };
    },
  };
}

function pointOf(row: Row) {
  const of = <Value>(read: (protocol: ProtocolName) => Value) =>
    Object.fromEntries(PROTOCOLS.map((protocol) => [protocol, read(protocol)])) as Record<
      ProtocolName,
      Value
    >;
  return {
    at: timeText(row.at.getTime()),
    blockNumber: String(row.block_number),
    tvlUsdc: usdcText(BigInt(row.total_assets)),
    pricePerShare: usdcText(worthOf(SHARE, { pricedAssets: BigInt(row.priced_assets) })),
    currentProtocol: row.active,
    grossApyPercent: of((protocol) => row.protocols[protocol].apyPercent),
    inProtocolUsdc: of((protocol) => usdcText(BigInt(row.protocols[protocol].assets))),
    idleUsdc: usdcText(BigInt(row.idle)),
  };
}
