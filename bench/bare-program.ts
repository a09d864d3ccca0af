/**
 * The opponent of (a), (b) and (f): a Fastify route that reads JSON and answers JSON and does nothing else, or one that
 * answers a fixed text with fixed headers.
 */
import Fastify from 'fastify';

const answer: unknown = JSON.parse(process.env.BENCH_ANSWER ?? '{}');
const fixed: { status: number; headers: Record<string, string>; body: string } | null = JSON.parse(
  process.env.BENCH_FIXED ?? 'null',
);
const app = Fastify();
if (fixed === null) app.post('/x402/ping', async () => answer);
else
  app.post('/x402/ping', (_request, reply) => {
    reply.code(fixed.status).headers(fixed.headers).send(fixed.body);
  });
const url = await app.listen({ host: '127.0.0.1', port: 0 });

process.once('disconnect', () => process.exit(0));
process.on('SIGINT', () => {});
process.send?.({ url });
