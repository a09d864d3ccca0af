/** The receiver of (r): takes every message at once, and counts them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerOrders } from './answering-process.ts';

let taken = 0;
const server = createServer((request, response) => {
  request.resume().once('end', () => {
    taken += 1;
    response.writeHead(204).end();
  });
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
answerOrders<object, number>(async () => taken, { port: (server.address() as AddressInfo).port });
