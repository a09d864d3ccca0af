/**
 * The opponent of (m): the bare route behind prepaid credits as most people would write them. The price is taken before
 * the handler runs: one transaction a call locks the account's row, inserts the charge and updates the balance. A call
 * that the handler fails to answer is charged, and a repeat is charged again.
 */
import { createHash, randomUUID } from 'node:crypto';
import Fastify from 'fastify';
import { connectDatabase } from '../packages/core/src/db/connection.ts';

const CONNECTIONS = 10;
const PRICE_MICROS = '250000';

const sql = connectDatabase(process.env.BENCH_DATABASE_URL ?? '', CONNECTIONS);
const answer: unknown = JSON.parse(process.env.BENCH_ANSWER ?? '{}');
const app = Fastify();
app.addHook('preHandler', async (request, reply) => {
  const digest = createHash('sha256')
    .update(String(request.headers['x-api-key'] ?? ''))
    .digest();
  const balance = await sql.begin(async (transaction) => {
    const [account] = await transaction<{ id: bigint; balance_micros: bigint }[]>`
      select id, balance_micros from prepaid.accounts where key_digest = ${digest} for update`;
    if (account === undefined || account.balance_micros < BigInt(PRICE_MICROS)) return null;
    const id = String(account.id);
    await transaction`
      insert into prepaid.charges (id, account_id, service, amount_micros, created_at)
      values (${randomUUID()}, ${id}, 'ping', ${PRICE_MICROS}, ${new Date().toISOString()})`;
    const [left] = await transaction<{ balance_micros: bigint }[]>`
      update prepaid.accounts set balance_micros = balance_micros - ${PRICE_MICROS} where id = ${id}
      returning balance_micros`;
    return left?.balance_micros ?? null;
  });
  if (balance === null) return reply.code(402).send({ error: 'not enough credit' });
  reply.header('x-credits-remaining', String(balance));
});
app.post('/x402/ping', async () => answer);
const url = await app.listen({ host: '127.0.0.1', port: 0 });

process.once('disconnect', () => process.exit(0));
process.on('SIGINT', () => {});
process.send?.({ url });
