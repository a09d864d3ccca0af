import { ALONE } from '@farebox/core/db/live-replicas';
import { type FairPlaces, NoPlace } from '@farebox/core/service/fair-places';
import type { SourceHealth, SourceState } from '@farebox/core/service/sources';
import type { Source } from '@farebox/core/words/answer';
import { sourceUnavailable, type UnavailableReason, UpstreamUnavailable } from '@farebox/core/words/failure';
import { variablePrefix } from '@farebox/core/words/upstream-variables';
import {
  BrokenCircuitError,
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  handleWhen,
} from 'cockatiel';
import { LRUCache } from 'lru-cache';
import { Budget, burstOf } from './budget.ts';
import { idempotencyKeyOf, visitorNow } from './call-scope.ts';
import type {
  Authorization,
  Reply,
  UpstreamDefinition,
  UpstreamHttp,
  UpstreamRequest,
  UpstreamSending,
} from './define.ts';
import { lowerCased, type Method, type Received, Wire, type WireParts } from './wire.ts';
import { Abandoned, BrokenOff, InvalidReply, SandboxReply, StatusError, TimedOut } from './wire-errors.ts';

const MAX_CACHE_BYTES = 48 * 1024 * 1024;
const ATTEMPTS = 3;
const BREAKER_FAILURES = 5;
const BREAKER_OPEN_MS = 20_000;
/** With a longer `Retry-After` the request is not repeated; the caller gets the `Retry-After` instead. */
const LONGEST_RETRY_WAIT_MS = 1_500;
/** When whoever got no connection may ask again. */
const BUSY_RETRY_MS = 2_000;

export interface UpstreamConfig {
  /** Null when the upstream is not configured. */
  baseUrl: string | null;
  apiKey?: string | undefined;
  settings?: Readonly<Record<string, string | undefined>>;
  /** Whether its terms need an agreement that the operator has not made. The upstream is not asked then. */
  isTermsOpen?: boolean;
}

export interface UpstreamConnection {
  http: UpstreamHttp;
  /** How many requests it may be sent now. */
  budget: Budget;
  health(): SourceHealth;
  close(): Promise<void>;
}

interface CacheEntry {
  value: unknown;
  fetchedAtMs: number;
  sandbox: boolean;
  bytes: number;
}

/** What an upstream's connection needs of the house. */
export type UpstreamParts = WireParts;

/** Whence a value came. @param shown its address, without a key */
function sourceOf(
  { name, licence }: Pick<UpstreamDefinition<unknown>, 'name' | 'licence'>,
  shown: string,
  { fetchedAtMs, sandbox }: CacheEntry,
  cached: boolean,
): Source {
  const retrievedAt = new Date(fetchedAtMs).toISOString();
  return { name, url: shown, asOf: null, retrievedAt, cached, sandbox, licence };
}

/** Tells a breaker of all attempts of a request as of one. */
async function asOne<T>(breaker: CircuitBreakerPolicy, attempts: Promise<T>): Promise<T> {
  const tell = (ended: () => Promise<unknown>) => breaker.execute(ended).catch(() => {});
  try {
    const received = await attempts;
    await tell(async () => received);
    return received;
  } catch (error) {
    // What was not even asked has no cause.
    if (error instanceof UpstreamUnavailable && error.cause !== undefined)
      await tell(() => Promise.reject(error.cause));
    throw error;
  }
}

function makeBreaker(): CircuitBreakerPolicy {
  return circuitBreaker(
    // A 4xx is our mistake or the caller's. Only what shows that the upstream itself is failing counts against it.
    handleWhen((error) =>
      error instanceof StatusError
        ? error.status >= 500 || error.status === 429
        : !(error instanceof Abandoned),
    ),
    { halfOpenAfter: BREAKER_OPEN_MS, breaker: new ConsecutiveBreaker(BREAKER_FAILURES) },
  );
}

