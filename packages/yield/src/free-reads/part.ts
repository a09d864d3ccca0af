import type { Configured } from '@farebox/core/declared';
import type { House } from '@farebox/core/part';
import { Counter, Registry } from 'prom-client';
import { createFreeReads, type FreeReads } from './budget.ts';
import { FREE_READS } from './declared.ts';

export { FREE_READS };

/** The bounds on free reads, one for each chain that is read so, and what became of the reads. */
export interface FreeReadsByChain {
  base: FreeReads;
  solana: FreeReads;
  /** Shown by each part that reads: it is the same for all of them. */
  metrics: Registry;
}

export function openFreeReads(
  { nowMs }: House,
  { settings: { perMinute } }: Configured<typeof FREE_READS.variables>,
): FreeReadsByChain {
  const metrics = new Registry();
  const reads = new Counter({
    name: 'farebox_free_chain_reads_total',
    help: 'Reads of chains for callers who pay nothing: made, waited for their turn, shared with another caller, refused to a caller who had its part (caller_refused) or to all (refused)',
    labelNames: ['chain', 'outcome'],
    registers: [metrics],
  });
  const ofChain = (chain: string) =>
    createFreeReads({ perMinute, nowMs, count: (outcome) => reads.inc({ chain, outcome }) });
  return { base: ofChain('base'), solana: ofChain('solana'), metrics };
}
