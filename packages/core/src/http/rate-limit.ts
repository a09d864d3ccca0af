import type { FastifyReply } from 'fastify';
import { LRUCache } from 'lru-cache';
import { claimantOf, SITE_FACTOR, siteOf } from './caller-address.ts';
import { Problem } from './problem.ts';

const WINDOW_MS = 60_000;

/** A limit on how often something may be done. */
export interface RateLimit {
  take(name: string): RateVerdict;
}

/** A limit on what turns out afterwards to have counted, or not. */
export interface ReturningLimit extends RateLimit {
  /** Gives back what was taken last under this name. */
  giveBack(name: string): void;
}

export interface RateVerdict {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Whole seconds until the window starts anew. */
  resetSeconds: number;
}

/**
 * Counts requests by name in windows of a minute. Counts are of this process: with N replicas a caller gets up to N
 * times the limit, which is what a limit against floods can afford. Memory is bounded: the least recently seen
 * names are forgotten first.
 */
export function createRateLimit(options: {
  perMinute: number;
  maxNames: number;
  nowMs: () => number;
}): ReturningLimit {
  // By size and not by `max`, which takes the memory of all names at once.
  const windows = new LRUCache<string, { startedAtMs: number; count: number }>({
    maxSize: options.maxNames,
    sizeCalculation: () => 1,
  });
  return {
    take(name: string): RateVerdict {
      const now = options.nowMs();
      let window = windows.get(name);
      if (window === undefined || now - window.startedAtMs >= WINDOW_MS) {
        window = { startedAtMs: now, count: 0 };
        windows.set(name, window);
      }
      const allowed = window.count < options.perMinute;
      if (allowed) window.count += 1;
      return {
        allowed,
        limit: options.perMinute,
        remaining: options.perMinute - window.count,
        resetSeconds: Math.max(1, Math.ceil((window.startedAtMs + WINDOW_MS - now) / 1_000)),
      };
    },
    giveBack(name) {
      const window = windows.get(name);
      if (window !== undefined && window.count > 0) window.count -= 1;
    },
  };
}

/**
 * The same by callers' addresses, which `take` is given as they are: an IPv6 address counts as its /64, and beyond that
 * all of a /48 together may make `SITE_FACTOR` times as many. What a network is refused counts against nobody else.
 */
export function createAddressLimit(options: Parameters<typeof createRateLimit>[0]): RateLimit {
  const networks = createRateLimit(options);
  const sites = createRateLimit({ ...options, perMinute: options.perMinute * SITE_FACTOR });
  return {
    take(address) {
      const network = networks.take(claimantOf(address));
      const site = siteOf(address);
      if (site === null || !network.allowed) return network;
      const all = sites.take(site);
      return all.remaining < network.remaining || !all.allowed ? all : network;
    },
  };
}

/**
 * The headers of draft-ietf-httpapi-ratelimit-headers-07, in the form that clients of this interface read, and beside them
 * `RateLimit` of draft 10. Both drafts have `RateLimit-Policy`, in two forms that exclude each other: it keeps the older.
 */
export function rateHeaders(verdict: RateVerdict): Record<string, string> {
  return {
    'ratelimit-limit': String(verdict.limit),
    'ratelimit-policy': `${verdict.limit};w=60`,
    'ratelimit-remaining': String(verdict.remaining),
    'ratelimit-reset': String(verdict.resetSeconds),
    ratelimit: `"minute";r=${verdict.remaining};t=${verdict.resetSeconds}`,
  };
}

/**
 * The headers of a refusal, with those of a rate limit beside them where they name the same moment. Another reason to wait
 * has a time of its own, and two headers must not send a caller away for two different times.
 */
export function withRate(
  headers: Readonly<Record<string, string>>,
  rate: Readonly<Record<string, string>>,
): Record<string, string> {
  const wait = headers['retry-after'];
  return wait === undefined || wait === rate['ratelimit-reset'] ? { ...rate, ...headers } : { ...headers };
}

/** The 429 of a verdict that does not allow. Nothing was charged. */
export function rateExceeded({ resetSeconds }: RateVerdict): Problem {
  return new Problem(429, 'RATE_LIMIT_EXCEEDED', `Too many requests. Try again in ${resetSeconds} s.`, {
    details: { retryAfter: resetSeconds, charged: false },
    headers: { 'retry-after': String(resetSeconds) },
  });
}

/** Counts a request that costs nothing, says so in the answer's headers, and refuses it when it is one too many. */
export function admit(limit: RateLimit, name: string, reply: FastifyReply): void {
  const verdict = limit.take(name);
  reply.headers(rateHeaders(verdict)).header('cache-control', 'no-store');
  if (!verdict.allowed) throw rateExceeded(verdict);
}
