import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { ANY_ANSWER, type AnswerRule, type UpstreamOutcome } from './outcome.ts';
import { CHUNKED, rawServer, request, signal, sized, upstreamAt } from './raw-upstream.fixture.ts';
import { openUpstream, type UpstreamSettings } from './upstream.ts';

/** An outcome in short: the status and text of an answer or a refusal, or the reason of a failure. */
function short(outcome: UpstreamOutcome): string {
  if (outcome.kind === 'failure') return outcome.reason;
  return `${outcome.kind} ${outcome.status} ${outcome.body === null ? 'too long' : outcome.body.toString('latin1')}`;
}

/** Runs what is given when the bytes before it have left, so that they arrive by themselves. */
const later = (run: () => void): void => {
  setTimeout(run, 5);
};

interface Row {
  name: string;
  sends: (socket: Socket) => void;
  means: string;
  rule?: Partial<AnswerRule>;
  settings?: Partial<UpstreamSettings>;
  method?: string;
  mostAnswerBytes?: number;
}

const SOON = { headersTimeoutMs: 60, idleTimeoutMs: 60 };
const drip = (socket: Socket, bytes: string, everyMs: number): void => {
  const timer = setInterval(() => socket.write(bytes), everyMs);
  socket.once('close', () => clearInterval(timer));
};

/** Sends the beginning, and then the same bytes again and again. */
const endless = (first: string, bytes: string, everyMs: number) => (socket: Socket) => {
  socket.write(first);
  drip(socket, bytes, everyMs);
};

