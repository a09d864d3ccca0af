/** The connections to one upstream. */
import type { Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher, errors, Pool } from 'undici';

/** Above these, the headers of an answer end the connection. */
const MOST_HEADER_BYTES = 16_384;
/**
 * How long a connection is kept for the next call if its upstream does not say how long it keeps it. Short, because a call that goes
 * out just when the other side closes fails, and a write is not sent again.
 */
const KEPT_MS = 1_000;
const KEPT_AT_MOST_MS = 60_000;

/** A handler that tells how far the answer to its request is. */
export interface Rider {
  /** Takes how to say that its request starts, on the connection that it was given to. */
  rides(starts: () => void): void;
  /** Whether the connection must not end now, because the body comes in chunks and the last one is missing. */
  isWithinChunks(): boolean;
}

/** One connection at a time, which says what undici does not: that it ended or was reset within a body in chunks. */
class Lane extends Client {
  readonly #carried: { rider: Partial<Rider> | null };

  constructor(origin: string | URL, options: Client.Options, connect: buildConnector.connector) {
    const carried: { rider: Partial<Rider> | null } = { rider: null };
    super(origin, {
      ...options,
      connect: (target, done) =>
        connect(target, (...made) => {
          if (made[0] === null) guard(made[1], () => carried.rider?.isWithinChunks?.() === true);
          done(...made);
        }),
    });
    this.#carried = carried;
  }

  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler & Partial<Rider>,
  ): boolean {
    handler.rides?.(() => {
      this.#carried.rider = handler;
    });
    return super.dispatch(options, handler);
  }
}

/**
 * Has a connection fail that ends too early. undici takes the end, and a reset, for the end of the body when the upstream said that it
 * closes; and when the connection ends within the name of a trailer, an assertion of undici fails where nobody can catch it.
 */
function guard(socket: Socket, isWithinChunks: () => boolean): void {
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...values: unknown[]) => boolean;
  const guarded = (event: string | symbol, ...values: unknown[]): boolean => {
    if (event === 'end' && isWithinChunks()) {
      socket.destroy(new errors.SocketError('the connection ended within a body in chunks'));
      return true;
    }
    const [error] = values;
    const isReset =
      event === 'error' && error instanceof Error && 'code' in error && error.code === 'ECONNRESET';
    return isReset ? emit(event, new errors.SocketError(error.message)) : emit(event, ...values);
  };
  socket.emit = guarded as typeof socket.emit;
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
