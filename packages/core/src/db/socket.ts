/**
 * The sockets under the driver. Four faults are mended here that cannot be mended above it.
 *
 * The driver takes queries between a socket's `error` and its `close`, and does not answer them; after it has connected
 * again it answers them with an empty result although they were never sent (postgres.js 3.4.9, `ReadyForQuery`). A socket
 * from here tells both events at once, so there is no such moment. That needs the TLS socket too, hence TLS is negotiated
 * here.
 *
 * A connection whose peer went silent stays open for as long as TCP retransmits. A socket from here knows when it was last
 * written to and when it last heard something, and can be dropped. One that has heard nothing yet is given up in time, in which
 * only that counts in which this process ran: whoever stood still finds the answer waiting, and the driver's own timer would be
 * looked at first.
 *
 * What the driver was about to write when its connection broke is kept, and it believes for good that it will be written in
 * the next turn (`nextWriteTimer`): the first message of the next connection waits behind it, and nothing is ever sent. Only
 * what has 1,024 bytes is written at once. `STARTUP_FILLING` makes the first message that long, and a socket from here sends
 * it without the filling and without what was left before it.
 */
import { connect as connectTcp, isIP, Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { measureAwake } from '@farebox/process/awake-time';
import type { Endpoint, Target } from './primary.ts';

export interface SocketPool {
  /** For the driver: a socket that is connecting or connected. Never rejects: what fails is told by the socket's events. */
  open(): Promise<Socket>;
  /** Drops the connections that were written to and have said nothing since then. @returns how many */
  dropSilentSince(sinceMs: number): number;
}

/** The way to the server. */
interface Reached {
  target: Target;
  tls: { optional: boolean; options: ConnectionOptions } | null;
  connectTimeoutMs: number;
}

interface Watched {
  wroteAtMs: number;
  heardAtMs: number;
}

/** A parameter of the startup message, for the driver alone: the server never sees it. */
export const STARTUP_FILLING = { _filling: '.'.repeat(1_024) };
const FILLING = Buffer.from(`${Object.entries(STARTUP_FILLING).flat().join('\0')}\0`);
/** What a startup message has after its length: version 3.0 of the protocol. */
const PROTOCOL_VERSION = 0x3_0000;
/** PostgreSQL's `SSLRequest` message. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
const ACCEPTS_TLS = 'S'.charCodeAt(0);
/** How often it is looked whether a new connection has heard anything. */
const LOOKED_EVERY_MS = 250;
/** So much is counted at most between two looks: in what is longer, this process did not run. */
const COUNTED_MS = 2 * LOOKED_EVERY_MS;

/**
 * @param options.target the server that connections lead to
 * @param options.tls how TLS is spoken; null: not at all. `optional`: in the clear where the server has no TLS
 * @param options.heard told of every chunk that arrives
 */
export function createSocketPool(options: Reached & { heard(): void }): SocketPool {
  const sockets = new Map<Socket, Watched>();

  /** @param closed called once when it has closed */
  function watch(socket: Socket, closed: () => void): Socket {
    const watched: Watched = { wroteAtMs: performance.now(), heardAtMs: performance.now() };
    sockets.set(socket, watched);
    const awaited = awaitFirst(options.connectTimeoutMs, (late) => socket.emit('error', late));
    let isStarted = false;
    let isClosed = false;
    const write = socket.write.bind(socket) as (bytes: Buffer, ...args: unknown[]) => boolean;
    socket.write = ((bytes: Buffer, ...args: unknown[]) => {
      watched.wroteAtMs = performance.now();
      if (isStarted) return write(bytes, ...args);
      isStarted = true;
      return write(startupIn(bytes), ...args);
    }) as Socket['write'];
    const emit = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean;
    const close = (hadError: boolean): boolean => {
      if (isClosed) return false;
      isClosed = true;
      awaited.stop();
      sockets.delete(socket);
      closed();
      return emit('close', hadError);
    };
    socket.emit = (event: string | symbol, ...args: unknown[]): boolean => {
      if (event === 'data') {
        awaited.stop();
        watched.heardAtMs = performance.now();
        options.heard();
      }
      if (event === 'close') return close(args[0] === true);
      if (event !== 'error') return emit(event, ...args);
      if (isClosed) return false;
      emit('error', ...args);
      socket.destroy();
      close(true);
      return true;
    };
    return socket;
  }

  /** A socket that failed before it was one. */
  function failed(error: unknown): Socket {
    const socket = watch(new Socket(), () => {});
    // The driver listens by then.
    setImmediate(() => socket.emit('error', error));
    return socket;
  }

  return {
    open: () =>
      options.target
        .next()
        .then((endpoint) => connectTo(endpoint, options, watch))
        .catch(failed),

    dropSilentSince(sinceMs) {
      let dropped = 0;
      for (const [socket, { wroteAtMs, heardAtMs }] of [...sockets]) {
        if (wroteAtMs <= heardAtMs || heardAtMs > sinceMs) continue;
        dropped += 1;
        socket.emit('error', Object.assign(new Error('the database went silent'), { code: 'ETIMEDOUT' }));
      }
      return dropped;
    },
  };
}

/** Tells once, by an error, that so much time has passed in which this process ran, unless it is stopped before. */
function awaitFirst(timeoutMs: number, tell: (late: Error) => void): { stop(): void } {
  const awake = measureAwake(() => performance.now(), COUNTED_MS);
  const stop = () => {
    clearInterval(looking);
    awake.stop();
  };
  const looking = setInterval(() => {
    if (awake.passedMs() < timeoutMs) return;
    stop();
    tell(Object.assign(new Error('the database did not let us in in time'), { code: 'ETIMEDOUT' }));
  }, LOOKED_EVERY_MS);
  looking.unref();
  return { stop };
}

/** Opens a socket to a server. @throws when TLS is needed and not to be had */
async function connectTo(
  endpoint: Endpoint,
  { target, tls, connectTimeoutMs }: Reached,
  watch: (socket: Socket, closed: () => void) => Socket,
): Promise<Socket> {
  const plain = connectTcp({ ...endpoint, noDelay: true });
  let given: Socket = plain;
  const closed = target.opened(endpoint, (why) => given.emit('error', why));
  if (tls === null) return watch(plain, closed);
  const host = 'host' in endpoint ? endpoint.host : 'localhost';
  try {
    given = watch(await negotiate(plain, host, tls, connectTimeoutMs), closed);
    return given;
  } catch (error) {
    plain.on('error', () => {}).destroy();
    closed();
    throw error;
  }
}

/** The startup message, without its filling, at the end of what the driver writes first. */
function startupIn(bytes: Buffer): Buffer {
  const fillingAt = bytes.lastIndexOf(FILLING);
  for (let at = fillingAt; at >= 0; at--) {
    const length = bytes.length - at;
    if (bytes.readUInt32BE(at) !== length || bytes.readUInt32BE(at + 4) !== PROTOCOL_VERSION) continue;
    const startup = Buffer.concat([
      bytes.subarray(at, fillingAt),
      bytes.subarray(fillingAt + FILLING.length),
    ]);
    startup.writeUInt32BE(startup.length, 0);
    return startup;
  }
  return bytes;
}

/** Asks the server for TLS and brings it up, in one bounded time. @throws when it is needed and not to be had */
async function negotiate(
  socket: Socket,
  host: string,
  tls: { optional: boolean; options: ConnectionOptions },
  timeoutMs: number,
): Promise<Socket> {
  const { promise: ready, resolve, reject } = Promise.withResolvers<Socket>();
  const timer = setTimeout(() => {
    reject(Object.assign(new Error('TLS with the database was not ready in time'), { code: 'ETIMEDOUT' }));
    socket.destroy();
  }, timeoutMs);
  socket.once('error', reject);
  socket.once('close', () => reject(new Error('the database closed the connection before TLS was ready')));
  socket.once('connect', () => socket.write(SSL_REQUEST));
  socket.once('data', (answer) => {
    // Exactly one byte: more would be somebody's who speaks before TLS protects us (CVE-2021-23222).
    if (answer.length !== 1) return reject(new Error('the database said more than whether it has TLS'));
    if (answer[0] !== ACCEPTS_TLS) {
      if (tls.optional) return resolve(socket);
      return reject(new Error('the database has no TLS, and DATABASE_URL asks for it'));
    }
    // What breaks later is told by the one that the driver holds.
    socket.on('error', () => {});
    const secured = connectTls({
      socket,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...tls.options,
    });
    secured.on('error', reject);
    secured.once('secureConnect', () => resolve(secured));
  });
  try {
    return await ready;
  } finally {
    clearTimeout(timer);
    socket.removeListener('error', reject);
  }
}
