import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { ANY_ANSWER, type AnswerRule } from './outcome.ts';
import { CHUNKED, rawServer, request, signal, sized, upstreamAt } from './raw-upstream.fixture.ts';
import {
  type Upstream,
  UpstreamBroke,
  type UpstreamRequest,
  type UpstreamSettings,
  type UpstreamStream,
} from './upstream.ts';

const EVENTS = `${CHUNKED}Content-Type: text/event-stream\r\n\r\n`;
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const LAST = '0\r\n\r\n';

async function begun(upstream: Upstream, changed: Partial<UpstreamRequest> = {}): Promise<UpstreamStream> {
  const stream = await upstream.stream(request(changed));
  assert(stream.kind === 'stream', `${JSON.stringify(stream)}`);
  return stream;
}

/** All that a stream sends, and why it did not end whole. */
async function readAll(stream: UpstreamStream): Promise<{ text: string; broke: string | null }> {
  let text = '';
  try {
    for await (const piece of stream.pieces) text += piece.toString('latin1');
    return { text, broke: null };
  } catch (error) {
    assert(error instanceof UpstreamBroke);
    return { text, broke: error.failure.reason };
  }
}

describe('a stream', () => {
  test('hands over each event when it comes', async () => {
    const arrived = signal<Socket>();
    const server = await rawServer((socket) => arrived.resolve(socket));
    const asked = upstreamAt(server.url).stream(request());
    const socket = await arrived.promise;
    socket.write(EVENTS);
    const stream = await asked;
    assert(stream.kind === 'stream');
    assert.deepEqual([stream.status, stream.headers['content-type']], [200, 'text/event-stream']);
    const pieces = stream.pieces[Symbol.asyncIterator]();
    for (const event of ['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n']) {
      socket.write(chunk(event));
      assert.equal(String((await pieces.next()).value), event);
    }
    socket.write(LAST);
    assert.equal((await pieces.next()).done, true);
    assert.equal(await stream.ended, null);
  });

  test('is taken no faster than it is read, and goes on when it is', async () => {
    const most = 64 * 1024 * 1024;
    const piece = Buffer.alloc(65_536, 'x');
    const full = signal();
    let written = 0;
    const server = await rawServer((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${most}\r\n\r\n`);
      const push = () => {
        while (written < most) {
          written += piece.length;
          if (!socket.write(piece)) {
            // With this much on its way, nothing leaves any more before somebody reads.
            if (socket.writableLength > 8 * piece.length) full.resolve();
            else socket.once('drain', push);
            return;
          }
        }
      };
      socket.on('drain', push);
      push();
      const timer = setInterval(push, 1);
      socket.once('close', () => clearInterval(timer));
    });
    const stream = await begun(upstreamAt(server.url), { mostAnswerBytes: most });
    await full.promise;
    assert(written < most, 'the upstream was held back');
    let bytes = 0;
    for await (const each of stream.pieces) bytes += each.length;
    assert.equal(bytes, most);
    assert.equal(await stream.ended, null);
  });

  test('closes its connection when its reader leaves', async () => {
    for (const leaves of ['the loop', 'by stop', 'by signal'] as const) {
      const closed = signal();
      const server = await rawServer((socket) => {
        socket.once('close', () => closed.resolve());
        socket.write(`${EVENTS}${chunk('data: 1\n\n')}`);
      });
      const caller = new AbortController();
      const upstream = upstreamAt(server.url, { breaker: { failures: 1, openMs: 1_000 } });
      const stream = await begun(upstream, { signal: caller.signal });
      for await (const _ of stream.pieces) {
        if (leaves === 'the loop') break;
        if (leaves === 'by stop') stream.stop();
        else caller.abort();
        break;
      }
      await closed.promise;
      assert.equal((await stream.ended)?.reason, 'abandoned', leaves);
      assert.deepEqual(upstream.state, { isOpen: false, retryAfterMs: null, calls: 0, waiting: 0 });
    }
  });

  test('tells a reader who waits that it was stopped', async () => {
    const server = await rawServer((socket) => socket.write(EVENTS));
    const stream = await begun(upstreamAt(server.url));
    const read = readAll(stream);
    stream.stop();
    assert.deepEqual(await read, { text: '', broke: 'abandoned' });
  });

  test('that breaks off ends in an error, after all that came', async () => {
    const event = chunk('data: 1\n\n');
    const rows: [name: string, bytes: string, reason: string | null, rule: Partial<AnswerRule>][] = [
      ['whole', `${EVENTS}${event}${LAST}`, null, {}],
      ['cut', `${EVENTS}${event}`, 'cut', {}],
      [
        'cut, and said to close',
        `${EVENTS.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}${event}`,
        'cut',
        {},
      ],
      ['without a length', 'HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n', 'unproven', {}],
      ['without its last event', `${EVENTS}${event}${LAST}`, 'cut', { lastEvent: '[DONE]' }],
      ['too short', `${EVENTS}${event}${LAST}`, 'no_answer', { leastBytes: 10 }],
    ];
    for (const [name, bytes, reason, rule] of rows) {
      const server = await rawServer((socket) => socket.end(bytes));
      const stream = await begun(upstreamAt(server.url), { rule: { ...ANY_ANSWER, ...rule } });
      assert.deepEqual(await readAll(stream), { text: 'data: 1\n\n', broke: reason }, name);
      assert.equal((await stream.ended)?.reason ?? null, reason, name);
    }
  });

  test('ends whole by its last event, whatever ends its connection', async () => {
    const text = 'data: 1\n\ndata: [DONE]\n\n';
    const server = await rawServer((socket) => socket.end(`HTTP/1.0 200 OK\r\n\r\n${text}`));
    const stream = await begun(upstreamAt(server.url), { rule: { ...ANY_ANSWER, lastEvent: '[DONE]' } });
    assert.deepEqual(await readAll(stream), { text, broke: null });
  });

  test('is bounded in size, in silence and in time, but not in silence that its reader makes', async () => {
    const rows: [reason: string, settings: Partial<UpstreamSettings>, asked: Partial<UpstreamRequest>][] = [
      ['too_large', {}, { mostAnswerBytes: 8 }],
      ['timed_out', { idleTimeoutMs: 40 }, {}],
      ['timed_out', {}, { wholeTimeoutMs: 200 }],
    ];
    for (const [reason, settings, asked] of rows) {
      const server = await rawServer((socket) => socket.write(`${EVENTS}${chunk('data: 1\n\n')}`));
      const upstream = upstreamAt(server.url, settings);
      assert.equal((await readAll(await begun(upstream, asked))).broke, reason);
      assert.equal(upstream.state.calls, 0);
    }
    const most = 4 * 1024 * 1024;
    const server = await rawServer((socket, text) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${most}\r\n\r\n`);
      if (!text.startsWith('GET /silent')) socket.write(Buffer.alloc(most));
    });
    const upstream = upstreamAt(server.url, { idleTimeoutMs: 30 });
    const stream = await begun(upstream, { mostAnswerBytes: most });
    // The reader is silent for longer than an upstream may be, which another call shows.
    for (let n = 0; n < 3; n++) {
      const silent = await upstream.ask(request({ target: '/silent', mostAnswerBytes: most }));
      assert.equal(silent.kind === 'failure' && silent.reason, 'timed_out');
    }
    assert.equal((await readAll(stream)).broke, null);
  });

  test('is whole when all of it waits for its reader, and its connection has ended', async () => {
    const most = 131_072;
    const closed = signal();
    const server = await rawServer((socket) => {
      socket.once('close', () => closed.resolve());
      socket.end(sized('x'.repeat(most)));
    });
    const stream = await begun(upstreamAt(server.url));
    await closed.promise;
    const { text, broke } = await readAll(stream);
    assert.deepEqual([text.length, broke], [most, null]);
  });

  test('ends in time though nobody reads it', async () => {
    const server = await rawServer((socket) => {
      socket.write(EVENTS);
      const timer = setInterval(() => socket.write(chunk('x'.repeat(60_000))), 1);
      socket.once('close', () => clearInterval(timer));
    });
    const upstream = upstreamAt(server.url);
    const stream = await begun(upstream, { wholeTimeoutMs: 200 });
    assert.equal((await stream.ended)?.reason, 'timed_out');
    assert.equal(upstream.state.calls, 0);
  });

  test('never begins with what is no answer', async () => {
    const rows: [bytes: string, expected: string][] = [
      [
        sized('gone', 'HTTP/1.1 404 Not Found', 'Content-Type: text/plain\r\n'),
        'refusal 404 text/plain gone',
      ],
      [sized('no', 'HTTP/1.1 500 No'), 'failed'],
      [sized('no', 'HTTP/1.1 401 No'), 'refused_us'],
      [sized('x', undefined, 'Content-Type: text/html\r\n'), 'no_answer'],
      ['', 'broken'],
      ['HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n', 'too_large'],
    ];
    for (const [bytes, expected] of rows) {
      const server = await rawServer((socket) => socket.end(bytes));
      const rule = { ...ANY_ANSWER, contentTypes: ['text/event-stream', 'text/plain'] };
      const ended = await upstreamAt(server.url).stream(
        request({ rule: expected === 'too_large' ? ANY_ANSWER : rule }),
      );
      const shown =
        ended.kind === 'refusal'
          ? `refusal ${ended.status} ${ended.contentType} ${ended.body}`
          : ended.kind === 'failure'
            ? ended.reason
            : ended.kind;
      assert.equal(shown, expected);
    }
  });

  test('cannot be judged by fields of its body', async () => {
    const upstream = upstreamAt('http://127.0.0.1:1');
    for (const rule of [{ has: [['a']] }, { hasNot: [['a']] }, { equals: [{ path: ['a'], value: 1 }] }])
      await assert.rejects(
        upstream.stream(request({ rule: { ...ANY_ANSWER, ...rule } })),
        /cannot be looked at/,
      );
    assert.equal(upstream.state.calls, 0);
  });

  test('that tries an upstream again lets others call as soon as it begins, and counts when it breaks', async () => {
    const clock = { nowMs: 0 };
    const streaming = signal<Socket>();
    const server = await rawServer((socket, _, index) => {
      if (index === 0) socket.end();
      else if (index === 1) {
        socket.write(EVENTS);
        streaming.resolve(socket);
      } else socket.write(sized('x'));
    });
    const breaker = { failures: 1, openMs: 1_000 };
    const upstream = upstreamAt(server.url, { breaker, nowMs: () => clock.nowMs });
    await upstream.ask(request());
    assert.equal(upstream.state.isOpen, true);
    clock.nowMs = 1_000;
    const stream = await begun(upstream);
    assert.equal((await upstream.ask(request())).kind, 'answer');
    (await streaming.promise).destroy();
    assert.equal((await readAll(stream)).broke, 'cut');
    assert.equal(upstream.state.isOpen, true);
  });

  test('holds its place until it ends, and an upstream that closes waits for it', async () => {
    const arrived = signal<Socket>();
    const server = await rawServer((socket) => {
      socket.write(EVENTS);
      arrived.resolve(socket);
    });
    const upstream = upstreamAt(server.url, { concurrency: 1, mostWaiting: 0 });
    const stream = await begun(upstream);
    const busy = await upstream.ask(request());
    assert(busy.kind === 'failure' && busy.reason === 'busy');
    const closed = upstream.close();
    (await arrived.promise).write(`${chunk('data: 1\n\n')}${LAST}`);
    assert.deepEqual(await readAll(stream), { text: 'data: 1\n\n', broke: null });
    await closed;
  });
});
