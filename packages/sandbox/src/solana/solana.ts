/** The sandbox's Solana: LiteSVM behind a node's JSON-RPC and websocket, with USDC at its real address. */
import Fastify, { type FastifyInstance } from 'fastify';
import { frozen, openBank } from './bank.ts';
import { openFaucet } from './faucet.ts';
import { openNodeFaults } from './faults.ts';
import { bringIntoBeing, stockRefunds } from './genesis.ts';
import { type Answer, answerText, LostReply } from './json-rpc.ts';
import { borrowAndRepay } from './lending/borrower.ts';
import { passTime } from './lending/pass-time.ts';
import { placeLending } from './lending/place.ts';
import { answerCalls } from './rpc/dispatch.ts';
import { newClockState } from './slots.ts';
import { openStateFile, readState } from './state-file.ts';
import { serveSubscriptions } from './subscriptions.ts';

/** Every reply carries this header, so that what comes from the sandbox can always be told from the real thing. */
const SANDBOX_HEADER = 'x-farebox-sandbox';
const SANDBOX_PART = 'solana';
const MAX_BODY_BYTES = 256 * 1024;

export interface SolanaChain {
  /** JSON-RPC by POST. */
  url: string;
  /** The websocket, on the same port. Tell clients this address: one that they derive from `url` may be wrong. */
  wsUrl: string;
  /** Ends the node, and writes what is not on disk yet. Rejects if the writing fails. */
  stop(): Promise<void>;
}

/**
 * Starts the chain on 127.0.0.1.
 *
 * @param options.stateDir the folder that keeps the chain over a restart; null keeps nothing
 * @param options.seed the installation's secret, see `signerOf`
 * @param options.port any free one if absent or 0
 * @throws Error if the port is taken, or if what the folder holds cannot be read
 */
export async function startSolana(options: {
  stateDir: string | null;
  seed: string;
  port?: number;
}): Promise<SolanaChain> {
  const kept = options.stateDir === null ? null : readState(options.stateDir);
  const bank = openBank({ clock: kept?.clock ?? newClockState(), rest: kept });
  await bringIntoBeing(bank, options.seed);
  const faucet = await openFaucet(bank, options.seed);
  await stockRefunds(bank, options.seed, faucet.give);
  await placeLending(bank, options.seed);
  await borrowAndRepay({ bank, faucet }, options.seed, Date.now());
  const node = {
    bank,
    faucet,
    faults: openNodeFaults(() => frozen(bank)),
    passInterest: (passedMs: number) => passTime({ bank, faucet }, options.seed, passedMs),
    saved: async () => await file?.written(),
  };
  const app = serve(answerCalls(node));
  const subscriptions = serveSubscriptions(app.server, bank);
  const file = options.stateDir === null ? null : openStateFile(options.stateDir, () => bank.state());
  bank.onChange(() => file?.changed());
  try {
    await app.listen({ host: '127.0.0.1', port: options.port ?? 0 });
  } catch (error) {
    subscriptions.stop();
    throw error;
  }
  file?.changed();
  const port = portOf(app);
  return {
    url: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}`,
    async stop() {
      subscriptions.stop();
      await app.close();
      await file?.close();
    },
  };
}

function portOf(app: FastifyInstance): number {
  const [address] = app.addresses();
  if (typeof address !== 'object') throw new Error('the sandbox Solana does not listen');
  return address.port;
}

function serve(answer: Answer): FastifyInstance {
  const app = Fastify({ bodyLimit: MAX_BODY_BYTES, forceCloseConnections: true });
  // A body that is no JSON is answered with an error of JSON-RPC, so Fastify must not parse it first.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', async (_request, reply) => {
    reply.header(SANDBOX_HEADER, SANDBOX_PART);
  });
  app.get('/health', () => 'ok');
  app.post('/', async ({ body, raw }, reply) => {
    try {
      const text = await answerText(typeof body === 'string' ? body : '', answer);
      return text === null ? reply.code(204).send() : reply.type('application/json').send(text);
    } catch (error) {
      if (!(error instanceof LostReply)) throw error;
      if (error.httpStatus !== null) return reply.code(error.httpStatus).send({ error: 'sandbox fault' });
      reply.hijack();
      raw.socket.resetAndDestroy();
      return reply;
    }
  });
  return app;
}