/** Each thing that an upstream may do wrong, and what becomes of the call. */
const BROKEN: readonly Row[] = [
  { name: 'closes before its head', sends: (s) => s.end(), means: 'broken' },
  { name: 'resets before its head', sends: (s) => s.resetAndDestroy(), means: 'broken' },
  { name: 'closes within its head', sends: (s) => s.end('HTTP/1.1 200 OK\r\nContent-Le'), means: 'broken' },
  {
    name: 'dies within a body with a length',
    sends: (s) => s.end(`HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n${'x'.repeat(50)}`),
    means: 'cut',
  },
  {
    name: 'dies within a body with a length, after it said that it closes',
    sends: (s) =>
      s.end(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100\r\n\r\n${'x'.repeat(50)}`),
    means: 'cut',
  },
  {
    name: 'is reset within a body with a length',
    sends: (s) => {
      s.write(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100\r\n\r\n${'x'.repeat(50)}`);
      later(() => s.resetAndDestroy());
    },
    means: 'cut',
  },
  { name: 'dies within a body in chunks', sends: (s) => s.end(`${CHUNKED}\r\n5\r\nhello\r\n`), means: 'cut' },
  // undici itself says of the next three that they ended whole.
  {
    name: 'dies between chunks, after it said that it closes',
    sends: (s) => s.end(`${CHUNKED}Connection: close\r\n\r\n5\r\nhello\r\n`),
    means: 'cut',
  },
  {
    name: 'dies within a chunk, after it said that it closes',
    sends: (s) => s.end(`${CHUNKED}Connection: close\r\n\r\nff\r\nhello`),
    means: 'cut',
  },
  {
    name: 'is reset between chunks, after it said that it closes',
    sends: (s) => {
      s.write(`${CHUNKED}Connection: close\r\n\r\n5\r\nhello\r\n`);
      later(() => s.resetAndDestroy());
    },
    means: 'cut',
  },
  {
    name: 'dies before the last empty line of its chunks',
    sends: (s) => s.end(`${CHUNKED}Connection: close\r\n\r\n5\r\nhello\r\n0\r\n`),
    means: 'cut',
  },
  {
    name: 'ends its chunks and closes',
    sends: (s) => s.end(`${CHUNKED}Connection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n`),
    means: 'answer 200 hello',
  },
  {
    name: 'sends more than its length',
    sends: (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234567890123456789'),
    means: 'answer 200 0123456789',
  },
  {
    name: 'has a length and chunks',
    sends: (s) => s.end(`${CHUNKED}Content-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n`),
    means: 'broken',
  },
  {
    name: 'has two lengths',
    sends: (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!'),
    means: 'broken',
  },
  {
    name: 'has a negative length',
    sends: (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello'),
    means: 'broken',
  },
  {
    name: 'has a coding that is not chunks',
    sends: (s) => s.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello'),
    means: 'broken',
  },
  {
    name: 'has a coding within chunks',
    sends: (s) => s.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'),
    means: 'broken',
  },
  {
    name: 'has two codings',
    sends: (s) => s.end(`${CHUNKED}Transfer-Encoding: identity\r\n\r\n5\r\nhello\r\n0\r\n\r\n`),
    means: 'broken',
  },
  { name: 'sends garbage', sends: (s) => s.end('\0\x01SSH-2.0\r\n\r\n'), means: 'broken' },
  {
    name: 'has a bad size of a chunk',
    sends: (s) => s.end(`${CHUNKED}\r\n5\r\nhello\r\nzz\r\n`),
    means: 'cut',
  },
  {
    name: 'ends a text by its close',
    sends: (s) => s.end('HTTP/1.1 200 OK\r\n\r\nhello'),
    means: 'unproven',
  },
  {
    name: 'ends a text by its close, which its route takes',
    sends: (s) => s.end('HTTP/1.0 200 OK\r\n\r\nhello'),
    means: 'answer 200 hello',
    rule: { mayEndByClose: true },
  },
  {
    name: 'ends a text by a reset, which no route takes',
    sends: (s) => {
      s.write('HTTP/1.1 200 OK\r\n\r\nhello');
      later(() => s.resetAndDestroy());
    },
    means: 'cut',
    rule: { mayEndByClose: true },
  },
  {
    name: 'ends JSON by its close',
    sends: (s) => s.end('HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"a":1}'),
    means: 'answer 200 {"a":1}',
  },
  {
    name: 'ends a part of JSON by its close',
    sends: (s) => s.end('HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"a":'),
    means: 'unproven',
  },
  { name: 'sends no head', sends: () => {}, means: 'timed_out', settings: SOON },
  { name: 'drips its head', sends: (s) => drip(s, 'H', 10), means: 'broken' },
  {
    name: 'drips headers',
    sends: endless('HTTP/1.1 200 OK\r\n', 'a: b\r\n', 10),
    means: 'timed_out',
    settings: SOON,
  },
  {
    name: 'stops within its body',
    sends: (s) => s.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello'),
    means: 'timed_out',
    settings: SOON,
  },
  {
    name: 'drips its body faster than it may pause, and slower than it may take',
    sends: endless('HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n', 'x', 5),
    means: 'timed_out',
    settings: { wholeTimeoutMs: 100 },
  },
  {
    name: 'sends the extension of a chunk for ever',
    sends: endless(`${CHUNKED}\r\n5;`, 'x', 5),
    means: 'timed_out',
    settings: SOON,
  },
  {
    name: 'sends hints first',
    sends: (s) =>
      s.end(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${sized('x')}`),
    means: 'answer 200 x',
  },
  {
    name: 'sends hints for ever',
    sends: (s) => drip(s, 'HTTP/1.1 103 Early Hints\r\n\r\n', 1),
    means: 'broken',
  },
  {
    name: 'tells to go on, which nobody asked',
    sends: (s) => s.end(`HTTP/1.1 100 Continue\r\n\r\n${sized('x')}`),
    means: 'broken',
  },
  {
    name: 'changes the protocol',
    sends: (s) =>
      s.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n'),
    means: 'broken',
  },
  {
    name: 'has trailers',
    sends: (s) =>
      s.end(`${CHUNKED}Trailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a=b\r\n\r\n`),
    means: 'answer 200 hello',
  },
  {
    name: 'compresses, though nobody asked for that',
    sends: (s) => s.end(sized('x', undefined, 'Content-Encoding: gzip\r\n')),
    means: 'no_answer',
  },
  { name: 'answers HEAD with a body', sends: (s) => s.end(sized('x')), means: 'answer 200 ', method: 'HEAD' },
  { name: 'has no content', sends: (s) => s.end('HTTP/1.1 204 No Content\r\n\r\n'), means: 'answer 204 ' },
  {
    name: 'has no content, and yet one',
    sends: (s) => s.end(sized('hello', 'HTTP/1.1 204 No Content')),
    means: 'answer 204 ',
  },
  {
    name: 'has a header too large',
    sends: (s) => s.end(sized('x', undefined, `A: ${'a'.repeat(20_000)}\r\n`)),
    means: 'broken',
  },
  {
    name: 'has too many headers',
    sends: (s) => s.end(sized('x', undefined, 'A: b\r\n'.repeat(20_000))),
    means: 'broken',
  },
  {
    name: 'sends headers for ever',
    sends: endless('HTTP/1.1 200 OK\r\n', `${'a: b\r\n'.repeat(1_000)}`, 1),
    means: 'broken',
  },
  {
    name: 'sends trailers for ever',
    sends: endless(`${CHUNKED}\r\n0\r\n`, `${'a: b\r\n'.repeat(1_000)}`, 1),
    means: 'cut',
  },
  {
    name: 'has a line break in a header',
    sends: (s) => s.end('HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: c\r\nContent-Length: 1\r\n\r\nx'),
    means: 'broken',
  },
  {
    name: 'says a length that is too large',
    sends: (s) => s.write('HTTP/1.1 200 OK\r\nContent-Length: 1000001\r\n\r\n'),
    means: 'too_large',
  },
  {
    name: 'sends a body for ever',
    sends: endless(`${CHUNKED}\r\n`, `ffff\r\n${'x'.repeat(0xffff)}\r\n`, 1),
    means: 'too_large',
  },
  {
    name: 'sends as much as it may',
    sends: (s) => s.end(sized('x'.repeat(9))),
    means: 'answer 200 xxxxxxxxx',
    mostAnswerBytes: 9,
  },
  {
    name: 'sends a byte more than it may',
    sends: (s) => s.end(sized('x'.repeat(10))),
    means: 'too_large',
    mostAnswerBytes: 9,
  },
  { name: 'sends nothing in its body', sends: (s) => s.end(sized('')), means: 'answer 200 ' },
  {
    name: 'refuses the caller',
    sends: (s) => s.end(sized('no such station', 'HTTP/1.1 404 Not Found')),
    means: 'refusal 404 no such station',
  },
  {
    name: 'refuses the caller at length',
    sends: (s) => s.end(sized('x'.repeat(70_000), 'HTTP/1.1 422 No')),
    means: 'refusal 422 too long',
  },
  {
    name: 'refuses the caller for ever',
    sends: endless(`${CHUNKED.replace('200 OK', '400 No')}\r\n`, `ffff\r\n${'x'.repeat(0xffff)}\r\n`, 1),
    means: 'refusal 400 too long',
  },
  {
    name: 'breaks off its refusal',
    sends: (s) => s.end('HTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\nno'),
    means: 'cut',
  },
  {
    name: 'wants to be paid',
    sends: (s) => s.end(sized('pay', 'HTTP/1.1 402 Payment Required', 'Payment-Required: x\r\n')),
    means: 'refused_us',
  },
  {
    name: 'knows us not',
    sends: (s) => s.end(sized('', 'HTTP/1.1 401 No', 'WWW-Authenticate: Basic\r\n')),
    means: 'refused_us',
  },
  {
    name: 'sends elsewhere',
    sends: (s) => s.end(sized('', 'HTTP/1.1 302 Found', 'Location: http://127.0.0.1/\r\n')),
    means: 'redirected',
  },
  { name: 'fails', sends: (s) => s.end(sized('stack trace', 'HTTP/1.1 500 No')), means: 'failed' },
  {
    name: 'fails and says nothing more',
    sends: (s) => s.write('HTTP/1.1 503 No\r\nContent-Length: 5\r\n\r\n'),
    means: 'failed',
  },
  {
    name: 'answers in GraphQL with errors',
    sends: (s) => s.end(sized('{"data":null,"errors":[{}]}')),
    means: 'no_answer',
    rule: { hasNot: [['errors']] },
  },
  {
    name: 'ends its events',
    sends: (s) => s.end('HTTP/1.1 200 OK\r\n\r\ndata: 1\n\ndata: [DONE]\n\n'),
    means: 'answer 200 data: 1\n\ndata: [DONE]\n\n',
    rule: { lastEvent: '[DONE]' },
  },
  {
    name: 'does not end its events',
    sends: (s) => s.end(sized('data: 1\n\n')),
    means: 'cut',
    rule: { lastEvent: '[DONE]' },
  },
];

describe('an upstream that', () => {
  for (const row of BROKEN)
    for (const keepAlive of [true, false])
      test(`${row.name}${keepAlive ? '' : ', on a connection of its own'}`, async () => {
        const server = await rawServer((socket) => row.sends(socket));
        const upstream = upstreamAt(server.url, { keepAlive, ...row.settings });
        const asked = request({
          method: row.method ?? 'GET',
          rule: { ...ANY_ANSWER, ...row.rule },
          mostAnswerBytes: row.mostAnswerBytes ?? 1_000_000,
        });
        assert.equal(short(await upstream.ask(asked)), row.means);
        assert.equal(server.requests.length, 1, 'it is asked once');
        await upstream.destroy();
        assert.equal(upstream.state.calls, 0);
      });
});

test('no part of an answer is taken for the whole, wherever the connection ends, and however', async () => {
  const whole = [
    sized('hello'),
    sized('hello', undefined, 'Connection: close\r\n'),
    `${CHUNKED}\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nX-Sum: 1\r\n\r\n`,
    `${CHUNKED}Connection: close\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nX-Sum: 1\r\n\r\n`,
  ];
  const server = await rawServer((socket, text) => {
    const [, which = '', end = '', how = ''] = /^GET \/(\d+)\/(\d+)\/(\w+)/.exec(text) ?? [];
    const part = whole[Number(which)]?.slice(0, Number(end)) ?? '';
    if (how === 'ends') socket.end(part);
    else socket.write(part, () => later(() => socket.resetAndDestroy()));
  });
  for (const keepAlive of [true, false]) {
    const upstream = upstreamAt(server.url, { keepAlive, concurrency: 50, mostWaiting: 10_000 });
    const calls = whole.flatMap((bytes, which) =>
      Array.from({ length: bytes.length }, (_, end) =>
        ['ends', 'resets'].map(async (how) => {
          const outcome = await upstream.ask(request({ target: `/${which}/${end}/${how}` }));
          assert.equal(outcome.kind, 'failure', `${how} after ${JSON.stringify(bytes.slice(0, end))}`);
        }),
      ).flat(),
    );
    await Promise.all(calls);
    for (const [which, bytes] of whole.entries())
      assert.equal(
        (await upstream.ask(request({ target: `/${which}/${bytes.length}/ends` }))).kind,
        'answer',
      );
  }
});

describe('a call', () => {
  test('sends the bytes that it was given, with the credentials of the upstream', async () => {
    const server = await rawServer((socket) => socket.end(sized('x')));
    const upstream = upstreamAt(server.url, {
      headers: { authorization: 'Bearer s' },
      query: { key: 'a b' },
    });
    const body = Buffer.from([0, 255, 10, 13]);
    await upstream.ask(
      request({
        method: 'POST',
        target: '/a%2e/%41?b=%2f',
        headers: ['X-Size', 'M\xe9', 'X-Size', 'L'],
        body,
        idempotencyKey: 'call-1',
      }),
    );
    const { port } = new URL(server.url);
    assert.equal(
      server.requests[0],
      `POST /a%2e/%41?b=%2f&key=a%20b HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nconnection: keep-alive\r\n` +
        'X-Size: M\xe9\r\nX-Size: L\r\nauthorization: Bearer s\r\nidempotency-key: call-1\r\n' +
        `content-length: 4\r\n\r\n${body.toString('latin1')}`,
    );
  });

  test('to a server that cannot be reached was never sent', async () => {
    const upstream = upstreamAt('http://127.0.0.1:1');
    const failed = await upstream.ask(request());
    assert(failed.kind === 'failure' && failed.reason === 'unreachable' && !failed.wasSent);
    assert.match(failed.detail, /ECONNREFUSED/);
  });

  test('that broke before the first byte is made again if it reads, or if the upstream knows its key', async () => {
    const rows: [repeat: 'read' | 'keyed' | 'never', sent: number][] = [
      ['read', 2],
      ['keyed', 2],
      ['never', 1],
    ];
    for (const [repeat, sent] of rows) {
      const server = await rawServer((socket, _, index) =>
        index === 0 ? socket.resetAndDestroy() : socket.end(sized('x')),
      );
      const outcome = await upstreamAt(server.url).ask(
        request({ method: 'POST', body: Buffer.from('b'), repeat, idempotencyKey: 'k' }),
      );
      assert.equal(short(outcome), sent === 2 ? 'answer 200 x' : 'broken', repeat);
      assert.equal(server.requests.length, sent, repeat);
      assert.equal(new Set(server.requests).size, 1, 'the same bytes, with the same key');
    }
  });

  test('that was sent once may have been done, though it could not be sent again', async () => {
    const server = await rawServer((socket) => {
      server.stopListening();
      socket.resetAndDestroy();
    });
    const failed = await upstreamAt(server.url).ask(request({ repeat: 'keyed', idempotencyKey: 'k' }));
    assert(failed.kind === 'failure' && failed.reason === 'unreachable' && failed.wasSent);
  });

  test('is made twice at most, and never again after the first byte', async () => {
    for (const [first, sent] of [
      ['', 2],
      ['H', 1],
      ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', 1],
    ] as const) {
      const server = await rawServer((socket) => socket.end(first));
      const outcome = await upstreamAt(server.url).ask(request({ repeat: 'read' }));
      assert.equal(outcome.kind, 'failure');
      assert.equal(server.requests.length, sent, JSON.stringify(first));
    }
  });

  test('that had no answer in time is made again only if it writes, and the upstream knows its key', async () => {
    for (const [repeat, sent] of [
      ['read', 1],
      ['never', 1],
      ['keyed', 2],
    ] as const) {
      const server = await rawServer((socket, _, index) => {
        if (index > 0) socket.end(sized('x'));
      });
      const outcome = await upstreamAt(server.url, { headersTimeoutMs: sent === 1 ? 60 : 1_500 }).ask(
        request({ method: 'POST', repeat, idempotencyKey: 'k' }),
      );
      assert.equal(short(outcome), sent === 2 ? 'answer 200 x' : 'timed_out', repeat);
      assert.equal(server.requests.length, sent, repeat);
    }
  });

  test('reads of what is no answer only so much that the connection can be used again', async () => {
    for (const [sends, connections] of [
      [(socket: Socket) => void socket.write(sized('x'.repeat(9_000), 'HTTP/1.1 500 No')), 1],
      [
        endless(`${CHUNKED.replace('200 OK', '500 No')}\r\n`, `ff\r\n${'x'.repeat(0xff)}\r\n`.repeat(40), 1),
        2,
      ],
    ] as const) {
      const server = await rawServer((socket) => sends(socket));
      const upstream = upstreamAt(server.url, { concurrency: 1 });
      // The second one gets the place of the first when that has been read.
      for (let n = 0; n < 2; n++) assert.equal(short(await upstream.ask(request())), 'failed');
      assert.equal(server.sockets.length, connections);
    }
  });

  test('ends when its caller leaves, wherever it is, and the connection with it', async () => {
    for (const sent of ['', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe']) {
      const caller = new AbortController();
      const closed = signal();
      const server = await rawServer((socket) => {
        socket.once('close', () => closed.resolve());
        socket.write(sent, () => later(() => caller.abort()));
      });
      const upstream = upstreamAt(server.url);
      assert.equal(
        short(await upstream.ask(request({ signal: caller.signal, repeat: 'read' }))),
        'abandoned',
      );
      await closed.promise;
      assert.equal(upstream.state.calls, 0);
      const again = await upstream.ask(request({ signal: caller.signal }));
      assert(again.kind === 'failure' && again.reason === 'abandoned' && !again.wasSent);
      assert.equal(server.requests.length, 1);
    }
  });
});

describe('the places of an upstream', () => {
  test('are as many as it may have calls; so many wait, and further ones are told to come again', async () => {
    const held: Socket[] = [];
    const arrived = signal();
    const server = await rawServer((socket, _, index) => {
      if (index >= 2) socket.write(sized('x'));
      else if (held.push(socket) === 2) arrived.resolve();
    });
    const upstream = upstreamAt(server.url, { concurrency: 2, mostWaiting: 1 });
    const running = [upstream.ask(request()), upstream.ask(request())];
    const waiting = upstream.ask(request());
    const busy = await upstream.ask(request());
    assert(busy.kind === 'failure' && busy.reason === 'busy' && !busy.wasSent && busy.retryAfterMs === 1_000);
    await arrived.promise;
    assert.deepEqual([upstream.state.calls, upstream.state.waiting, server.requests.length], [2, 1, 2]);
    for (const socket of held) socket.write(sized('y'));
    assert.deepEqual((await Promise.all([...running, waiting])).map(short), [
      'answer 200 y',
      'answer 200 y',
      'answer 200 x',
    ]);
    assert.deepEqual([upstream.state.calls, upstream.state.waiting], [0, 0]);
  });

  test('are left by who waits no longer', async () => {
    const server = await rawServer(() => {});
    const upstream = upstreamAt(server.url, { concurrency: 1, mostWaiting: 2 });
    const caller = new AbortController();
    const first = upstream.ask(request({ signal: caller.signal }));
    const gone = new AbortController();
    const waiting = upstream.ask(request({ signal: gone.signal }));
    const late = upstream.ask(request({ wholeTimeoutMs: 20 }));
    gone.abort();
    const stopped = await waiting;
    assert(stopped.kind === 'failure' && stopped.reason === 'abandoned' && !stopped.wasSent);
    const over = await late;
    assert(over.kind === 'failure' && over.reason === 'timed_out' && !over.wasSent);
    assert.equal(upstream.state.waiting, 0);
    caller.abort();
    await first;
    assert.equal(upstream.state.calls, 0);
  });
});

describe('an answer too many', () => {
  /** Answers the first request of each connection twice: the second time when the next request is there already, before its own answer. */
  const twice = async () => {
    const seen = new WeakMap<Socket, number>();
    return rawServer((socket, text) => {
      const own = /GET \/(\w+)/.exec(text)?.[1] ?? '';
      const count = (seen.get(socket) ?? 0) + 1;
      seen.set(socket, count);
      socket.write(
        count === 1 ? sized(`for ${own}`) : `${sized('for the one before')}${sized(`for ${own}`)}`,
      );
    });
  };
  const names = Array.from({ length: 20 }, (_, index) => `n${index}`);

  test('reaches nobody where each call has a connection of its own', async () => {
    const server = await twice();
    const upstream = upstreamAt(server.url, { keepAlive: false, concurrency: 1, mostWaiting: 20 });
    const outcomes = await Promise.all(names.map((name) => upstream.ask(request({ target: `/${name}` }))));
    assert.deepEqual(
      outcomes.map(short),
      names.map((name) => `answer 200 for ${name}`),
    );
    assert.equal(server.sockets.length, names.length);
  });

  test('ends a connection that is kept, if it comes while nobody has asked', async () => {
    const closed = signal();
    const server = await rawServer((socket, text, index) => {
      const own = sized(`for ${/GET \/(\w+)/.exec(text)?.[1]}`);
      socket.once('close', () => closed.resolve());
      socket.write(index === 0 ? `${own}${own}` : own);
    });
    const upstream = upstreamAt(server.url, { concurrency: 1 });
    assert.equal(short(await upstream.ask(request({ target: '/a' }))), 'answer 200 for a');
    await closed.promise;
    assert.equal(short(await upstream.ask(request({ target: '/b' }))), 'answer 200 for b');
  });

  test('is what a kept connection cannot tell from the next answer: an upstream that does so needs keepAlive false', async () => {
    const server = await twice();
    const upstream = upstreamAt(server.url, { concurrency: 1 });
    assert.equal(short(await upstream.ask(request({ target: '/a' }))), 'answer 200 for a');
    assert.equal(short(await upstream.ask(request({ target: '/b' }))), 'answer 200 for the one before');
  });
});

describe('the breaker of an upstream', () => {
  const failing = async (answers: readonly string[]) => {
    const server = await rawServer((socket, _, index) => {
      const answer = answers[index];
      if (answer === undefined || answer === '') socket.end();
      else socket.write(answer);
    });
    const clock = { nowMs: 0 };
    const settings = { breaker: { failures: 2, openMs: 1_000 }, nowMs: () => clock.nowMs };
    return { server, clock, upstream: upstreamAt(server.url, settings) };
  };

  test('refuses calls after failures in a row, and lets one try later', async () => {
    const { server, clock, upstream } = await failing(['', '', sized('x')]);
    for (let n = 0; n < 2; n++) await upstream.ask(request());
    const down = await upstream.ask(request());
    assert(down.kind === 'failure' && down.reason === 'down' && !down.wasSent && down.retryAfterMs === 1_000);
    assert.deepEqual(upstream.state, { isOpen: true, retryAfterMs: 1_000, calls: 0, waiting: 0 });
    assert.equal(server.requests.length, 2);
    clock.nowMs = 1_000;
    assert.equal(short(await upstream.ask(request())), 'answer 200 x');
    assert.equal(upstream.state.isOpen, false);
  });

  test('does not count what one request causes, and no caller who left', async () => {
    const answers = ['400 No', '404 No', '422 No', '429 No', '408 No', '500 No', '302 No', '401 No'];
    const { upstream } = await failing(answers.map((status) => sized('', `HTTP/1.1 ${status}`)));
    for (const _ of answers) await upstream.ask(request());
    assert.equal(upstream.state.isOpen, false);
    const server = await rawServer(() => {});
    const left = upstreamAt(server.url, { breaker: { failures: 1, openMs: 1_000 } });
    for (let n = 0; n < 3; n++) await left.ask(request({ signal: AbortSignal.timeout(5) }));
    assert.equal(left.state.isOpen, false);
  });

  test('counts that an upstream says to be out of order, and a call with its repeat once', async () => {
    const { upstream } = await failing([sized('', 'HTTP/1.1 503 No'), '', '']);
    await upstream.ask(request());
    assert.equal(upstream.state.isOpen, false);
    await upstream.ask(request({ repeat: 'read' }));
    assert.equal(upstream.state.isOpen, true);
    const once = await failing(['', '']);
    await once.upstream.ask(request({ repeat: 'read' }));
    assert.equal(once.upstream.state.isOpen, false);
  });
});

describe('an upstream that is no longer sold', () => {
  /** An answer whose connection would stay for half a minute. */
  const stays = (body: string) =>
    `HTTP/1.1 200 OK\r\nkeep-alive: timeout=30\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

  test('ends its calls, closes the connection, and still answers a call that began before', async () => {
    const arrived = signal<Socket>();
    const ended: Promise<void>[] = [];
    const server = await rawServer((socket, _, index) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      socket.once('close', () => resolve());
      ended.push(promise);
      if (index === 0) arrived.resolve(socket);
      else socket.write(stays('late'));
    });
    const upstream = upstreamAt(server.url);
    const running = upstream.ask(request());
    const socket = await arrived.promise;
    const retired = upstream.retire();
    socket.write(stays('x'));
    assert.equal(short(await running), 'answer 200 x');
    await retired;
    await ended[0];
    assert.equal(short(await upstream.ask(request())), 'answer 200 late');
    await ended[1];
    await upstream.close();
  });
});

describe('an upstream that is closed', () => {
  test('lets its calls end, those that wait too, and takes no more', async () => {
    const arrived = signal<Socket>();
    const server = await rawServer((socket, _, index) =>
      index === 0 ? arrived.resolve(socket) : socket.write(sized('y')),
    );
    const upstream = upstreamAt(server.url, { concurrency: 1 });
    const running = upstream.ask(request());
    const waiting = upstream.ask(request());
    const socket = await arrived.promise;
    const closed = upstream.close();
    const refused = await upstream.ask(request());
    assert(refused.kind === 'failure' && refused.reason === 'closing' && refused.retryAfterMs === 1_000);
    socket.write(sized('x'));
    assert.deepEqual([short(await running), short(await waiting)], ['answer 200 x', 'answer 200 y']);
    await closed;
    await upstream.close();
  });

  test('by force ends its calls', async () => {
    const arrived = signal();
    const server = await rawServer(() => arrived.resolve());
    const upstream = upstreamAt(server.url, { concurrency: 1 });
    const running = upstream.ask(request());
    const waiting = upstream.ask(request());
    await arrived.promise;
    const closed = upstream.close();
    await upstream.destroy();
    assert.deepEqual([short(await running), short(await waiting)], ['closing', 'closing']);
    await closed;
  });

  test('has an address that can be one', () => {
    const settings = { headers: {}, query: {}, headersTimeoutMs: 1, idleTimeoutMs: 1, wholeTimeoutMs: 1 };
    const rest = { concurrency: 1, mostWaiting: 0, keepAlive: true, breaker: null, nowMs: () => 0 };
    for (const url of [
      'ftp://a',
      'http://user:secret@a',
      'http://a/?x',
      'http://a/#x',
      'a',
      'file:///etc/passwd',
    ])
      assert.throws(
        () => openUpstream({ ...settings, ...rest, url }),
        (error: Error) => !/secret@/.test(error.message),
      );
    assert.throws(
      () => openUpstream({ ...settings, ...rest, url: 'http://a', headers: { host: 'b' } }),
      /header host/,
    );
  });
});
