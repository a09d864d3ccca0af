/** The opponent of (p): the same broker alone, over TLS, which acknowledges what it is sent and keeps nothing. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:tls';
import { Aedes } from 'aedes';
import { answerOrders } from './answering-process.ts';

const { BENCH_CERT_FILE = '', BENCH_KEY_FILE = '' } = process.env;
const broker = await Aedes.createBroker();
const server = createServer(
  { cert: readFileSync(BENCH_CERT_FILE), key: readFileSync(BENCH_KEY_FILE), minVersion: 'TLSv1.2' },
  (socket) => void broker.handle(socket),
);
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const address = server.address();
const port = address === null || typeof address === 'string' ? 0 : address.port;
/** Of the processor, since it began, in seconds. */
answerOrders<object, number>(
  async () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  },
  { port },
);
