import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import pino from 'pino';
import { openEventStream } from './event-stream.ts';
import { createHttpServer } from './server.ts';

test('a reader that takes nothing any more is cut off, and the writer is told', async () => {
  const app = createHttpServer(pino({ level: 'silent' }));
  const outcome = Promise.withResolvers<string>();
  app.get('/', async (_request, reply) => {
    const stream = openEventStream(reply, {}, 200);
    const event = Buffer.from(`data: ${'x'.repeat(1_000_000)}\n\n`);
    for (let written = 0; written < 200; written++) {
      if ((await stream.write(event)) === 'lost') return outcome.resolve('lost');
    }
    outcome.resolve('it took 200 MB');
  });
  const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const socket = connect(Number(port), '127.0.0.1');
  try {
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    assert.equal(await outcome.promise, 'lost');
  } finally {
    socket.destroy();
    await app.close();
  }
});
