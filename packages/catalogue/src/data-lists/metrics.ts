import type { SourceHealth } from '@farebox/core/service/sources';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { DataLists } from './data-lists.ts';

export interface SourceMetrics {
  registry: Registry;
  upstreamRequest(upstream: string, outcome: 'ok' | 'failed', durationMs: number): void;
}

/** The metrics of data from outside. */
export function createSourceMetrics(watched: {
  health(): readonly SourceHealth[];
  /** Lists that services look things up in, with the times of the copy in use. */
  lists: DataLists['states'];
  nowMs(): number;
}): SourceMetrics {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: 'farebox_upstream_requests_total',
    help: 'Requests that left for an upstream',
    labelNames: ['upstream', 'outcome'],
    registers,
  });
  const duration = new Histogram({
    name: 'farebox_upstream_duration_seconds',
    help: 'How long upstreams take',
    labelNames: ['upstream'],
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  new Gauge({
    name: 'farebox_upstream_up',
    help: '1 up, 0 down; upstreams that are not configured are left out',
    labelNames: ['upstream'],
    registers,
    collect() {
      this.reset();
      for (const { name, state } of watched.health()) {
        if (state !== 'not_configured') this.set({ upstream: name }, state === 'up' ? 1 : 0);
      }
    },
  });
  new Gauge({
    name: 'farebox_data_list_age_seconds',
    help: 'Since the list in use was published, and since its publisher last confirmed it',
    labelNames: ['list', 'since'],
    registers,
    async collect() {
      const lists = await watched.lists().catch(() => []);
      this.reset();
      for (const { name, publishedAt, confirmedAt } of lists) {
        const times = { published: publishedAt, confirmed: confirmedAt };
        for (const [since, time] of Object.entries(times)) {
          if (time !== null) this.set({ list: name, since }, (watched.nowMs() - Date.parse(time)) / 1_000);
        }
      }
    },
  });
  new Gauge({
    name: 'farebox_data_list_failures',
    help: 'Fetches of a list in a row that failed or brought one that was refused',
    labelNames: ['list'],
    registers,
    async collect() {
      const lists = await watched.lists().catch(() => []);
      this.reset();
      for (const { name, failures } of lists) this.set({ list: name }, failures);
    },
  });
  return {
    registry,
    upstreamRequest(upstream, outcome, durationMs) {
      requests.inc({ upstream, outcome });
      duration.observe({ upstream }, durationMs / 1_000);
    },
  };
}
