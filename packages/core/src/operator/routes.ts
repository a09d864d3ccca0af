/** The operator's page and what it asks. Nothing below `/admin` is there unless there is a token for it. */
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Database } from '../db/connection.ts';
import { claimantOf, type Derivation, isInternal, siteOf } from '../http/caller-address.ts';
import { readParameters } from '../http/parameters.ts';
import { Problem } from '../http/problem.ts';
import { sendProblem } from '../http/server.ts';
import type { Owed, RailStanding } from '../part.ts';
import type { GasStanding } from '../relayer/gas-tanks.ts';
import type { SourceHealth } from '../service/sources.ts';
import type { StockDesk } from '../stock/desk.ts';
import { accountRecordRoutes } from './account-record-routes.ts';
import type { AccountRecords } from './accounts.ts';
import { actAsJson, actRoutes } from './act-routes.ts';
import type { Acts } from './acts.ts';
import { booksAsJson, booksRoutes } from './books-routes.ts';
import type { BooksVerdicts } from './books-verdict.ts';
import type { Operators } from './credentials.ts';
import { gasAsJson, railAsJson } from './gas.ts';
import type { DeclaredCost } from './margin.ts';
import { MOST_DAYS, overviewOf } from './overview.ts';
import { type Proposals, proposalAsJson } from './proposals.ts';
import { giftRoutes, proposalRoutes } from './refund-routes.ts';
import { stockRoutes } from './stock-routes.ts';

export interface OperatorRouteParts {
  sql: Database;
  operators: Operators;
  acts: Acts;
  stock: StockDesk;
  /** What one call of a service costs the operator. */
  serviceCosts: readonly DeclaredCost[];
  proposals: Proposals;
  records: AccountRecords;
  verdicts: BooksVerdicts;
  /** Whether card payments can be sent back. */
  cards: boolean;
  /** The beginnings of the names of services that sell credit. */
  creditServices(): readonly string[];
  /** The most that a day may give in trials; null: any. */
  trialBudgetMicrosPerDay: bigint | null;
  upstreamHealth(): readonly SourceHealth[];
  /** On which terms each source gives what is sold. */
  sourceTerms(): readonly object[];
  /** Where each list stands that services look things up in. */
  dataLists(): Promise<readonly object[]>;
  /** Lists the money that has to be sent by hand. */
  owed(page: { skip: number }): Promise<{ owed: readonly Owed[]; total: number }>;
  /** The keys of ours that pay for transactions on chains. */
  rails(): readonly RailStanding[];
  gas(): readonly GasStanding[];
  /** Sends the page itself. */
  sendPage(request: FastifyRequest, reply: FastifyReply): FastifyReply;
  addressOf(request: FastifyRequest): string;
  /** How that address came about. */
  explainAddress(request: FastifyRequest): Derivation;
  logger: Pick<FastifyBaseLogger, 'info' | 'warn' | 'error'>;
  nowMs(): number;
}

const owedQuery = z.object({ skip: z.coerce.number().int().min(0).max(1_000_000).default(0) });
const overviewQuery = z.object({
  days: z.coerce.number().int().min(1).max(MOST_DAYS).default(30),
});

