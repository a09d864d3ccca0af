/** A server that sends whatever bytes a test wants, and an upstream that asks it. */
import { createServer, type Socket } from 'node:net';
import { after } from 'node:test';
import { ANY_ANSWER } from './outcome.ts';
import { openUpstream, type Upstream, type UpstreamRequest, type UpstreamSettings } from './upstream.ts';

export interface RawServer {
  url: string;
  /** The requests that came, each as text. */
  requests: string[];
  /** The connections that were made. */
  sockets: Socket[];
  /** Takes no further connections. */
  stopListening(): void;
}

/** Something that a test waits for. */
export function signal<T = void>() {
  return Promise.withResolvers<T>();
}

/**
 * Listens on loopback until the tests are over. Each request, which has a body of a known length or none, is answered by `answer`.
 *
 * @param answer gets the connection, the request, and its number from 0 on
 */
export async function rawServer(
  answer: (socket: Socket, request: string, index: number) => void,
): Promise<RawServer> {
  const made: RawServer = { url: '', requests: [], sockets: [], stopListening: () => server.close() };
  const server = createServer((socket) => {
    made.sockets.push(socket);
    let text = '';
    socket.setEncoding('latin1');
    socket.on('error', () => {});
    socket.on('data', (piece) => {
      text += String(piece);
      for (;;) {
        const headEnd = text.indexOf('\r\n\r\n');
        if (headEnd === -1) return;
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, headEnd))?.[1] ?? 0);
        const end = headEnd + 4 + length;
        if (text.length < end) return;
        const request = text.slice(0, end);
        text = text.slice(end);
        made.requests.push(request);
        answer(socket, request, made.requests.length - 1);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  made.url = typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : '';
  after(() => {
    for (const socket of made.sockets) socket.destroy();
    server.close();
  });
  return made;
}

/** An upstream with patience for slow machines, unless a test sets less. It is closed when the tests are over. */
export function upstreamAt(url: string, changed: Partial<UpstreamSettings> = {}): Upstream {
  const upstream = openUpstream({
    url,
    headers: {},
    query: {},
    headersTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    wholeTimeoutMs: 60_000,
    concurrency: 8,
    mostWaiting: 8,
    keepAlive: true,
    breaker: null,
    nowMs: () => 0,
    ...changed,
  });
  after(() => upstream.destroy());
  return upstream;
}

export function request(changed: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return {
    method: 'GET',
    target: '/x',
    headers: ['accept', '*/*'],
    body: null,
    rule: ANY_ANSWER,
    mostAnswerBytes: 1_000_000,
    repeat: 'never',
    idempotencyKey: null,
    ...changed,
  };
}

export const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n';
/** An answer with its length. */
export const sized = (body: string, head = 'HTTP/1.1 200 OK', headers = ''): string =>
  `${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;
