import type { z } from 'zod';
import type { Source } from '../words/answer.ts';

/** Anything but the cached GET. Nothing of it is repeated. */
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
  /** Ends it early. */
  signal?: AbortSignal;
  /**
   * What the backend knows a repeated request by. Left out, a service with an effect sends one that follows from its
   * call, so that a call that is tried again does nothing twice; null sends none.
   */
  idempotencyKey?: string | null;
}

/** A request whose reply comes in server-sent events. It is neither cached nor repeated. */
export interface UpstreamStreaming<T>
  extends Omit<UpstreamSending<T>, 'schema' | 'as' | 'idempotencyKey' | 'timeoutMs'> {
  /** What the JSON of each event must look like. */
  schema: z.ZodType<T>;
  /** The data of the event by which the source says that it is done. */
  last: string;
  /** Whether a source that has sent this may end without saying so. Any other end is a failure. */
  mayEnd(event: T): boolean;
  /** Whether the source says by this that it cannot go on. */
  hasFailed(event: T): boolean;
  /** For how long nothing at all may come. */
  silenceMs: number;
  /** For all of it. */
  timeoutMs: number;
  /** Of all of it. */
  maxBytes: number;
}

/** One GET. Paths are below the upstream's base address; adapters encode what callers put into them. */
export interface UpstreamRequest<T> {
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string>;
  /** What the reply must look like. A reply that does not fit is a failure of the upstream, not an answer. */
  schema: z.ZodType<T>;
  /** `json` unless the upstream speaks something else. */
  as?: 'json' | 'text' | 'bytes';
  /** For how long a reply is handed out without asking again. */
  freshMs: number;
  /** For how long after that it may stand in while a new one is fetched, or while the upstream is down. */
  staleMs: number;
  /** For slow endpoints; the upstream's `timeoutMs` otherwise. */
  timeoutMs?: number;
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
  /** By the server's word (ISO 8601); null where it does not say. */
  lastModified: string | null;
}

/** What an adapter gets to speak with. Timeouts, retries, breaker, budget, cache and provenance are in here. */
export interface UpstreamHttp {
  readonly apiKey: string | undefined;
  /** Further settings of this upstream, by the names that its definition declares. */
  readonly settings: Readonly<Record<string, string | undefined>>;
  get<T>(request: UpstreamRequest<T>): Promise<Reply<T>>;
  /** As `get`, but an answer with one of `absentOn` (404 unless given) is a null value, not a failure. */
  find<T>(request: UpstreamRequest<T> & { absentOn?: readonly number[] }): Promise<Reply<T | null>>;
  /** A request that is neither cached nor repeated. */
  post<T>(request: UpstreamSending<T>): Promise<Reply<T>>;
  /** The same with another method. */
  send<T>(
    request: UpstreamSending<T> & { method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' },
  ): Promise<Reply<T>>;
  /**
   * A file that is too large to keep: neither cached nor repeated, read up to `maxBytes` and not further. Follows up to
   * three redirections, as publishers of files use them, to https or within the same server.
   */
  download(request: {
    path: string;
    maxBytes: number;
    timeoutMs: number;
    signal?: AbortSignal | undefined;
  }): Promise<Reply<Download>>;
  /** Resolves when the reply has begun. Its events are read no faster than they are taken; leaving the loop ends it. */
  stream<T>(request: UpstreamStreaming<T>): Promise<Reply<AsyncGenerator<T, void>>>;
}

/**
 * On which terms an upstream gives what services sell. It is what could be read when the upstream was added: whoever sells
 * reads the terms themselves.
 */
export interface SourceTerms {
  /**
   * Whether its values may be sold. `allowed`: yes, with the credit that it asks for. `agreement`: only by a plan or an
   * agreement with it. `unknown`: nobody here has read that it may, so ask the provider. `own`: the operator chooses the
   * source, and knows its terms.
   */
  commercialUse: 'allowed' | 'agreement' | 'unknown' | 'own';
  /** More about that, in a sentence; null: nothing. */
  note: string | null;
  /** What is to stand beside its values; null: nothing is asked for, or nobody knows. */
  attribution: string | null;
  /** Where to read on; null: the provider says. */
  url: string | null;
}

/** Whether its values are sold only once the operator says that they have agreed to its terms. */
export function needsAgreement({ commercialUse }: SourceTerms): boolean {
  return commercialUse === 'agreement' || commercialUse === 'unknown';
}

export interface UpstreamDefinition<Api, Name extends string = string> {
  /** Lower case, also the key in `UPSTREAMS` and part of `UPSTREAM_<NAME>_BASE_URL`. */
  name: Name;
  title: string;
  /**
   * The real address, as everybody may see it: provenance shows it and never the one that is configured, which may lead
   * into the operator's own network or hold a key. Null: there is none until the operator gives one.
   */
  baseUrl: string | null;
  /** Credit or terms to show with every value. */
  licence: string;
  terms: SourceTerms;
  /** `none`: anybody may ask. `required`: not configured until `UPSTREAM_<NAME>_API_KEY` is set. */
  key: 'none' | 'optional' | 'required';
  /** Where an operator gets a key: an address. Left out where the operator runs or chooses the source. */
  keyFrom?: string;
  /**
   * Further environment variables it reads, with what each is for. `UPSTREAM_<NAME>_REQUESTS_PER_MINUTE` among them stands
   * for `requestsPerMinute` where it is set.
   */
  settings?: Record<
    string,
    {
      describe: string;
      required: boolean;
      /** What is wrong with a value, in words that follow the variable's name; null when nothing is. */
      check?: (value: string) => string | null;
    }
  >;
  /**
   * Where the key goes. It never becomes part of a provenance address. `pathParts`: parts of a path that are written as the
   * name, and sent as the value.
   */
  authorize?: (apiKey: string) => {
    headers?: Record<string, string>;
    query?: Record<string, string>;
    pathParts?: Record<string, string>;
  };
  /** What the upstream allows, or what we allow ourselves, whichever is less. */
  requestsPerMinute: number;
  /** How many may go at once; half a minute's worth unless given. */
  burst?: number;
  /** For how long a request may wait for its turn; it is refused at once unless given. */
  patienceMs?: number;
  timeoutMs?: number;
  /** The largest reply that is read; 16 MB unless given, 40 MB at most. */
  maxReplyBytes?: number;
  open(http: UpstreamHttp): Api;
  /** One cheap call that shows whether the upstream answers and still fits its schema. */
  probe(api: Api, nowMs: number): Promise<unknown>;
}

/** What the names of an upstream's variables begin with. `AI` is a name of its own in the field. */
export function variablePrefix(name: string): string {
  return name === 'ai' ? 'AI' : `UPSTREAM_${name.toUpperCase()}`;
}

/** Declares an upstream: where it is, what it allows, and the calls that services may make. */
export function defineUpstream<Api, const Name extends string>(
  definition: UpstreamDefinition<Api, Name>,
): UpstreamDefinition<Api, Name> {
  return definition;
}
