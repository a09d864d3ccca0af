import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { createSender } from './send.ts';

test('a receiver that breaks off within a trailer of its reply fails, and ends nothing of ours', async () => {
  const receiver = createServer((socket) => {
    socket.once('data', () => {
      socket.end(
        'HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-tra',
      );
    });
    socket.on('error', () => {});
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const address = receiver.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const sender = createSender({ allowPrivate: true, userAgent: 'farebox-test' });
  try {
    const message = {
      id: 'msg_1',
      body: '{}',
      url: `http://127.0.0.1:${port}/`,
      secrets: ['whsec_dGVzdC1zZWNyZXQ='],
    };
    // Thrown where no promise holds it, the fault would end this process.
    const { result } = await sender.send(message, Date.now());
    assert.equal(result, '200');
  } finally {
    await sender.close();
    receiver.close();
  }
});
