/** Where payments are taken on chains, and whether they can be now: for the log, the operator's page and the metrics. */
import type { FastifyBaseLogger } from 'fastify';
import type { RailStanding } from '../../part.ts';

/** Whether payments can be made on a network now, and what is wrong; `reason` null: nothing. */
export interface Seen {
  offered: boolean;
  reason: string | null;
}

export interface RailWatch {
  /** Looks at every network. One whose node is silent delays no other. */
  look(): Promise<void>;
  /** What was seen last; a network that was not looked at yet counts as offered. */
  standings(): readonly RailStanding[];
}

/** @param networks the configured ones, by their CAIP-2 names; a look that throws means that the node does not answer */
export function watchRails(
  networks: readonly { network: string; look(): Promise<Seen> }[],
  { nowMs, logger }: { nowMs(): number; logger: Pick<FastifyBaseLogger, 'error' | 'warn'> },
): RailWatch {
  const standings = networks.map(
    ({ network }): RailStanding => ({ network, offered: true, reason: null, sinceMs: null }),
  );

  function note(standing: RailStanding, { offered, reason }: Seen): void {
    const before = standing.reason;
    standing.offered = offered;
    standing.reason = reason;
    if (reason === before) return;
    const line = { network: standing.network, offered };
    if (reason !== null) logger.error({ ...line, reason }, 'payments on a chain fail, or soon may');
    else logger.warn(line, 'payments on a chain work again');
    if (before === null) standing.sinceMs = nowMs();
    if (reason === null) standing.sinceMs = null;
  }

  return {
    async look() {
      const silent = (): Seen => ({ offered: false, reason: 'its node does not answer' });
      await Promise.all(
        standings.map(async (standing, index) =>
          note(standing, (await networks[index]?.look().catch(silent)) ?? silent()),
        ),
      );
    },
    standings: () => standings,
  };
}
