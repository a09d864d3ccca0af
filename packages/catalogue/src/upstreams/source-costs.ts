/** What sources cost the operator that are paid by use, such as a model by its tokens: as measured, by day. */
import type { Database } from '@farebox/core/db/connection';
import type { MeasuredCost } from '@farebox/core/service/sources';

/** So many days of costs are added up for the operator's page. */
const SHOWN_DAYS = 30;

export interface SourceCosts {
  /** Notes what a request has cost; the database learns of it with the next `write`. */
  spent(source: string, costMicros: bigint): void;
  /** Writes what was noted since the last time. What could not be written is tried again. */
  write(): Promise<void>;
  /** Costs by source over the last thirty days. */
  recent(): Promise<readonly MeasuredCost[]>;
  /** Costs by source on one day in UTC, such as `2026-11-29`. */
  on(day: string): Promise<readonly MeasuredCost[]>;
}

/** @param parts.nowMs milliseconds since 1970 (UTC) */
export function createSourceCosts(sql: Database, { nowMs }: { nowMs(): number }): SourceCosts {
  let noted = new Map<string, { day: string; source: string; requests: number; costMicros: bigint }>();

  function note(day: string, source: string, requests: number, costMicros: bigint): void {
    const name = `${day} ${source}`;
    const before = noted.get(name);
    noted.set(name, {
      day,
      source,
      requests: requests + (before?.requests ?? 0),
      costMicros: costMicros + (before?.costMicros ?? 0n),
    });
  }

  return {
    spent(source, costMicros) {
      note(new Date(nowMs()).toISOString().slice(0, 10), source, 1, costMicros);
    },

    async write() {
      const written = [...noted.values()];
      noted = new Map();
      if (written.length === 0) return;
      try {
        await sql`
          insert into source_costs (day, source, requests, cost_micros)
          select * from unnest(
            ${written.map(({ day }) => day)}::text[]::date[], ${written.map(({ source }) => source)}::text[],
            ${written.map(({ requests }) => String(requests))}::text[]::bigint[],
            ${written.map(({ costMicros }) => String(costMicros))}::text[]::bigint[])
          on conflict (day, source) do update set
            requests = source_costs.requests + excluded.requests,
            cost_micros = source_costs.cost_micros + excluded.cost_micros`;
      } catch (error) {
        for (const { day, source, requests, costMicros } of written) note(day, source, requests, costMicros);
        throw error;
      }
    },

    async recent() {
      const since = new Date(nowMs() - SHOWN_DAYS * 86_400_000).toISOString().slice(0, 10);
      const rows = await sql<{ source: string; requests: bigint; cost_micros: bigint }[]>`
        select source, sum(requests)::bigint as requests, sum(cost_micros)::bigint as cost_micros
        from source_costs where day > ${since}::date group by source order by source`;
      return rows.map(({ source, requests, cost_micros: costMicros }) => ({ source, requests, costMicros }));
    },

    async on(day) {
      const rows = await sql<{ source: string; requests: bigint; cost_micros: bigint }[]>`
        select source, requests, cost_micros from source_costs where day = ${day}::date order by source`;
      return rows.map(({ source, requests, cost_micros: costMicros }) => ({ source, requests, costMicros }));
    },
  };
}
