import type { Configured } from '@farebox/core/declared';
import { Problem, unavailable } from '@farebox/core/http/problem';
import type { House, Part } from '@farebox/core/part';
import type { FreeReadsByChain } from '../free-reads/part.ts';
import type { CheckTransaction } from './before-signing.ts';
import { createBook } from './book.ts';
import { sharedTerms } from './bundle.ts';
import { createClaims } from './claims.ts';
import { CLAIMS_PER_MINUTE } from './confirm.ts';
import { SOLANA_YIELD } from './declared.ts';
import { createFees } from './fees.ts';
import { createIntents } from './intents.ts';
import { createKeeper } from './keeper.ts';
import { createMoves } from './moves.ts';
import { neverBack } from './never-back.ts';
import { openNode } from './node.ts';
import { PORTAL_OPERATIONS } from './operations.ts';
import { openPortal, type Portal } from './portal.ts';
import { READING_OPERATIONS } from './reading-operations.ts';
import { readingRoutes } from './reading-routes.ts';
import { owedFor } from './refunds.ts';
import { portalRoutes } from './routes.ts';
import type { OtherRate } from './standing.ts';
import { createVerifier } from './verify.ts';
import { createWalk } from './walk.ts';

export { SOLANA_YIELD };

/** How often it is looked whether the chain is still what this portal was made for. */
const CHECK_MS = 60_000;
/** How often the chain is asked about what is open. */
const KEEP_MS = 15_000;
const NOT_CONFIGURED_RETRY_MS = 3_600_000;

/**
 * The yield portal on Solana: what USDC earns in a lending protocol, and the transactions of whoever comes and leaves. Without a
 * treasury its addresses say so, and no document mentions them.
 *
 * @param needs.upstreams of them the node of Solana
 * @param needs.vault whose rate on Base is compared with; null: there is none
 * @param needs.check the check of what is handed out; null: there is none
 */
export function openSolanaYield(
  house: House,
  { settings, secrets }: Configured<typeof SOLANA_YIELD.variables>,
  {
    upstreams,
    freeReads: { solana: freeReads, metrics },
    vault,
    check,
  }: {
    upstreams: { solana: { baseUrl: string | null } };
    freeReads: FreeReadsByChain;
    vault: { currentRate: OtherRate | null } | null;
    check: { solana: CheckTransaction } | null;
  },
): Part {
  const { treasury, sinceSlot } = settings;
  const { baseUrl: rpcUrl } = upstreams.solana;
  if (treasury === null || sinceSlot === null || rpcUrl === null) return notConfigured();
  const { nowMs, baseUrl, sandbox, addressOf, logger } = house;
  const { sql } = house.pools;
  const node = openNode(() => [rpcUrl, ...secrets.reveal().furtherNodes], nowMs);
  const portal = neverBack(openPortal(node, { treasury, sinceSlot, nowMs }), nowMs);
  const moves = createMoves(sql, nowMs);
  const fees = createFees(sql, nowMs);
  const claims = createClaims(sql, nowMs);
  const intents = createIntents(sql, nowMs);
  const book = createBook({ sql, portal, moves, fees, nowMs });
  const verify = createVerifier({ node, portal, moves, book });
  const walk = createWalk({ sql, node, portal, logger, nowMs });
  const common = { node, portal, verify, moves, claims, fees, intents, logger, nowMs };
  const keeper = createKeeper({ ...common, book, walk });
  return {
    name: 'solana-yield',
    assets: { '/yield': 'yield.html' },
    operations: [PORTAL_OPERATIONS, READING_OPERATIONS],
    metrics,
    queues: [claims.queue, walk.queue, fees.queue],
    routes(http) {
      const asked = { ...common, baseUrl, limit: house.limitByAddress(), addressOf, freeReads };
      portalRoutes(http, {
        ...asked,
        contactEmail: house.shop.contactEmail,
        terms: sharedTerms(node, nowMs),
        check: check?.solana ?? null,
        claimLimit: house.limitByAddress(CLAIMS_PER_MINUTE),
      });
      readingRoutes(http, {
        ...asked,
        sandbox,
        baseRate: vault?.currentRate ?? null,
        pendingOf: claims.pendingOf,
      });
    },
    jobs: [
      { name: 'solana-yield-check', intervalMs: CHECK_MS, run: watched(portal, logger) },
      { name: 'solana-yield-keep', intervalMs: KEEP_MS, run: keeper.round },
      { name: 'solana-yield-settle', intervalMs: KEEP_MS, run: keeper.settle },
    ],
    async owes(page) {
      const { due, total } = await fees.due(page);
      return { owed: due.map((each) => owedFor(each, treasury)), total };
    },
    close: node.close,
  };
}

/** Tells the operator why nothing can be built or verified, and when that is over. */
function watched({ look }: Portal, logger: House['logger']): () => Promise<void> {
  let told: string | null = null;
  return async () => {
    const amiss = await look().then(
      () => null,
      (error: unknown) => {
        if (error instanceof Problem) return error.message;
        throw error;
      },
    );
    if (amiss !== null && amiss !== told)
      logger.warn({ why: amiss }, 'the yield portal on Solana cannot be used');
    if (amiss === null && told !== null) logger.info('the yield portal on Solana can be used again');
    told = amiss;
  };
}

function notConfigured(): Part {
  return {
    name: 'solana-yield',
    operations: [
      {
        operations: [],
        untold: [{ path: '/api/solana-yield/*', because: 'There is no treasury: it answers 503.' }],
      },
    ],
    routes(http) {
      http.all('/api/solana-yield/*', async () => {
        throw unavailable(
          'SOLANA_YIELD_NOT_CONFIGURED',
          'This server offers no yield on Solana.',
          NOT_CONFIGURED_RETRY_MS,
          { success: false },
        );
      });
    },
  };
}
