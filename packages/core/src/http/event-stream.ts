/** Answers that leave in pieces: how they are sent, and how slow their readers may be. */
import type { FastifyReply } from 'fastify';
import { headOf } from './server.ts';

/**
 * How often an idle stream of server-sent events (WHATWG HTML, 9.2) says that it is there, so that nobody on the way takes it
 * for dead.
 */
const BEAT_MS = 10_000;
const BEAT = ':\n\n';
/** The longest that a reader may take nothing at a stretch, whatever it may take in all: those who send to us have less. */
const LONGEST_STALL_MS = 30_000;
const HEADERS = {
  // What is between us and the reader is to pass on what it gets, as it gets it.
  'cache-control': 'private, no-store, no-transform',
  'x-accel-buffering': 'no',
};
const OF_EVENTS = { 'content-type': 'text/event-stream' };

/**
 * Begins a stream of server-sent events in place of a reply.
 *
 * @param patienceMs the longest that the reader may keep it waiting, in all; then it is cut off
 */
export function openEventStream(
  reply: FastifyReply,
  headers: Readonly<Record<string, string>>,
  patienceMs: number,
) {
  const head = { status: 200, headers: { ...OF_EVENTS, ...headers } };
  return openStream(reply, head, { mayBeat: true, patienceMs });
}

/**
 * Begins a stream in place of a reply.
 *
 * @param bounds.mayBeat whether an idle stream may say so
 * @param bounds.patienceMs the longest that the reader may keep it waiting, in all; then it is cut off
 */
export function openStream(
  reply: FastifyReply,
  { status, headers }: { status: number; headers: Readonly<Record<string, string>> },
  { mayBeat, patienceMs }: { mayBeat: boolean; patienceMs: number },
) {
  reply.hijack();
  const { raw } = reply;
  let isClosed = raw.destroyed || raw.socket?.destroyed !== false;
  /** Ends a wait, which is for one thing at a time. */
  let wake = () => {};
  const closed = new Promise<void>((resolve) => {
    raw.once('close', () => {
      isClosed = true;
      clearInterval(beat);
      wake();
      resolve();
    });
    if (isClosed) resolve();
  });
  const beat = setInterval(() => {
    if (mayBeat && !isClosed && !raw.writableNeedDrain) raw.write(BEAT);
  }, BEAT_MS);
  beat.unref();
  raw.writeHead(status, headOf(reply, { ...HEADERS, ...headers }));
  raw.flushHeaders();
  let leftMs = patienceMs;

  /** Waits for the reader, and cuts it off when its time is over. */
  async function waitFor(event: 'drain' | 'finish'): Promise<void> {
    const startedAtMs = performance.now();
    const timer = setTimeout(() => raw.destroy(), Math.min(Math.max(leftMs, 0), LONGEST_STALL_MS));
    await new Promise<void>((resolve) => {
      wake = resolve;
      raw.once(event, resolve);
    });
    raw.off(event, wake);
    clearTimeout(timer);
    leftMs -= performance.now() - startedAtMs;
  }

  return {
    closed,

    async write(piece: Buffer): Promise<'sent' | 'lost'> {
      if (!isClosed && !raw.write(piece)) await waitFor('drain');
      return isClosed ? 'lost' : 'sent';
    },

    async end(piece: Buffer): Promise<void> {
      clearInterval(beat);
      if (isClosed) return;
      const finished = waitFor('finish');
      raw.end(piece);
      await finished;
    },

    /** Breaks it off. Who reads to the end of the connection, as HTTP/1.0 does, learns of it by a reset. */
    cut(): void {
      clearInterval(beat);
      const { socket } = raw;
      if (reply.request.raw.httpVersionMinor === 0 && socket !== null) socket.resetAndDestroy();
      else raw.destroy();
    },
  };
}
