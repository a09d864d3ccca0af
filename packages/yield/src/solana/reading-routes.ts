/** Where the portal is read: what it is and earns, and what a wallet has. None of it costs anything or changes anything. */

import { Problem } from '@farebox/core/http/problem';
import { admit, type RateLimit } from '@farebox/core/http/rate-limit';
import { isSignature } from '@solana/kit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { FreeReads } from '../free-reads/budget.ts';
import { type Kept, keptReading } from '../kept-reading.ts';
import { badRequest, readWallet } from './asked.ts';
import { chainUnavailable, isOutage, type Node } from './node.ts';
import { type PositionParts, positionOf } from './position.ts';
import { AT, EXAMPLE_WALLET } from './routes.ts';
import { type OtherRate, readStanding, type Standing } from './standing.ts';
import { type About, manifestView, ratesView, statsView } from './views.ts';

const FRESH_SECONDS = 60;
const STALE_SECONDS = 600;
const RETRY_MS = 2_000;

export interface ReadingParts extends Omit<PositionParts, 'links'>, About {
  node: Node;
  /** Null: there is no vault to be compared with. */
  baseRate: OtherRate | null;
  limit: RateLimit;
  /** The bounds on what is read for one caller alone. */
  freeReads: FreeReads;
  addressOf(request: FastifyRequest): string;
}

type Asked = FastifyRequest<{ Params: { wallet?: string; signature?: string } }>;

export function readingRoutes(app: FastifyInstance, parts: ReadingParts): void {
  const { baseUrl, node, portal, nowMs } = parts;
  const at = (path: string) => `${baseUrl}${AT}/${path}`;
  const get = (path: string, answer: (request: Asked, reply: FastifyReply) => Promise<unknown>) => {
    app.get(`${AT}/${path}`, async (request: Asked, reply) => {
      admit(parts.limit, parts.addressOf(request), reply);
      return answer(request, reply);
    });
  };
  const free = <Answer>(request: Asked, sameAs: string, work: () => Promise<Answer>) =>
    parts.freeReads.read(parts.addressOf(request), () => orUnavailable(work), sameAs);
  const kept = keptReading(() => readStanding({ portal, node }, parts.baseRate, nowMs), {
    retryMs: RETRY_MS,
    nowMs,
  });
  const standing = () => kept({ freshMs: FRESH_SECONDS * 1_000, staleMs: STALE_SECONDS * 1_000 });
  const shown = (path: string, view: (about: About, now: Standing) => unknown) =>
    get(path, async (_request, reply) => {
      const now = await standing();
      reply.headers(cacheHeaders(now));
      reply.headers({
        link: `<${at('manifest')}>; rel="manifest"`,
        'x-agent-tip': `Deposit with POST ${at('deposit-tx')} {"wallet": "<address>", "amount_usdc": 100}; you sign, this server holds nothing.`,
      });
      return view(parts, now.value);
    });

  shown('rates', ratesView);
  shown('stats', statsView);
  get('manifest', async () => manifestView(parts, await readOrWhyNot(standing)));

  get('position/:wallet', async (request) => {
    const wallet = readWallet(request.params.wallet, at(`position/${EXAMPLE_WALLET}`));
    const links = {
      deposit: at('deposit-tx'),
      withdraw: at('withdraw-tx'),
      confirm: at('confirm'),
      refunds: at(`fee-refunds/${wallet}`),
    };
    return free(request, `position ${wallet}`, () => positionOf(wallet, { ...parts, links }));
  });

  get('transaction/:signature', async (request) => {
    const signature = readSignature(request.params.signature, at('transaction/{signature}'));
    return free(request, `transaction ${signature}`, async () =>
      transactionView(signature, await node.transaction(signature, 'confirmed')),
    );
  });

  get('blockhash', (request) =>
    free(request, 'blockhash', async () => {
      const { blockhash, lastValidBlockHeight } = await node.latestBlockhash();
      return { success: true, blockhash, last_valid_block_height: lastValidBlockHeight };
    }),
  );
}

/** @throws Problem 400 */
function readSignature(value: unknown, example: string): string {
  if (typeof value === 'string' && isSignature(value)) return value;
  const message = 'must be the signature of a transaction: 64 bytes in base58';
  throw badRequest(`signature ${message}.`, [{ field: 'signature', message }], example);
}

/** Proxies and agents are told how old it is, and may keep it for as long as it stays fresh. */
function cacheHeaders({ cache, ageMs }: Kept<unknown>): Record<string, string> {
  const age = Math.floor(ageMs / 1_000);
  return {
    'cache-control': `public, max-age=${Math.max(0, FRESH_SECONDS - age)}, stale-while-revalidate=${STALE_SECONDS - FRESH_SECONDS}`,
    'x-cache': cache,
    'x-cache-age': String(age),
  };
}

async function readOrWhyNot(standing: () => Promise<Kept<Standing>>): Promise<Standing | { unread: string }> {
  try {
    return (await standing()).value;
  } catch (error) {
    if (error instanceof Problem) return { unread: error.message };
    throw error;
  }
}

function transactionView(signature: string, landed: Awaited<ReturnType<Node['transaction']>>) {
  const about = { success: true, signature };
  if (landed === null)
    return {
      ...about,
      status: 'unknown',
      slot: null,
      error: null,
      note: 'The node knows no such transaction, or has it not confirmed yet. What did not land within about two minutes never will.',
    };
  if (landed === 'unreadable') return { ...about, status: 'confirmed', slot: null, error: null };
  const { slot, err } = landed;
  return {
    ...about,
    status: err === null ? 'confirmed' : 'failed',
    slot,
    error: err === null ? null : JSON.stringify(err),
  };
}

/** @throws Problem 503 while the chain is silent */
async function orUnavailable<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    throw isOutage(error) ? chainUnavailable(error) : error;
  }
}
