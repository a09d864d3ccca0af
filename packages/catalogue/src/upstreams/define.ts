import type { Source } from '@farebox/core/words/answer';
import type { z } from 'zod';

/** A request other than the cached GET. It is never repeated. */
export interface UpstreamSending<T> {
  path: string;
  query?: UpstreamRequest<T>['query'];
  /** Beside the key's and the content type's. */
  headers?: Record<string, string>;
  /** Sent as JSON; bytes and text as they are, with a `content-type` among `headers`. */
  body?: unknown;
  schema: z.ZodType<T>;
  as?: 'json' | 'text' | 'bytes';
  timeoutMs?: number;
  /** Aborts the request early. */
  signal?: AbortSignal;
  /**
   * The key by which the backend recognizes a repeated request. Absent: a service with an effect sends one that is
   * derived from its call, so that a call that is tried again does nothing twice. Null: none is sent.
   */
  idempotencyKey?: string | null;
}

/** A request whose reply comes as server-sent events. It is neither cached nor repeated. */
export interface UpstreamStreaming<T>
  extends Omit<UpstreamSending<T>, 'schema' | 'as' | 'idempotencyKey' | 'timeoutMs'> {
  /** What the JSON of each event must look like. */
  schema: z.ZodType<T>;
  /** The data of the event that announces the end of the stream. */
  last: string;
  /** Whether the stream may end after this event without an announcement. Any other end is a failure. */
  mayEnd(event: T): boolean;
  /** Whether the source reports a failure with this event. */
  hasFailed(event: T): boolean;
  /** The longest time without any data. */
  silenceMs: number;
  /** The longest time for the whole stream. */
  timeoutMs: number;
  /** The most bytes of the whole stream. */
  maxBytes: number;
}

/** One GET. Paths are below the upstream's base address; adapters encode what callers put into them. */
export interface UpstreamRequest<T> {
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string>;
  /** The schema of the reply. A reply that does not fit is a failure of the upstream, not an answer. */
  schema: z.ZodType<T>;
  /** `json` by default. */
  as?: 'json' | 'text' | 'bytes';
  /** How long a reply is returned without asking again. */
  freshMs: number;
  /** How long after that it may still be used while a new one is fetched, or while the upstream is down. */
  staleMs: number;
  /** For slow endpoints; the upstream's `timeoutMs` by default. */
  timeoutMs?: number;
  /** Whether its repetitions together count as one failure: that it fails alone says little about the upstream. */
  countsOnce?: boolean;
}

export interface Reply<T> {
  value: T;
  /** `asOf` is null: the adapter or the service fills it in from what the reply says. */
  source: Source;
}

/** A file as it came. */
export interface Download {
  bytes: Buffer;
  /** Of the bytes, in hex. */
  sha256: string;
  /** As the server states it (ISO 8601); null when it does not. */
  lastModified: string | null;
}

/**
 * What an adapter uses to talk to its upstream. It includes timeouts, retries, breaker, budget, cache and provenance.
 */
