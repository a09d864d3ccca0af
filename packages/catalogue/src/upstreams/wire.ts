/** What goes over the wire to one upstream: requests, files and streams, each with bounds of size and time. */
import { createHash } from 'node:crypto';
import type { LiveReplicas } from '@farebox/core/db/live-replicas';
import { FairPlaces } from '@farebox/core/service/fair-places';
import { Agent, type Dispatcher, request as send } from 'undici';
import type {
  Authorization,
  Download,
  UpstreamDefinition,
  UpstreamRequest,
  UpstreamStreaming,
} from './define.ts';
import { readEvents } from './event-source.ts';
import { Abandoned, BrokenOff, InvalidReply, SandboxReply, StatusError, TimedOut } from './wire-errors.ts';

const MAX_BODY_BYTES = 16 * 1024 * 1024;
/** For the few lists that come in one piece. It stays below the cache, which would not keep anything larger. */
const MAX_LARGE_BODY_BYTES = 40 * 1024 * 1024;
const MOST_REDIRECTIONS = 3;
/** To one upstream at once, but for what is lent beyond them. */
const MOST_REQUESTS = 16;
/** Of one upstream at once, but for what is lent beyond them. Each holds a connection for as long as it lasts. */
const MOST_STREAMS = 32;
const TIMEOUT_MS = 8_000;
const MAX_EVENT_BYTES = 256 * 1024;
/** Of the reply that comes in place of a stream: read to its end, so that its connection can be used again. */
const MAX_REFUSAL_BYTES = 64 * 1024;
/** The header by which a sandbox part says that it is one. */
export const SANDBOX_HEADER = 'x-farebox-sandbox';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface Received {
  value: unknown;
  sandbox: boolean;
  bytes: number;
}

/** A stream that has begun. */
export interface Begun<T> {
  sandbox: boolean;
  /** Ends where the source said that it is done. @throws what the wire and the source do wrong */
  events: AsyncGenerator<T, void>;
}

/** What a wire tells of each request: when it began and how it ended. */
export interface WireParts {
  userAgent: string;
  /** False in production: a reply from a sandbox part is then a failure. */
  acceptSandbox: boolean;
  nowMs(): number;
  /** Who shares what was agreed with a source; absent: nobody. */
  replicas?: LiveReplicas;
  onRequest?: (upstream: string, outcome: 'ok' | 'failed', durationMs: number) => void;
  /** Told what a request has cost the operator, where that is known. */
  onCost?: (upstream: string, costMicros: bigint) => void;
}

