/**
 * https://iris-api.circle.com, Circle's API for transfers of USDC between chains by CCTP. It answers the fees of a burn and the
 * allowance for fast burns. It has no attestation of any burn: nobody attests those on the sandbox's chains.
 */
import type { FastifyInstance } from 'fastify';

const DOMAINS = [0, 1, 2, 3, 6, 7];
/** The domains of chains whose blocks are final at once. These have no fast transfers. */
const FINAL_AT_ONCE = [1, 7];

export function cctp(app: FastifyInstance): void {
  app.get<{ Params: { from: string; to: string } }>('/v2/burn/USDC/fees/:from/:to', ({ params }, reply) => {
    const [from, to] = [Number(params.from), Number(params.to)];
    if (!DOMAINS.includes(from) || !DOMAINS.includes(to) || from === to) {
      return reply.code(404).send({ code: 404, message: 'Route not found' });
    }
    const fast = FINAL_AT_ONCE.includes(from)
      ? []
      : [{ finalityThreshold: 1000, minimumFee: from === 0 ? 1 : 1.3 }];
    return [...fast, { finalityThreshold: 2000, minimumFee: 0 }];
  });
  app.get('/v2/fastBurn/USDC/allowance', () => ({
    allowance: 2_500_000.5,
    lastUpdated: '2026-11-21T05:30:00Z',
  }));
  app.get('/v2/messages/:domain', (_request, reply) =>
    reply.code(404).send({ error: 'Message hash not found' }),
  );
}