export interface UpstreamHttp {
  readonly apiKey: string | undefined;
  /** Further settings of this upstream, by the names that its definition declares. */
  readonly settings: Readonly<Record<string, string | undefined>>;
  get<T>(request: UpstreamRequest<T>): Promise<Reply<T>>;
  /** As `get`, but a status in `absentOn` (404 by default) gives a null value instead of a failure. */
  find<T>(request: UpstreamRequest<T> & { absentOn?: readonly number[] }): Promise<Reply<T | null>>;
  /** A request that is neither cached nor repeated. */
  post<T>(request: UpstreamSending<T>): Promise<Reply<T>>;
  /** The same with another method. */
  send<T>(
    request: UpstreamSending<T> & { method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' },
  ): Promise<Reply<T>>;
  /**
   * A file that is too large to cache: neither cached nor repeated, and read only up to `maxBytes`. Follows up to three
   * redirects, which publishers of files use, to https or within the same server.
   *
   * @param request.isOneServer only within the same server
   */
  download(request: {
    path: string;
    maxBytes: number;
    timeoutMs: number;
    isOneServer?: boolean;
    signal?: AbortSignal | undefined;
  }): Promise<Reply<Download>>;
  /**
   * Resolves when the reply has begun. Its events are read no faster than they are consumed; leaving the loop ends the
   * request.
   */
  stream<T>(request: UpstreamStreaming<T>): Promise<Reply<AsyncGenerator<T, void>>>;
  /** Notes what a request has cost the operator, in micro-USD, where its reply tells the measure. */
  spent(costMicros: bigint): void;
}

/**
 * On which terms an upstream provides what services sell. It records what could be read when the upstream was added:
 * whoever sells the data must read the terms themselves.
 */
export interface SourceTerms {
  /**
   * Whether its values may be sold. `allowed`: yes, with the credit that it asks for. `agreement`: only with a plan or
   * an agreement. `unknown`: we have found no statement that they may, so ask the provider. `own`: the operator chooses
   * the source, and knows its terms.
   */
  commercialUse: 'allowed' | 'agreement' | 'unknown' | 'own';
  /** More about that, in a sentence; null when there is nothing to add. */
  note: string | null;
  /** The credit that must stand next to its values; null when none is asked for, or when that is unknown. */
  attribution: string | null;
  /** Where to read more; null: ask the provider. */
  url: string | null;
}

/** Whether its values are sold only after the operator declares that they have agreed to its terms. */
export function needsAgreement({ commercialUse }: SourceTerms): boolean {
  return commercialUse === 'agreement' || commercialUse === 'unknown';
}

/** What a request to an upstream has of its key. */
export interface Authorization {
  headers?: Record<string, string>;
  query?: Record<string, string>;
  pathParts?: Record<string, string>;
}

/** A page or file of a provider's documentation that an adapter was held against. */
export interface ReadDocumentation {
  /** Its address; of a file, with the commit that was read. */
  at: string;
  /** YYYY-MM-DD */
  readOn: string;
}

export interface UpstreamDefinition<Api, Name extends string = string> {
  /** Lower case, also the key in `UPSTREAMS` and part of `UPSTREAM_<NAME>_BASE_URL`. */
  name: Name;
  title: string;
  /**
   * The real, public address. Provenance shows it and never the configured one, which may lead into the operator's own
   * network or hold a key. Null when there is none until the operator sets one.
   */
  baseUrl: string | null;
  /** Credit or terms to show with every value. */
  licence: string;
  terms: SourceTerms;
  /** What was last read of how it is asked and how often; absent when none of its provider's documentation could be read. */
  documentation?: ReadDocumentation;
  /** `none`: anybody may ask. `required`: not configured until `UPSTREAM_<NAME>_API_KEY` is set. */
  key: 'none' | 'optional' | 'required';
  /** The address at which an operator gets a key; absent when the operator runs or chooses the source. */
  keyFrom?: string;
  /**
   * Further environment variables that it reads, with their descriptions. If it has
   * `UPSTREAM_<NAME>_REQUESTS_PER_MINUTE` and that is set, it replaces `requestsPerMinute`.
   */
  settings?: Record<
    string,
    {
      describe: string;
      required: boolean;
      /** What is wrong with a value, in words that follow the variable's name; null when it is valid. */
      check?: (value: string) => string | null;
    }
  >;
  /**
   * Where the key goes. It never becomes part of an address in provenance. `pathParts`: parts of a path that are
   * written as the name and sent as the value.
   *
   * @param baseUrl the address that the upstream is asked at
   */
  authorize?: (apiKey: string, baseUrl: string) => Authorization;
  /** Set where every request costs the operator money, as with a hosted model. */
  costsMoney?: true;
  /** The upstream's own limit or ours, whichever is lower. */
  requestsPerMinute: number;
  /** How many requests may be sent at once; half a minute's worth by default. */
  burst?: number;
  /** How long a request may wait for its turn; by default it is refused at once. */
  patienceMs?: number;
  timeoutMs?: number;
  /** The largest reply that is read: 16 MB by default, 40 MB at most. */
  maxReplyBytes?: number;
  open(http: UpstreamHttp): Api;
  /** One cheap request that shows whether the upstream answers and still fits its schema. */
  probe(api: Api, nowMs: number): Promise<unknown>;
}

/** Declares an upstream: its address, its limits, and the requests that services may make. */
export function defineUpstream<Api, const Name extends string>(
  definition: UpstreamDefinition<Api, Name>,
): UpstreamDefinition<Api, Name> {
  return definition;
}
