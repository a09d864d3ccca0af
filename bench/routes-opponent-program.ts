/** The opponents of (s), which pass the same bytes on for nothing: `@fastify/reply-from`, and `Pool.stream` of undici. */
import replyFrom from '@fastify/reply-from';
import Fastify from 'fastify';
import { Pool } from 'undici';

const upstream = process.env.BENCH_UPSTREAM ?? '';
const app = Fastify();
const pool = new Pool(upstream, { connections: 64 });
// The body goes on as it came, as with us.
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
await app.register(replyFrom, { base: upstream, undici: { connections: 64 } });
app.post('/small', (_request, reply) => reply.from('/small'));
app.get('/large', async (_request, reply) => {
  reply.hijack();
  await pool.stream({ path: '/large', method: 'GET' }, ({ statusCode, headers }) =>
    reply.raw.writeHead(statusCode, headers),
  );
});

const url = await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.({ url });

process.once('disconnect', () => process.exit(0));
process.on('SIGINT', () => {});
