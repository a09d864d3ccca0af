/** The connections to one upstream. */
import type { Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher, Pool } from 'undici';

/** Above these, the headers of an answer end the connection. */
const MOST_HEADER_BYTES = 16_384;
/**
 * How long a connection is kept for the next call if its upstream does not say how long it keeps it. Short, because a call that goes
 * out just when the other side closes fails, and a write is not sent again.
 */
const KEPT_MS = 1_000;
const KEPT_AT_MOST_MS = 60_000;

/** A handler that wants to know the connection on which its request goes out. */
export interface OnSocket {
  /** Called before the request starts. @param socket the connection at the time of the call */
  rides(socket: () => Socket | null): void;
}

/** One connection at a time. undici does not say which one a request is on, and that tells whether a body was cut off. */
class Lane extends Client {
  readonly #current: { socket: Socket | null };

  constructor(origin: string | URL, options: Client.Options, connect: buildConnector.connector) {
    const current: { socket: Socket | null } = { socket: null };
    super(origin, {
      ...options,
      connect: (target, done) =>
        connect(target, (...made) => {
          current.socket = made[1];
          done(...made);
        }),
    });
    this.#current = current;
  }

  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler & Partial<OnSocket>,
  ): boolean {
    handler.rides?.(() => this.#current.socket);
    return super.dispatch(options, handler);
  }
}

/**
 * Opens the connections to an upstream. Times are watched by whoever dispatches, bodies too.
 *
 * @param connections how many there are at most
 * @param connectTimeoutMs how long making one may take
 */
export function openLanes(origin: string, connections: number, connectTimeoutMs: number): Pool {
  const connect = buildConnector({ allowH2: false, timeout: connectTimeoutMs });
  return new Pool(origin, {
    connections,
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: MOST_HEADER_BYTES,
    maxResponseSize: -1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEPT_MS,
    keepAliveMaxTimeout: KEPT_AT_MOST_MS,
    strictContentLength: true,
    factory: (at, options) => new Lane(at, options, connect),
  });
}
