/** Samples of each protocol's index and of how much of it was lent: noted every five minutes, by whichever replica looks. */
import type { Database } from '@farebox/core/db/connection';
import type { ProtocolName } from '../contracts/protocols.ts';

/** Between two samples there are at least so many seconds. */
export const SAMPLE_SECONDS = 300;
/** So far back is looked. */
const KEPT_SECONDS = 3 * 86_400;

/** One protocol's own figures. */
export interface Reading {
  /** The present size of a unit that was lent at the protocol's beginning, in a unit of the protocol's own. */
  index: bigint;
  /** The part of what was lent to it that its borrowers have: 0 to 1. */
  utilization: number;
}

/** Times are those of blocks, in seconds since 1970. */
export interface Sample {
  atS: number;
  /** Null: it could not be read. */
  protocols: Readonly<Record<ProtocolName, Reading | null>>;
}

interface Row {
  at: Date;
  protocols: Record<ProtocolName, { index: string; utilization: number } | null>;
}

/**
 * Notes a sample, unless there is one of these five minutes, and tells those before it.
 *
 * @param vault its address
 * @param sample.blockNumber that everything was read at
 * @returns the earlier samples of three days, the oldest first
 */
export async function noteSample(
  sql: Database,
  vault: string,
  sample: Sample & { blockNumber: bigint },
): Promise<Sample[]> {
  const key = vault.toLowerCase();
  const at = new Date(sample.atS * 1_000);
  const slot = new Date((sample.atS - (sample.atS % SAMPLE_SECONDS)) * 1_000);
  const oldest = new Date((sample.atS - KEPT_SECONDS) * 1_000);
  const texts = Object.fromEntries(
    Object.entries(sample.protocols).map(([name, reading]) => [
      name,
      reading === null ? null : { index: String(reading.index), utilization: reading.utilization },
    ]),
  );
  const rows = await sql<Row[]>`
    SELECT at, protocols FROM yield_index_samples
    WHERE vault = ${key} AND at >= ${oldest} AND at < ${at} AND block_number < ${sample.blockNumber} ORDER BY at`;
  await sql`
    INSERT INTO yield_index_samples (vault, at, block_number, protocols)
    SELECT ${key}, ${at}, ${sample.blockNumber}, ${JSON.stringify(texts)}::text::jsonb
    WHERE NOT EXISTS (SELECT FROM yield_index_samples WHERE vault = ${key} AND at >= ${slot})
    ON CONFLICT DO NOTHING`;
  await sql`DELETE FROM yield_index_samples WHERE vault = ${key} AND at < ${oldest}`;
  return rows.map(({ at: then, protocols }) => ({
    atS: then.getTime() / 1_000,
    protocols: {
      aave: readingIn(protocols.aave),
      compound: readingIn(protocols.compound),
      morpho: readingIn(protocols.morpho),
    },
  }));
}

function readingIn(kept: { index: string; utilization: number } | null): Reading | null {
  return kept === null ? null : { index: BigInt(kept.index), utilization: kept.utilization };
}
