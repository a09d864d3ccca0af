import type { Source } from '../../../core/src/words/answer.ts';
import { sourceUnavailable } from '../../../core/src/words/failure.ts';
import type { UpstreamName, Upstreams } from '../upstreams/index.ts';
import type { RunContext } from './define.ts';

/** The present of every test. */
export const NOW_MS = Date.parse('2026-11-21T05:30:00Z');

/** Some calls of some upstreams. */
export type FakeUpstreams = { [Name in UpstreamName]?: Partial<Upstreams[Name]> };

/** For tests: what a service's `run` gets, with fakes for the upstreams that it asks. Any other call fails the test. */
export function runContext(fakes: FakeUpstreams): RunContext<UpstreamName> {
  return {
    upstreams: fakes as Upstreams,
    catalog: () => [],
    call: {
      callId: 'call',
      orderId: 'call',
      caller: 'test',
      rail: 'credits',
      payer: 'test',
      priceMicros: 0n,
      network: null,
    },
    baseUrl: 'http://localhost',
    version: '0',
    signal: new AbortController().signal,
    nowMs: () => NOW_MS,
  };
}

/** For tests: a reply that just arrived. */
export function reply<T>(name: UpstreamName, value: T): { value: T; source: Source } {
  const retrievedAt = new Date(NOW_MS).toISOString();
  return {
    value,
    source: { name, url: `https://${name}.test/`, asOf: null, retrievedAt, cached: false, sandbox: false },
  };
}

/** For tests: a call that finds its upstream down. */
export function down(name: UpstreamName): () => Promise<never> {
  return async () => {
    throw sourceUnavailable(name, 'upstream_down', `${name} is down`);
  };
}

/** For tests: a call of an upstream that the operator did not configure. */
export function notConfigured(name: UpstreamName): () => Promise<never> {
  return async () => {
    throw sourceUnavailable(name, 'not_configured', `${name} is not configured`);
  };
}
