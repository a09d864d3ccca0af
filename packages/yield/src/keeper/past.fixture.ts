/** For tests: hours that a keeper has not lived through, as the samples that it would have noted. */
import assert from 'node:assert/strict';
import type { Database } from '../../../core/src/db/connection.ts';
import { PROTOCOLS, type ProtocolName } from '../contracts/protocols.ts';
import type { KeeperReport } from './report.ts';

const SAMPLE_S = 300;
const HOURS_S = 26 * 3_600;
const YEAR_S = 31_536_000;

/** By protocol: percent a year, and the part of it that was lent. */
export type Past = Partial<Record<ProtocolName, { percent?: number; utilization?: number }>>;

/**
 * Writes down 26 hours in which the three have paid and lent what they pay and lend now, or what is told.
 *
 * @param parts.look a keeper's round, which notes what is read now
 */
export async function writePast(
  sql: Database,
  { vault, look, past }: { vault: string; look(): Promise<KeeperReport>; past: Past },
): Promise<void> {
  await sql`delete from yield_index_samples`;
  const report = await look();
  const [{ at, protocols } = assert.fail()] = await sql<
    { at: Date; protocols: Record<ProtocolName, { index: string; utilization: number }> }[]
  >`select at, protocols from yield_index_samples`;
  const ages = Array.from({ length: HOURS_S / SAMPLE_S }, (_, index) => (index + 1) * SAMPLE_S);
  const samples = ages.map((ageS) => {
    const then = PROTOCOLS.map((name) => {
      const { percent = report.yearlyPercent[name] ?? 0, utilization } = past[name] ?? {};
      const index = BigInt(protocols[name].index);
      const grown = BigInt(Math.round(Number(index) * ((percent / 100) * (ageS / YEAR_S))));
      const used = utilization ?? protocols[name].utilization;
      return [name, { index: String(index - grown), utilization: used }];
    });
    return {
      vault: vault.toLowerCase(),
      at: new Date(at.getTime() - ageS * 1_000).toISOString(),
      block_number: 0,
      protocols: Object.fromEntries(then),
    };
  });
  await sql`
    insert into yield_index_samples (vault, at, block_number, protocols)
    select vault, at, block_number, protocols
    from jsonb_populate_recordset(null::yield_index_samples, ${JSON.stringify(samples)}::text::jsonb)`;
}