/**
 * Opens one upstream, with timeouts, at most two retries with jitter for GETs, a circuit breaker, a budget of requests
 * a minute, and a cache with one request in flight for each address, which serves stale replies within bounds.
 */
export function connectUpstream<Api>(
  definition: UpstreamDefinition<Api>,
  config: UpstreamConfig,
  parts: UpstreamParts,
): UpstreamConnection {
  const { nowMs } = parts;
  const wire = new Wire(definition, () => authorizationOf(definition, config), parts);
  const breaker = makeBreaker();
  const cache = new LRUCache<string, CacheEntry>({
    maxSize: MAX_CACHE_BYTES,
    sizeCalculation: (entry) => Math.max(1, entry.bytes),
  });
  const inFlight = new Map<string, Flight>();
  const { perMinute, budget } = budgetOf(definition, config, parts);
  let openedAtMs: number | null = null;
  breaker.onBreak(() => {
    openedAtMs = nowMs();
  });
  breaker.onReset(() => {
    openedAtMs = null;
  });

  const notConfigured = whyNotConfigured(definition, config);
  const fail: Fail = (reason, message, retryAfterMs, cause) =>
    sourceUnavailable(definition.name, reason, `${definition.title}: ${message}`, retryAfterMs, cause);

  function isDown(): boolean {
    return breaker.state === CircuitState.Open && nowMs() < (openedAtMs ?? 0) + BREAKER_OPEN_MS;
  }

  function retryAfterMs(): number {
    return openedAtMs === null ? 0 : Math.max(1_000, openedAtMs + BREAKER_OPEN_MS - nowMs());
  }

  /** A request that has its reply whole, on a connection of its own. */
  async function inPlace<T>(wanted: Wanted, run: () => Promise<T>, isCounted?: boolean): Promise<T> {
    const leave = await enter(wire.requestPlaces, { timeoutMs: wire.timeoutMs, ...wanted }, fail);
    try {
      return await guarded(run, isCounted);
    } finally {
      leave();
    }
  }

  /**
   * Runs a request under budget and breaker. Every failure becomes `UpstreamUnavailable` or a `StatusError` of 4xx.
   *
   * @param isCounted false: whoever asks tells the breaker how it ended
   */
  async function guarded<T>(run: () => Promise<T>, isCounted = true): Promise<T> {
    // A request that the breaker would refuse must not use up the budget.
    if (isDown()) throw fail('upstream_down', 'has been failing', retryAfterMs());
    const waitMs = budget.take(definition.patienceMs ?? 0);
    if (waitMs > (definition.patienceMs ?? 0))
      throw fail('rate_limited', 'asked as often as it allows; try again shortly', waitMs);
    if (waitMs > 0) await delay(waitMs);
    return (isCounted ? breaker.execute(run) : run()).catch(explain);
  }

  /** @throws the error that callers get for a failure */
  const explain = (error: unknown): never => {
    throw failureFor(error, fail, retryAfterMs);
  };

  /** An unexpected 4xx is a failure of ours or of the upstream's, not an answer. */
  function refused(error: unknown): never {
    throw error instanceof StatusError
      ? fail('invalid_reply', `refused the request (${error.status})`, undefined, error)
      : error;
  }

  async function repeated(wanted: Wanted, run: () => Promise<Received>, isCounted = true): Promise<Received> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await inPlace(wanted, run, isCounted);
      } catch (error) {
        const repeatable =
          error instanceof UpstreamUnavailable &&
          (error.reason === 'upstream_down' || error.reason === 'rate_limited');
        if (!repeatable || attempt >= ATTEMPTS || breaker.state === CircuitState.Open) throw error;
        const asked = error.cause instanceof StatusError ? error.cause.retryAfterMs : undefined;
        if (asked !== undefined && asked > LONGEST_RETRY_WAIT_MS) throw error;
        if (error.reason === 'rate_limited' && asked === undefined) throw error;
        await delay(asked ?? 100 * 2 ** attempt * (0.5 + Math.random()));
      }
    }
  }

  function address(request: Asked): { url: URL; key: string; shown: string } {
    if (config.baseUrl === null || notConfigured !== null)
      throw fail('not_configured', notConfigured ?? 'not configured', 3_600_000);
    const url = below(config.baseUrl, request);
    // Two callers with different headers may get different replies.
    const key = `${url} ${JSON.stringify(request.headers ?? {})}`;
    const shown = shownAddress(definition, request);
    placeKey(url, authorizationOf(definition, config));
    return { url, key, shown };
  }

  async function cachedGet<T>(
    request: UpstreamRequest<T>,
    absentOn: readonly number[],
  ): Promise<Reply<T | null>> {
    const { url, key, shown } = address(request);
    const known = cache.get(key);
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : nowMs() - known.fetchedAtMs;
    if (known !== undefined && ageMs < request.freshMs) {
      return { value: known.value as T | null, source: sourceOf(definition, shown, known, true) };
    }
    const fly = (): Flight => {
      const exchange = () => wire.exchange('GET', url, request, undefined);
      const attempts = repeated(request, exchange, request.countsOnce !== true);
      const entry = (request.countsOnce === true ? asOne(breaker, attempts) : attempts)
        .catch((error: unknown): Received => {
          if (error instanceof StatusError && absentOn.includes(error.status)) {
            return { value: null, sandbox: known?.sandbox ?? error.sandbox, bytes: 1 };
          }
          return refused(error);
        })
        .then((received) => {
          const made = { ...received, fetchedAtMs: nowMs() };
          cache.set(key, made);
          return made;
        })
        .finally(() => {
          if (inFlight.get(key) === flight) inFlight.delete(key);
        });
      const flight = { entry, caller: visitorNow().caller };
      inFlight.set(key, flight);
      return flight;
    };
    const flight = inFlight.get(key) ?? fly();
    if (known !== undefined && ageMs < request.freshMs + request.staleMs) {
      // Stale but within bounds: the old reply is returned now, and the new one arrives in the background.
      flight.entry.catch(() => {});
      return { value: known.value as T | null, source: sourceOf(definition, shown, known, true) };
    }
    const entry = await flight.entry.catch((error: unknown) => {
      // Whose request it was may have no more places than it has. Who only shared it may have some left.
      const { caller } = visitorNow();
      if (flight.caller === caller || !isBusy(error)) throw error;
      const own = inFlight.get(key);
      return (own?.caller === caller ? own : fly()).entry;
    });
    return { value: entry.value as T | null, source: sourceOf(definition, shown, entry, false) };
  }

  async function sendOnce<T>(method: Method, request: UpstreamSending<T>): Promise<Reply<T>> {
    const { url, shown } = address(request);
    const sent = asSent(method, url, request);
    const exchange = () => wire.exchange(method, url, sent, request.signal);
    const received = await inPlace(request, exchange).catch(refused);
    return replyOf<T>(shown, received);
  }

  /** The rest of a stream that began well. If it breaks, that counts against its source too. */
  async function* rest<T>(events: AsyncGenerator<T, void>): AsyncGenerator<T, void> {
    try {
      yield* events;
    } catch (error) {
      await breaker.execute(() => Promise.reject(error)).catch(() => {});
      explain(error);
    }
  }

  function replyOf<T>(shown: string, received: Received): Reply<T> {
    const entry = { ...received, fetchedAtMs: nowMs() };
    return { value: received.value as T, source: sourceOf(definition, shown, entry, false) };
  }

  return {
    http: {
      apiKey: config.apiKey,
      settings: config.settings ?? {},
      get: (request) => cachedGet(request, []) as Promise<Reply<never>>,
      find: (request) => cachedGet(request, request.absentOn ?? [404]),
      post: (request) => sendOnce('POST', request),
      send: ({ method, ...request }) => sendOnce(method, request),
      spent: (costMicros) => parts.onCost?.(definition.name, costMicros),
      async download(request) {
        const { url, shown } = address(request);
        const received = await guarded(() => wire.file(url, request, request.signal)).catch(refused);
        return replyOf(shown, received);
      },
      async stream(request) {
        const { url, shown } = address(request);
        const { body: _body, ...asked } = request;
        const { headers, body: content } = asSent('POST', url, { ...request, idempotencyKey: null });
        const sent = { ...asked, headers, ...(content === undefined ? {} : { body: content }) };
        const leave = await enter(wire.streamPlaces, request, fail);
        const begin = () => wire.stream(url, sent, request.signal, leave);
        const { sandbox, events } = await guarded(begin).catch((error: unknown) => {
          leave();
          return refused(error);
        });
        const entry = { value: null, sandbox, bytes: 0, fetchedAtMs: nowMs() };
        return { value: rest(events), source: sourceOf(definition, shown, entry, false) };
      },
    },
    budget,
    health() {
      const state: SourceState = notConfigured !== null ? 'not_configured' : isDown() ? 'down' : 'up';
      return {
        name: definition.name,
        state,
        reason: state === 'down' ? `${BREAKER_FAILURES} failures in a row` : notConfigured,
        retryAfterMs: state === 'not_configured' ? 3_600_000 : state === 'down' ? retryAfterMs() : 0,
        lastSuccessAtMs: wire.lastSuccessAtMs,
        lastFailureAtMs: wire.lastFailureAtMs,
        requestsPerHour: perMinute * 60,
      };
    },
    close: () => wire.close(),
  };
}

