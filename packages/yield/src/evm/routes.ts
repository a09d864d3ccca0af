import { admit, type RateLimit } from '@farebox/core/http/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Address } from 'viem';
import type { FreeReads } from '../free-reads/budget.ts';
import type { ReportedLook } from '../keeper/report.ts';
import { badRequest, type Leaving, readAmount, readWallet, readWord, WAYS_OUT } from './asked.ts';
import { type CheckCall, withChecks } from './before-signing.ts';
import { depositTransactions } from './deposit.ts';
import type { Fixed } from './fixed.ts';
import type { KeeperMoves } from './keeper-moves.ts';
import { chainUnavailable, type Node } from './node.ts';
import { type EntryCostOf, positionOf } from './position.ts';
import { redeemTransaction } from './redeem.ts';
import { MAX_HISTORY_DAYS, type Samples } from './samples.ts';
import type { Snapshot } from './snapshot.ts';
import { contractView, EXAMPLE_WALLET, manifestView, presetsView, ratesView, statsView } from './views.ts';

const RATES_SECONDS = 60;
/** A node may answer each of a dozen questions late, each within its time. Whoever waits is told by then. */
const PATIENCE_MS = 30_000;
/** How old other figures may be. */
const FRESH_MS = 5_000;
const HISTORY_DAYS = 30;

export interface YieldRouteParts {
  node: Node;
  fixed(): Promise<Fixed>;
  /** The vault's state, no older than so many milliseconds. */
  snapshot(maxAgeMs: number): Promise<Snapshot>;
  entryCost: EntryCostOf;
  samples: Samples;
  keeperMoves: KeeperMoves;
  /** The keeper's last act, or why it did nothing; null: no keeper has looked. */
  lastLook(): Promise<ReportedLook | null>;
  baseUrl: string;
  limit: RateLimit;
  /** The bounds on what is read for one caller alone. */
  freeReads: FreeReads;
  /** The check of what is handed out; null: there is none. */
  check: CheckCall | null;
  /** How long an answer may take. */
  patienceMs?: number;
  addressOf(request: FastifyRequest): string;
  nowMs(): number;
}

type Asked = FastifyRequest<{ Querystring: Record<string, unknown>; Params: { wallet?: string } }>;

/** The vault: what it is and earns, and the transactions of whoever comes and leaves. None of it costs anything. */
export function yieldRoutes(app: FastifyInstance, parts: YieldRouteParts): void {
  const get: Get = (path, answer) => {
    app.get(`/api/yield/${path}`, async (request: Asked, reply) => {
      admit(parts.limit, parts.addressOf(request), reply);
      return inTime(answer(request, reply), parts.patienceMs ?? PATIENCE_MS);
    });
  };
  const at = (path: string) => `${parts.baseUrl}/api/yield/${path}`;
  figureRoutes(get, at, parts);
  walletRoutes(get, at, parts);
}

/** @throws Problem 503 when the answer takes longer than that; what it waits for goes on, and is kept for the next who asks */
async function inTime<Answer>(answer: Promise<Answer>, patienceMs: number): Promise<Answer> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(chainUnavailable(new Error(`the node took more than ${patienceMs} ms for its answers`)));
  }, patienceMs);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

type Get = (path: string, answer: (request: Asked, reply: FastifyReply) => Promise<unknown>) => void;
type At = (path: string) => string;

function figureRoutes(get: Get, at: At, parts: YieldRouteParts): void {
  const { baseUrl, nowMs } = parts;
  const about = async () => ({ fixed: await parts.fixed(), baseUrl });
  const shown = (path: string, view: (of: { fixed: Fixed; baseUrl: string }, now: Snapshot) => unknown) =>
    get(path, async () => view(await about(), await parts.snapshot(FRESH_MS)));

  get('rates', async (_request, reply) => {
    const view = ratesView(await about(), await parts.snapshot(RATES_SECONDS * 1_000));
    reply.headers({
      'cache-control': `public, max-age=${RATES_SECONDS}`,
      link: `<${at('manifest')}>; rel="manifest"`,
      'x-agent-tip': `Deposit with GET ${at('deposit-tx')}?recipient={wallet}&preset=100; you sign, this server holds nothing.`,
    });
    return view;
  });
  shown('manifest', manifestView);
  get('stats', async () => {
    const [of, now, look] = await Promise.all([about(), parts.snapshot(FRESH_MS), parts.lastLook()]);
    return statsView(of, now, { nowMs: nowMs(), look });
  });
  shown('presets', presetsView);
  shown('contract', contractView);

  get('history', async ({ query }) => {
    const days = readDays(query.days, at('history?days=30'));
    const [{ everySeconds, points }, moves] = await Promise.all([
      parts.samples.history(days),
      parts.keeperMoves(days),
    ]);
    return { success: true, days, everySeconds, points, moves };
  });
}

function walletRoutes(get: Get, at: At, parts: YieldRouteParts): void {
  const { node, fixed: fixedNow, entryCost, freeReads, check, addressOf, nowMs } = parts;
  const depositExample = at(`deposit-tx?recipient=${EXAMPLE_WALLET}&preset=100`);
  const redeemLink = (wallet: string, how: Leaving) =>
    at(`redeem-tx?wallet=${wallet}${how === 'all' ? '' : `&how=${how}`}`);

  get('deposit-tx', async (request) => {
    const { query } = request;
    const fixed = await fixedNow();
    const wallet = readWallet(query.recipient, 'recipient', fixed, depositExample);
    const amount = readAmount(query, depositExample);
    const mode = readWord(query.mode, 'mode', ['standard', 'permit'], depositExample);
    const answer = await freeReads.read(addressOf(request), async () =>
      withChecks(
        await depositTransactions(node, fixed, { wallet, amount, mode, nowMs: nowMs() }),
        wallet,
        check,
      ),
    );
    return {
      ...answer,
      usefulLinks: {
        position: at(`position/${wallet}`),
        redeem: redeemLink(wallet, 'all'),
        contract: at('contract'),
      },
    };
  });

  get('redeem-tx', async (request) => {
    const { query } = request;
    const example = redeemLink(EXAMPLE_WALLET, 'all');
    const fixed = await fixedNow();
    const wallet = readWallet(query.wallet, 'wallet', fixed, example);
    const how = readWord(query.how, 'how', WAYS_OUT, example);
    const linkTo = (way: Leaving) => redeemLink(wallet, way);
    const answer = await freeReads.read(addressOf(request), async () =>
      withChecks(await redeemTransaction(node, fixed, { wallet, how, linkTo }), wallet, check),
    );
    return { ...answer, usefulLinks: { position: at(`position/${wallet}`), contract: at('contract') } };
  });

  get('position/:wallet', async (request) => {
    const { params } = request;
    const fixed = await fixedNow();
    const wallet = readWallet(params.wallet, 'wallet', fixed, at(`position/${EXAMPLE_WALLET}`));
    const links = {
      deposit: (whose: Address) => at(`deposit-tx?recipient=${whose}&preset=100`),
      redeem: redeemLink,
    };
    return freeReads.read(
      addressOf(request),
      () => positionOf(node, fixed, wallet, { entryCost, links }),
      `position ${wallet}`,
    );
  });
}

function readDays(value: unknown, example: string): number {
  if (value === undefined) return HISTORY_DAYS;
  const days = typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : 0;
  if (days >= 1 && days <= MAX_HISTORY_DAYS) return days;
  const message = `must be a whole number from 1 to ${MAX_HISTORY_DAYS}`;
  throw badRequest(`days ${message}.`, [{ field: 'days', message }], example);
}
