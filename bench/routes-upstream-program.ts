/** The API behind (s): a small answer, a large one, and one that begins and does not end. */
import { createServer } from 'node:http';

const SMALL = JSON.stringify({
  place: 'here',
  celsius: 12.5,
  at: '2026-01-01T00:00:00Z',
  source: 'a thermometer',
});
const LARGE_BYTES = 256 * 2 ** 20;
const PIECE = Buffer.alloc(65_536, 'x');

const server = createServer((request, response) => {
  request.resume();
  if (request.url === '/large') {
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': LARGE_BYTES });
    let left = LARGE_BYTES / PIECE.length;
    const more = () => {
      while (left > 0) {
        left -= 1;
        if (!response.write(PIECE)) return;
      }
      response.end();
    };
    response.on('drain', more);
    return more();
  }
  if (request.url === '/open') {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    return response.write('data: begun\n\n');
  }
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': SMALL.length });
    response.end(SMALL);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('listens nowhere');
  process.send?.({ url: `http://127.0.0.1:${address.port}` });
});

process.once('disconnect', () => process.exit(0));
process.on('SIGINT', () => {});