/** The rate that the operator agreed with the source, or else ours. */
function perMinuteOf(
  { name, requestsPerMinute }: { name: string; requestsPerMinute: number },
  { settings }: UpstreamConfig,
): number {
  const agreed = settings?.[`${variablePrefix(name)}_REQUESTS_PER_MINUTE`];
  return agreed === undefined ? requestsPerMinute : Number(agreed);
}

/** A GET that several callers may wait for. */
interface Flight {
  entry: Promise<CacheEntry>;
  /** Who began it, and takes the place for it. */
  caller: string;
}

/** For how long a request is wanted at all. */
interface Wanted {
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
}

/**
 * Takes one of our own connections to an upstream, before anything is asked of it. A wait for it counts against nobody.
 *
 * @returns a function that gives it back
 */
function enter(
  places: FairPlaces,
  { timeoutMs, signal }: Wanted & { timeoutMs: number },
  fail: Fail,
): Promise<() => void> {
  return places.enter(visitorNow(), { timeoutMs, signal }).catch((error: unknown) => {
    if (error instanceof NoPlace)
      throw fail('busy', 'all our connections to it are in use; try again shortly', BUSY_RETRY_MS);
    throw fail('upstream_down', 'was not asked: nobody waits for it any more');
  });
}

function isBusy(error: unknown): boolean {
  return error instanceof UpstreamUnavailable && error.reason === 'busy';
}