export class Wire {
  readonly #definition: UpstreamDefinition<unknown>;
  readonly #authorization: () => Authorization | undefined;
  readonly #parts: WireParts;
  readonly #agent: Agent;
  /** With a connection for each, so that nothing waits inside of the client, where the wait would count as the upstream's. */
  readonly requestPlaces = new FairPlaces(MOST_REQUESTS);
  readonly streamPlaces = new FairPlaces(MOST_STREAMS);
  // Files have bounds of their own, checked while they arrive.
  readonly #downloads = new Agent({ connections: 2, connect: { timeout: 5_000 }, maxResponseSize: -1 });
  // Streams have too, and may not stand in the way of requests.
  readonly #streams = new Agent({
    connections: this.streamPlaces.connections,
    connect: { timeout: 2_000 },
    maxResponseSize: -1,
    keepAliveTimeout: 10_000,
  });
  lastSuccessAtMs: number | null = null;
  lastFailureAtMs: number | null = null;

  constructor(
    definition: UpstreamDefinition<unknown>,
    authorization: () => Authorization | undefined,
    parts: WireParts,
  ) {
    this.#definition = definition;
    this.#authorization = authorization;
    this.#parts = parts;
    this.#agent = new Agent({
      connections: this.requestPlaces.connections,
      connect: { timeout: 2_000 },
      maxResponseSize: Math.min(definition.maxReplyBytes ?? MAX_BODY_BYTES, MAX_LARGE_BODY_BYTES),
      keepAliveTimeout: 10_000,
    });
  }

  /** How long a request may take that says nothing of it. */
  get timeoutMs(): number {
    return this.#definition.timeoutMs ?? TIMEOUT_MS;
  }

  /** One request: sent, bounded, parsed. Throws `StatusError` for any status but 2xx. */
  async exchange<T>(
    method: Method,
    url: URL,
    request: Pick<UpstreamRequest<T>, 'schema' | 'as' | 'headers' | 'timeoutMs'> & { body?: string | Buffer },
    signal: AbortSignal | undefined,
  ): Promise<Received> {
    const watch = this.#watch(request.timeoutMs ?? this.timeoutMs, signal);
    try {
      const response = await send(url, {
        method,
        dispatcher: this.#agent,
        headers: this.#headers(
          request.as === undefined || request.as === 'json' ? 'application/json' : '*/*',
          request,
        ),
        ...(request.body === undefined ? {} : { body: request.body }),
        signal: watch.signal,
      });
      const bytes = Buffer.from(await response.body.arrayBuffer());
      this.#refuseStatus(response);
      const sandbox = this.#isSandbox(response);
      const value = fitted(request.schema, decode(bytes, request.as ?? 'json'));
      watch.end('ok');
      return { value, sandbox, bytes: bytes.length };
    } catch (error) {
      watch.end('failed');
      throw watch.meaning(error);
    }
  }

  /** A file, read piece by piece up to its bound. */
  async file(
    from: URL,
    {
      maxBytes,
      timeoutMs,
      isOneServer = false,
    }: { maxBytes: number; timeoutMs: number; isOneServer?: boolean },
    signal: AbortSignal | undefined,
  ): Promise<Received> {
    const watch = this.#watch(timeoutMs, signal);
    try {
      const response = await this.#located(from, isOneServer, watch.signal);
      const pieces: Buffer[] = [];
      const hash = createHash('sha256');
      let size = 0;
      for await (const piece of response.body) {
        const bytes = Buffer.from(piece);
        size += bytes.length;
        // Leaving the loop ends the transfer.
        if (size > maxBytes) throw new InvalidReply(`more than ${maxBytes} bytes`);
        hash.update(bytes);
        pieces.push(bytes);
      }
      const sandbox = this.#isSandbox(response);
      const modified = Date.parse(String(response.headers['last-modified'] ?? ''));
      const value: Download = {
        bytes: Buffer.concat(pieces),
        sha256: hash.digest('hex'),
        lastModified: Number.isNaN(modified) ? null : new Date(modified).toISOString(),
      };
      watch.end('ok');
      return { value, sandbox, bytes: size };
    } catch (error) {
      watch.end('failed');
      throw watch.meaning(error);
    }
  }

  /**
   * A reply in events: server-sent ones, each with JSON. It is read no faster than whoever takes its events.
   *
   * @param ended called once its connection is free again
   */
  async stream<T>(
    url: URL,
    request: Pick<UpstreamStreaming<T>, 'schema' | 'headers' | 'last' | 'mayEnd' | 'hasFailed'> &
      Pick<UpstreamStreaming<T>, 'silenceMs' | 'timeoutMs' | 'maxBytes'> & { body?: string | Buffer },
    signal: AbortSignal | undefined,
    ended: () => void,
  ): Promise<Begun<T>> {
    const watch = this.#watch(request.timeoutMs, signal);
    let body: Dispatcher.ResponseData['body'] | undefined;
    const meaning = (error: unknown) =>
      isSilence(error) ? new TimedOut(request.silenceMs) : watch.meaning(error);
    try {
      const response = await send(url, {
        method: 'POST',
        dispatcher: this.#streams,
        headers: this.#headers('text/event-stream', request),
        ...(request.body === undefined ? {} : { body: request.body }),
        headersTimeout: request.silenceMs,
        bodyTimeout: request.silenceMs,
        signal: watch.signal,
      });
      body = response.body;
      body.once('close', ended);
      // Nobody may listen yet when it breaks; whoever reads it is told.
      body.on('error', () => {});
      const type = String(response.headers['content-type'] ?? '');
      const isStream = response.statusCode === 200 && /^text\/event-stream\b/i.test(type);
      if (!isStream) await body.dump({ limit: MAX_REFUSAL_BYTES });
      this.#refuseStatus(response);
      const sandbox = this.#isSandbox(response);
      if (!isStream) throw new InvalidReply(`not a stream but ${type}`);
      return { sandbox, events: eventsOf(body, request, { ...watch, meaning }, signal) };
    } catch (error) {
      if (body === undefined) ended();
      else body.destroy();
      watch.end('failed');
      throw meaning(error);
    }
  }

  async close(): Promise<void> {
    // A stream that nobody reads any more would not end by itself.
    await Promise.all([this.#agent.close(), this.#downloads.close(), this.#streams.destroy()]);
  }

  /** GETs a file where it is, through redirections. */
  async #located(from: URL, isOneServer: boolean, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    let url = from;
    for (let redirections = 0; ; redirections++) {
      const response = await send(url, {
        method: 'GET',
        dispatcher: this.#downloads,
        headers: { accept: '*/*', 'user-agent': this.#parts.userAgent },
        signal,
      });
      const { location } = response.headers;
      const isElsewhere = response.statusCode >= 300 && response.statusCode < 400;
      if (response.statusCode < 200 || response.statusCode > 299) await response.body.dump();
      if (!isElsewhere || typeof location !== 'string') {
        this.#refuseStatus(response);
        return response;
      }
      const next = new URL(location, url);
      if (redirections >= MOST_REDIRECTIONS) throw new InvalidReply('too many redirections');
      if (next.origin !== from.origin) {
        if (isOneServer) throw new InvalidReply('a redirection to another server');
        if (next.protocol !== 'https:') throw new InvalidReply('a redirection to another server without TLS');
      }
      url = next;
    }
  }

  #headers(accept: string, request: { headers?: Record<string, string>; body?: string | Buffer }) {
    return {
      accept,
      'user-agent': this.#parts.userAgent,
      ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...this.#authorization()?.headers,
      ...lowerCased(request.headers),
    };
  }

  #refuseStatus(response: Dispatcher.ResponseData): void {
    const { statusCode } = response;
    if (statusCode < 200 || statusCode > 299)
      throw new StatusError(statusCode, retryAfterOf(response, this.#parts.nowMs()));
  }

  #isSandbox({ headers }: Dispatcher.ResponseData): boolean {
    const sandbox = headers[SANDBOX_HEADER] !== undefined;
    if (sandbox && !this.#parts.acceptSandbox) throw new SandboxReply();
    return sandbox;
  }

  /** Bounds a request in time, and tells what became of it. */
  #watch(timeoutMs: number, signal: AbortSignal | undefined) {
    const { nowMs, onRequest } = this.#parts;
    const deadline = AbortSignal.timeout(timeoutMs);
    const startedAtMs = nowMs();
    return {
      signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
      meaning(error: unknown): unknown {
        if (signal?.aborted === true) return new Abandoned('nobody wants it any more', { cause: error });
        return deadline.aborted ? new TimedOut(timeoutMs) : error;
      },
      end: (outcome: 'ok' | 'failed') => {
        if (outcome === 'ok') this.lastSuccessAtMs = nowMs();
        else this.lastFailureAtMs = nowMs();
        onRequest?.(this.#definition.name, outcome, nowMs() - startedAtMs);
      },
    };
  }
}

async function* eventsOf<T>(
  body: Dispatcher.ResponseData['body'],
  request: Pick<UpstreamStreaming<T>, 'schema' | 'last' | 'mayEnd' | 'hasFailed' | 'maxBytes'>,
  watch: { meaning(error: unknown): unknown; end(outcome: 'ok' | 'failed'): void },
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void> {
  const bounds = { maxBytes: request.maxBytes, maxEventBytes: MAX_EVENT_BYTES };
  let outcome: 'ok' | 'failed' = 'ok';
  try {
    let mayEnd = false;
    for await (const data of readEvents(body, bounds)) {
      if (data === request.last) return;
      const event = fitted(request.schema, decode(Buffer.from(data), 'json'));
      if (request.hasFailed(event)) throw new BrokenOff('by its own word');
      mayEnd ||= request.mayEnd(event);
      yield event;
    }
    if (!mayEnd) throw new BrokenOff('ended before it was done');
  } catch (error) {
    // Who does not want more of it is no failure of the source's.
    if (signal?.aborted !== true) outcome = 'failed';
    throw watch.meaning(error);
  } finally {
    watch.end(outcome);
    body.destroy();
  }
}

/** Whether undici gave up waiting for the next sign of life. */
function isSilence(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'UND_ERR_BODY_TIMEOUT' || code === 'UND_ERR_HEADERS_TIMEOUT';
}

function fitted<T>(schema: UpstreamRequest<T>['schema'], value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new InvalidReply(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'does not fit'}`);
}

function decode(bytes: Buffer, as: 'json' | 'text' | 'bytes'): unknown {
  if (as === 'bytes') return bytes;
  const content = bytes.toString('utf8');
  if (as === 'text') return content;
  try {
    return JSON.parse(content);
  } catch (error) {
    throw new InvalidReply('not JSON', { cause: error });
  }
}

/** So that a name that is given in another case replaces ours and does not stand beside it. */
export function lowerCased(headers: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function retryAfterOf(response: Dispatcher.ResponseData, nowMs: number) {
  const raw = response.headers['retry-after'];
  const value = Array.isArray(raw) ? raw[0] : raw;
  const seconds = Number(value);
  const retryAfterMs =
    value === undefined
      ? undefined
      : Number.isFinite(seconds)
        ? seconds * 1_000
        : Math.max(0, Date.parse(value) - nowMs) || undefined;
  return { retryAfterMs, sandbox: response.headers[SANDBOX_HEADER] !== undefined };
}
