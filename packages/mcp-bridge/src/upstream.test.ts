import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createUpstream } from './upstream.ts';

test('an event is read from whatever pieces it comes in', async (t) => {
  const server = createServer(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const events = [
      ': hello\r\nevent: message\r\ndata: {"jsonrpc":"2.0","id":7,"result":{"of":"another"}}\r\n\r\n',
      'event: message\r\ndata: {"jsonrpc":"2.0","id":1,"result":{"of":"this"}}\r\n\r\n',
    ];
    for (const piece of events.join('')) {
      response.write(piece);
      await new Promise(setImmediate);
    }
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const upstream = createUpstream(new URL(`http://127.0.0.1:${port}/mcp`), 30_000);
  const { signal } = new AbortController();
  assert.deepEqual(await upstream.ask('ping', { params: {}, timeoutMs: 60_000, signal }), { of: 'this' });
});