type Fail = (
  reason: UnavailableReason,
  message: string,
  retryAfterMs?: number,
  cause?: unknown,
) => UpstreamUnavailable;

/** The error that callers get for what went wrong with a request. A 4xx stays what it is. */
function failureFor(error: unknown, fail: Fail, retryAfterMs: () => number): Error {
  if (error instanceof BrokenCircuitError)
    return fail('upstream_down', 'has been failing', retryAfterMs(), error);
  if (error instanceof TimedOut)
    return fail('timeout', `no answer within ${error.timeoutMs} ms`, undefined, error);
  if (error instanceof SandboxReply)
    return fail(
      'invalid_reply',
      'the configured address is a sandbox part, which this server does not accept',
    );
  if (error instanceof InvalidReply)
    return fail('invalid_reply', 'the reply does not have the documented shape', undefined, error);
  if (error instanceof BrokenOff) return fail('upstream_down', 'broke off before the end', undefined, error);
  if (error instanceof StatusError) {
    if (error.status === 429)
      return fail('rate_limited', 'refuses more requests', error.retryAfterMs ?? 30_000, error);
    return error.status < 500
      ? error
      : fail('upstream_down', `answered ${error.status}`, error.retryAfterMs, error);
  }
  return fail('upstream_down', 'could not be reached', undefined, error);
}

