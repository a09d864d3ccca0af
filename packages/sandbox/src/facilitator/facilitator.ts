/**
 * The sandbox's x402 facilitator: a server that checks payments and puts them on the chain, over the standard HTTP
 * contract (GET /supported, POST /verify, POST /settle, GET /discovery/resources), with the reference
 * implementation inside. Faults for tests are ordered under /__control, see faults.ts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { x402Facilitator } from '@x402/core/facilitator';
import type { Network } from '@x402/core/types';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import type { Hex } from 'viem';
import { type BazaarStatus, openCatalog } from './catalog.ts';
import { EVM_NETWORK, EVM_NETWORK_V1, openEvm } from './evm.ts';
import { bogusTransaction, type Fault, openFacilitatorFaults, type Step } from './faults.ts';
import { fieldsOf, type PaymentRequest, readPaymentRequest } from './payment-request.ts';
import { openSolana, SOLANA_NETWORK, SOLANA_NETWORK_V1 } from './solana.ts';
import { InvalidPayload, NodeUnreachable, openVerdicts } from './verdicts.ts';

/** Every reply carries this header, so that sandbox replies can always be recognized. */
const SANDBOX_HEADER = 'x-farebox-sandbox';
const SANDBOX_PART = 'facilitator';
const HOST = '127.0.0.1';
const MAX_BODY_BYTES = 64 * 1024;
/** How many requests of /verify and /settle run at once. Further ones get status 503 and may come back. */
const MAX_CONCURRENT = 256;
const REQUEST_TIMEOUT_MS = 10_000;

export interface FacilitatorOptions {
  /** Settles USDC on chain 8453 (v2 network eip155:8453, v1 network base); null: not offered. */
  evm: { rpcUrl: string; privateKeys: readonly Hex[] } | null;
  /** Settles USDC on Solana (v2 network solana:5eykt…, v1 network solana); null: not offered. */
  solana: { rpcUrl: string; feePayerSecretKey: Uint8Array } | null;
  /** Absent or 0: the system chooses. */
  port?: number;
}

export interface Facilitator {
  url: string;
  /** Stops the server, and ends the waits of faults and for confirmations. Transactions that were sent stay sent. */
  stop(): Promise<void>;
}

/**
 * Starts the facilitator on 127.0.0.1.
 * @throws Error if the EVM node is not there or is on another chain than 8453.
 */
