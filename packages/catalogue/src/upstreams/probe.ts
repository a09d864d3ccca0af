/** Asks each source once, and reports of each whether it answers and whether its reply still fits the schema. */
import type { UpstreamDefinition } from './define.ts';
import type { UpstreamConfig } from './http.ts';
import { type ConnectedUpstreams, UPSTREAM_NAMES, UPSTREAMS, type UpstreamName } from './index.ts';
import { InvalidReply, TimedOut } from './wire-errors.ts';

export interface ProbedSource {
  name: UpstreamName;
  /** `skipped`: not configured, or its terms are not agreed to. `unfit`: it answers, but not in the expected shape. */
  verdict: 'fits' | 'skipped' | 'unfit' | 'silent' | 'fails';
  /** How long it took and where, why it was skipped, or what is wrong. */
  about: string;
}

const definitionOf = (name: UpstreamName) => UPSTREAMS[name] as unknown as UpstreamDefinition<unknown>;

/**
 * The same configuration with every source at its public address, whatever address is configured. A source without one,
 * such as the operator's own model, keeps its address.
 */
export function atPublicAddresses(
  configs: Readonly<Record<UpstreamName, UpstreamConfig>>,
): Record<UpstreamName, UpstreamConfig> {
  return Object.fromEntries(
    UPSTREAM_NAMES.map((name) => {
      const { baseUrl } = definitionOf(name);
      return [name, baseUrl === null ? configs[name] : { ...configs[name], baseUrl }];
    }),
  ) as Record<UpstreamName, UpstreamConfig>;
}

/** Asks all sources at once, each within the time that its requests may take. @returns in the order of their names */
export function probeSources(
  upstreams: ConnectedUpstreams,
  configs: Readonly<Record<UpstreamName, UpstreamConfig>>,
  nowMs: () => number,
): Promise<ProbedSource[]> {
  return Promise.all(
    UPSTREAM_NAMES.map(async (name): Promise<ProbedSource> => {
      const { keyFrom, probe } = definitionOf(name);
      const { state, reason } = upstreams.health(name);
      if (state === 'not_configured') {
        const wantsKey = keyFrom !== undefined && configs[name].apiKey === undefined;
        const about = reason ?? 'not configured';
        return { name, verdict: 'skipped', about: wantsKey ? `${about} (a key is from ${keyFrom})` : about };
      }
      const address = configs[name].baseUrl;
      const startedAtMs = performance.now();
      try {
        await probe(upstreams.apis[name], nowMs());
        return {
          name,
          verdict: 'fits',
          about: `${Math.round(performance.now() - startedAtMs)} ms  ${address}`,
        };
      } catch (error) {
        return { name, verdict: verdictOf(error), about: `${address}  ${explained(error)}` };
      }
    }),
  );
}

function verdictOf(error: unknown): ProbedSource['verdict'] {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof InvalidReply ? 'unfit' : cause instanceof TimedOut ? 'silent' : 'fails';
}

/** The error's message and, for a reply that does not fit, what does not. */
function explained(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof InvalidReply ? `${error.message} (${error.cause.message})` : error.message;
}
