/** The opponent of (a) and (b): a Fastify route that reads JSON and answers JSON, and does nothing else. */
import Fastify from 'fastify';

const answer: unknown = JSON.parse(process.env.BENCH_ANSWER ?? '{}');
const app = Fastify();
app.post('/x402/ping', async () => answer);
const url = await app.listen({ host: '127.0.0.1', port: 0 });

process.once('disconnect', () => process.exit(0));
process.on('SIGINT', () => {});
process.send?.({ url });