export async function startFacilitator(options: FacilitatorOptions): Promise<Facilitator> {
  const stop = new AbortController();
  const stopping = stop.signal;
  const faults = openFacilitatorFaults();
  const catalog = openCatalog(Date.now);
  const facilitator = new x402Facilitator().registerExtension({ key: 'bazaar' });
  const onBroadcast = () => faults.count('broadcasts');
  if (options.evm !== null) {
    const evm = await openEvm({ ...options.evm, onBroadcast, stopping });
    facilitator.register(EVM_NETWORK, evm.v2).registerV1(EVM_NETWORK_V1 as Network, evm.v1);
  }
  if (options.solana !== null) {
    const solana = await openSolana({ ...options.solana, onBroadcast, stopping });
    facilitator.register(SOLANA_NETWORK, solana.v2).registerV1(SOLANA_NETWORK_V1 as Network, solana.v1);
  }
  const supported = facilitator.getSupported();
  const verdicts = openVerdicts(facilitator);
  let working = 0;

  async function answerVerify(request: PaymentRequest, reply: FastifyReply): Promise<unknown> {
    const verdict = await verdicts.verify(request);
    if (verdict.isValid) declare(request, reply, 'processing');
    return verdict;
  }

  async function answerSettle(request: PaymentRequest, reply: FastifyReply): Promise<unknown> {
    const outcome = await verdicts.settle(request, false);
    if (outcome.success) declare(request, reply, 'success');
    return outcome;
  }

  /** Reports what became of the resource's declaration. A settled payment adds it to the catalog. */
  function declare(request: PaymentRequest, reply: FastifyReply, status: 'processing' | 'success'): void {
    const declared = catalog.read(request);
    if (declared === null) return;
    const rejected = typeof declared === 'string';
    if (!rejected && status === 'success') catalog.enter(declared, request.requirements);
    const bazaar: BazaarStatus = rejected ? { status: 'rejected', rejectedReason: declared } : { status };
    reply.header('EXTENSION-RESPONSES', Buffer.from(JSON.stringify({ bazaar })).toString('base64'));
  }

  const steps = {
    verify: {
      work: answerVerify,
      refuse: (_network: string, invalidReason: string, invalidMessage?: string) => ({
        isValid: false,
        invalidReason,
        ...(invalidMessage !== undefined && { invalidMessage }),
      }),
      lie: ({ payload }: PaymentRequest) => ({ isValid: true, ...payerOf(payload.payload) }),
    },
    settle: {
      work: answerSettle,
      refuse: (network: string, errorReason: string, errorMessage?: string) => ({
        success: false,
        errorReason,
        ...(errorMessage !== undefined && { errorMessage }),
        transaction: '',
        network,
      }),
      lie: ({ payload, requirements: { network } }: PaymentRequest) => ({
        success: true,
        transaction: bogusTransaction(network, payload.payload),
        network,
        ...payerOf(payload.payload),
      }),
    },
  };

  /** Does what an ordered fault says, in place of the normal work. */
  async function strike(fault: Fault, request: PaymentRequest, raw: FastifyRequest, reply: FastifyReply) {
    const { work, refuse, lie } = steps[fault.on];
    switch (fault.fault) {
      case 'refuse':
        return refuse(request.requirements.network, fault.errorReason);
      case 'refuse-after-broadcast':
        await work(request, reply);
        return refuse(request.requirements.network, fault.errorReason);
      case 'throw-before-broadcast':
        return reply.code(500).send({ error: 'Internal Server Error' });
      case 'throw-after-broadcast':
        await work(request, reply);
        return reply.code(500).send({ error: 'Internal Server Error' });
      case 'drop-before':
        return drop(raw, reply);
      case 'drop-after-broadcast':
        await work(request, reply);
        return drop(raw, reply);
      case 'late':
        await sleep(fault.delayMs, undefined, { signal: stopping }).catch(() => undefined);
        return stopping.aborted ? drop(raw, reply) : work(request, reply);
      case 'never':
        if (fault.broadcast) await work(request, reply);
        // The connection stays open without an answer until the client or the stopping server closes it.
        return reply.hijack();
      case 'pending':
        if (fault.broadcast) return verdicts.settle(request, true);
        return { ...lie(request), success: false, errorReason: 'settlement_pending' };
      case 'lie':
        return lie(request);
      case 'garbage':
        return reply.type('text/html').send(fault.text);
    }
  }

  function serve(step: Step) {
    return async (raw: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
      faults.count(step);
      const { work, refuse } = steps[step];
      const request = readPaymentRequest(raw.body, supported.kinds);
      if ('reason' in request) {
        return reply.code(400).send(refuse(networkNamedIn(raw.body), request.reason, request.message));
      }
      if (working >= MAX_CONCURRENT) {
        return reply.code(503).header('retry-after', '1').send({ error: 'busy' });
      }
      const fault = faults.take(step);
      working += 1;
      try {
        return await (fault === null ? work(request, reply) : strike(fault, request, raw, reply));
      } catch (error) {
        if (error instanceof InvalidPayload) {
          return reply.code(400).send(refuse(request.requirements.network, 'invalid_payload', error.message));
        }
        if (!(error instanceof NodeUnreachable)) throw error;
        return reply.code(503).send({ error: 'node_unreachable', message: error.message });
      } finally {
        working -= 1;
      }
    };
  }

  const app = Fastify({
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    requestTimeout: REQUEST_TIMEOUT_MS,
  });
  app.addHook('onRequest', async (_request, reply) => {
    reply.header(SANDBOX_HEADER, SANDBOX_PART);
  });
  faults.control(app);
  app.get('/supported', () => supported);
  app.get<{ Querystring: Record<string, unknown> }>('/discovery/resources', ({ query }, reply) => {
    const found = catalog.list(query);
    return typeof found === 'string' ? reply.code(400).send({ error: found }) : found;
  });
  app.post('/verify', serve('verify'));
  app.post('/settle', serve('settle'));
  const url = await app.listen({ host: HOST, port: options.port ?? 0 });
  return {
    url,
    async stop() {
      stop.abort();
      await app.close();
    },
  };
}

function drop(raw: FastifyRequest, reply: FastifyReply): FastifyReply {
  raw.raw.socket.destroy();
  return reply.hijack();
}

/** The payer that an EVM payment names; a Solana payment does not name it outside of its transaction. */
function payerOf(payload: Record<string, unknown>): { payer?: string } {
  const { from } = fieldsOf(payload.authorization);
  return typeof from === 'string' ? { payer: from } : {};
}

/** The network that an otherwise unreadable body names; empty if it names none. */
function networkNamedIn(body: unknown): string {
  const { network } = fieldsOf(fieldsOf(body).paymentRequirements);
  return typeof network === 'string' ? network : '';
}