interface Asked {
  path: string;
  query?: UpstreamRequest<unknown>['query'] | undefined;
  headers?: Record<string, string> | undefined;
}

function below(base: string, { path, query }: Asked): URL {
  const url = new URL(base.replace(/\/$/, '') + path);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  return url;
}

/** Puts a key where the source expects it in the address. */
function placeKey(url: URL, { query = {}, pathParts = {} }: Authorization = {}): void {
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const sent = new Map(Object.entries(pathParts).map(([name, value]) => [name, encodeURIComponent(value)]));
  if (sent.size === 0) return;
  const parts = url.pathname.split('/');
  url.pathname = parts.map((part) => sent.get(part) ?? part).join('/');
}

/** The address in provenance: the same request at the source's public address, or the source's name if it has none. */
function shownAddress({ name, baseUrl }: { name: string; baseUrl: string | null }, asked: Asked): string {
  return baseUrl === null ? `urn:source:${name}` : below(baseUrl, asked).toString();
}

/** A request as it is sent, with the key by which the backend recognizes a repetition. */
function asSent<T>(method: Method, url: URL, request: UpstreamSending<T>) {
  const { body, headers, idempotencyKey, schema, as, timeoutMs } = request;
  const content =
    body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const key =
    method === 'GET' || idempotencyKey === null
      ? null
      : (idempotencyKey ?? idempotencyKeyOf(method, url.toString(), content ?? ''));
  return {
    schema,
    ...(as === undefined ? {} : { as }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    headers: { ...(key === null ? {} : { 'idempotency-key': key }), ...lowerCased(headers) },
    ...(content === undefined ? {} : { body: content }),
  };
}

/** What requests have of the key, which may be another one each time; undefined without a key. */
function authorizationOf(
  { authorize }: Pick<UpstreamDefinition<unknown>, 'authorize'>,
  { apiKey, baseUrl }: UpstreamConfig,
): Authorization | undefined {
  return apiKey === undefined || baseUrl === null ? undefined : authorize?.(apiKey, baseUrl);
}

/** What was agreed with an upstream, of which this process has its share. */
function budgetOf(
  definition: UpstreamDefinition<unknown>,
  config: UpstreamConfig,
  { nowMs, replicas = ALONE }: UpstreamParts,
): { perMinute: number; budget: Budget } {
  const perMinute = perMinuteOf(definition, config);
  const burst = burstOf(definition, perMinute);
  return { perMinute, budget: new Budget(perMinute, burst, nowMs, replicas) };
}

/** Why the configuration keeps an upstream from being asked; null when it may be. */
function whyNotConfigured(definition: UpstreamDefinition<unknown>, config: UpstreamConfig): string | null {
  const missing = missingSettings(definition, config);
  if (missing.length > 0) return `not configured: set ${missing.join(', ')}`;
  if (config.baseUrl === null) return 'not configured';
  return config.isTermsOpen === true
    ? `not used, because the operator has not agreed to its terms (SOURCE_TERMS_ACCEPTED=${definition.name})`
    : null;
}

/** The variables that an upstream needs and does not have. */
function missingSettings(definition: UpstreamDefinition<unknown>, config: UpstreamConfig): string[] {
  const missing: string[] = [];
  const prefix = variablePrefix(definition.name);
  // A source that has a public address is without one only where the operator said so.
  if (definition.baseUrl === null && config.baseUrl === null) missing.push(`${prefix}_BASE_URL`);
  if (definition.key === 'required' && config.apiKey === undefined) missing.push(`${prefix}_API_KEY`);
  for (const [name, setting] of Object.entries(definition.settings ?? {})) {
    if (setting.required && config.settings?.[name] === undefined) missing.push(name);
  }
  return missing;
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
