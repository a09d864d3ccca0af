/** Server-sent events (WHATWG HTML, 9.2): how an answer leaves in pieces, and how slow its reader may be. */
import type { FastifyReply } from 'fastify';
import { headOf } from './server.ts';

/** How often an idle stream says that it is there, so that nobody on the way takes it for dead. */
const BEAT_MS = 10_000;
const BEAT = ':\n\n';
const HEADERS = {
  'content-type': 'text/event-stream',
  // What is between us and the reader is to pass on what it gets, as it gets it.
  'cache-control': 'private, no-store, no-transform',
  'x-accel-buffering': 'no',
};

/**
 * Begins a stream in place of a reply.
 *
 * @param patienceMs the longest that the reader may keep it waiting, in all; then it is cut off
 */
export function openEventStream(
  reply: FastifyReply,
  headers: Readonly<Record<string, string>>,
  patienceMs: number,
) {
  reply.hijack();
  const { raw } = reply;
  let isClosed = raw.destroyed || raw.socket?.destroyed !== false;
  const closed = new Promise<void>((resolve) => {
    raw.once('close', () => {
      isClosed = true;
      clearInterval(beat);
      resolve();
    });
    if (isClosed) resolve();
  });
  const beat = setInterval(() => {
    if (!isClosed && !raw.writableNeedDrain) raw.write(BEAT);
  }, BEAT_MS);
  beat.unref();
  raw.writeHead(200, headOf(reply, { ...HEADERS, ...headers }));
  raw.flushHeaders();
  let leftMs = patienceMs;

  /** Waits for the reader, and cuts it off when its time is over. */
  async function waitFor(event: 'drain' | 'finish'): Promise<void> {
    const startedAtMs = performance.now();
    let done = () => {};
    const happened = new Promise<void>((resolve) => {
      done = resolve;
      raw.once(event, resolve);
    });
    const timer = setTimeout(() => raw.destroy(), Math.max(leftMs, 0));
    await Promise.race([happened, closed]);
    clearTimeout(timer);
    raw.off(event, done);
    leftMs -= performance.now() - startedAtMs;
  }

  return {
    closed,

    async write(event: Buffer): Promise<'sent' | 'lost'> {
      if (!isClosed && !raw.write(event)) await waitFor('drain');
      return isClosed ? 'lost' : 'sent';
    },

    async end(event: Buffer): Promise<void> {
      clearInterval(beat);
      if (isClosed) return;
      const finished = waitFor('finish');
      raw.end(event);
      await finished;
    },
  };
}