/** Serves `/admin` and everything below it. */
export function operatorRoutes(app: FastifyInstance, parts: OperatorRouteParts): void {
  const { acts, records, verdicts, logger } = parts;
  const actors = new WeakMap<FastifyRequest, string>();

  app.register(
    async (admin) => {
      keepPrivate(admin);
      admin.setNotFoundHandler((request, reply) => {
        const problem = new Problem(404, 'NOT_FOUND', 'There is nothing at this address.');
        return sendProblem(problem, request, reply);
      });
      // No other origin may ask, so a browser that asks whether it may is told nothing.
      admin.options('/*', (_request, reply) => reply.code(204).send());
      admin.get('/', (request, reply) => parts.sendPage(request, reply));

      await admin.register(api, { prefix: '/api' });
    },
    { prefix: '/admin' },
  );

  async function api(admin: FastifyInstance): Promise<void> {
    admin.addHook('onRequest', async (request) => {
      const address = parts.addressOf(request);
      try {
        actors.set(request, parts.operators.admit(request.headers.authorization, address));
      } catch (error) {
        // A flood of bad tokens must not become a flood of lines: who is told to wait was written down before.
        if (error instanceof Problem && error.status === 401)
          logger.warn({ address, path: request.routeOptions.url, code: error.code }, 'operator refused');
        throw error;
      }
    });
    const actorOf = (request: FastifyRequest): string => {
      const actor = actors.get(request);
      if (actor === undefined) throw new Error('a request came past the door');
      return actor;
    };

    admin.get('/session', async (request) => ({ actor: actorOf(request), cards: parts.cards }));

    /** How the address of whoever asks this was derived: what the proxies in front make of it. */
    admin.get('/caller', async (request) => callerAsJson(parts.explainAddress(request)));

    overviewRoutes(admin, parts);
    booksRoutes(admin, { verdicts, logger });
    accountRecordRoutes(admin, { records, acts });
    const acting = { acts, proposals: parts.proposals, logger, actorOf };
    actRoutes(admin, acting);
    giftRoutes(admin, acting);
    proposalRoutes(admin, acting);
    stockRoutes(admin, {
      ...acting,
      stock: parts.stock,
      serviceCosts: parts.serviceCosts,
      upstreamHealth: () => parts.upstreamHealth(),
    });
  }
}

/** Everything at a glance, and the pages of what does not fit there. */
function overviewRoutes(admin: FastifyInstance, parts: OperatorRouteParts): void {
  const { acts, verdicts } = parts;
  /** Lists the money that has to be sent by hand, a page at a time. */
  admin.get('/owed', async (request) => {
    const { skip } = readParameters(owedQuery, request.query);
    return parts.owed({ skip });
  });

  admin.get('/overview', async (request) => {
    const { owed, total: owedTotal } = await parts.owed({ skip: 0 });
    const overview = await overviewOf(parts.sql, {
      days: readParameters(overviewQuery, request.query).days,
      creditServices: parts.creditServices(),
      trialBudgetMicrosPerDay: parts.trialBudgetMicrosPerDay,
      nowMs: parts.nowMs(),
    });
    return {
      at: new Date(parts.nowMs()).toISOString(),
      ...overview,
      openActs: (await acts.open()).map(actAsJson),
      proposals: (await parts.proposals.waiting()).map(proposalAsJson),
      upstreams: parts.upstreamHealth().map(healthAsJson),
      dataLists: await parts.dataLists(),
      owed,
      owedTotal,
      sourceTerms: parts.sourceTerms(),
      rails: parts.rails().map(railAsJson),
      gas: parts.gas().map(gasAsJson),
      books: await booksAsJson(verdicts),
    };
  });
}

/** The answers are for one page on this origin, for nobody to keep or index, and nobody is told of an address by mistyping it. */
function keepPrivate(admin: FastifyInstance): void {
  // After the house's own hook, which adds the two.
  admin.addHook('onSend', async (_request, reply, payload) => {
    reply.removeHeader('access-control-allow-origin');
    reply.removeHeader('access-control-expose-headers');
    reply.headers({ 'cache-control': 'no-store', 'x-robots-tag': 'noindex, nofollow' });
    reply.header('x-content-type-options', 'nosniff');
    return payload;
  });
  admin.addHook('onRoute', (route) => {
    route.config = { ...route.config, isTold: () => false };
  });
}

function callerAsJson(derived: Derivation): Record<string, unknown> {
  const site = siteOf(derived.address);
  return {
    ...derived,
    internal: isInternal(derived.address),
    countedAs: [claimantOf(derived.address), ...(site === null ? [] : [site])],
  };
}

function healthAsJson(health: SourceHealth): Record<string, unknown> {
  const at = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  return {
    name: health.name,
    state: health.state === 'up' ? seenOf(health) : health.state,
    reason: health.reason,
    lastSuccessAt: at(health.lastSuccessAtMs),
    lastFailureAt: at(health.lastFailureAtMs),
    requestsPerHour: health.requestsPerHour ?? null,
  };
}

/** A source that may be asked is up once it has answered. Before that nobody knows. */
function seenOf({ lastSuccessAtMs, lastFailureAtMs }: SourceHealth): 'up' | 'failing' | 'not_asked' {
  if (lastSuccessAtMs !== null) return 'up';
  return lastFailureAtMs === null ? 'not_asked' : 'failing';
}
