/** The operator's page and what it asks. Nothing below `/admin` is there unless there is a token or a provider for it. */
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Database } from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';
import { claimantOf, type Derivation, isInternal, siteOf } from '../http/caller-address.ts';
import { readParameters } from '../http/parameters.ts';
import { Problem } from '../http/problem.ts';
import type { RateLimit } from '../http/rate-limit.ts';
import { sendProblem } from '../http/server.ts';
import type { Owed, RailStanding } from '../part.ts';
import type { GasStanding } from '../relayer/gas-tanks.ts';
import type { MeasuredCost, SourceHealth } from '../service/sources.ts';
import type { StockDesk } from '../stock/desk.ts';
import { accountRecordRoutes } from './account-record-routes.ts';
import type { AccountRecords } from './accounts.ts';
import { actAsJson, actRoutes } from './act-routes.ts';
import type { Acts } from './acts.ts';
import { booksAsJson, booksRoutes } from './books-routes.ts';
import type { BooksVerdicts } from './books-verdict.ts';
import type { Operators } from './credentials.ts';
import { letIn } from './door.ts';
import { exportRoutes } from './export-routes.ts';
import { gasAsJson, railAsJson } from './gas.ts';
import type { DeclaredCost } from './margin.ts';
import { MOST_DAYS, overviewOf } from './overview.ts';
import { createSections } from './overview-sections.ts';
import { peopleRoutes } from './people-routes.ts';
import { type Proposals, proposalAsJson } from './proposals.ts';
import { giftRoutes, proposalRoutes, refuseToAgree } from './refund-routes.ts';
import { type RouteRule, refuseBelow, ruleOf } from './roles.ts';
import type { operatorCookies } from './sign-in/cookies.ts';
import type { People } from './sign-in/people.ts';
import type { SignInProvider } from './sign-in/provider.ts';
import { signInRoutes } from './sign-in/routes.ts';
import { stockRoutes } from './stock-routes.ts';
import type { Operator, Trail } from './trail.ts';
import { keepTrail } from './trail-hooks.ts';

export interface OperatorRouteParts {
  sql: Database;
  /** The database connections for readings that take long. */
  patient: Database;
  /** Whether the database is spread over servers; not given: it is not. */
  distribution?: DistributionNote;
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
  sourceCosts(): Promise<readonly MeasuredCost[]>;
  /** The same of one day in UTC, such as `2026-11-29`. */
  sourceCostsOn(day: string): Promise<readonly MeasuredCost[]>;
  /** Where each list stands that services look things up in. */
  dataLists(): Promise<readonly object[]>;
  /** The official pages that answers lead to: how many have changed since they were read, and each of them. */
  lawPages: { summary(): Promise<object>; states(): Promise<object> };
  /** Lists the money that has to be sent by hand. */
  owed(page: { skip: number }): Promise<{ owed: readonly Owed[]; total: number }>;
  /** Why nothing is sold now, in a sentence; null: it is. */
  shut(): string | null;
  /** The keys of ours that pay for transactions on chains. */
  rails(): readonly RailStanding[];
  gas(): readonly GasStanding[];
  people: People;
  trail: Trail;
  /** The provider at which operators sign in; null: tokens alone open the page. */
  provider: SignInProvider | null;
  cookies: ReturnType<typeof operatorCookies>;
  /** How long a session lasts at most. */
  longestMs: number;
  hasTokens(): boolean;
  refusalLimit: RateLimit;
  signInLimit: RateLimit;
  /** The public address. */
  baseUrl: string;
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
      signInRoutes(admin, {
        ...parts,
        limit: parts.signInLimit,
        takesTokens: async () => parts.hasTokens() && !(await parts.people.tokensAreOff()),
      });
      await admin.register(async (api) => apiRoutes(api, parts), { prefix: '/api' });
    },
    { prefix: '/admin' },
  );
}

/** Everything below `/admin/api`, each for operators of the role that `roles.ts` names. */
function apiRoutes(admin: FastifyInstance, parts: OperatorRouteParts): void {
  const { acts, records, verdicts, logger, trail, addressOf } = parts;
  requireRules(admin);
  const operatorOf = letOperatorsIn(admin, parts);
  keepTrail(admin, { trail, operatorOf, addressOf });

  admin.get('/session', async (request) => {
    const operator = operatorOf(request);
    const { actor, role, person } = operator;
    // A token has no session: that the page was opened by one is told here.
    const about = { token: true };
    if (person === null) await trail.note('sign_in', operator, { address: addressOf(request), about });
    return {
      actor,
      role,
      cards: parts.cards,
      by: person === null ? 'token' : 'provider',
      issuer: person?.issuer ?? null,
      email: person?.email ?? null,
      sessionId: person?.sessionId ?? null,
    };
  });

  /** How the address of whoever asks this was derived: what the proxies in front make of it. */
  admin.get('/caller', async (request) => callerAsJson(parts.explainAddress(request)));

  overviewRoutes(admin, parts);
  booksRoutes(admin, { verdicts, logger });
  accountRecordRoutes(admin, { records, acts });
  peopleRoutes(admin, { ...parts, operatorOf });
  exportRoutes(admin, parts);
  const actorOf = (request: FastifyRequest): string => operatorOf(request).actor;
  const acting = { acts, proposals: parts.proposals, logger, actorOf };
  actRoutes(admin, acting);
  giftRoutes(admin, acting);
  proposalRoutes(admin, {
    ...acting,
    refuseToAgree: (request, asker) => refuseToAgree(operatorOf(request), asker, parts),
  });
  stockRoutes(admin, {
    ...acting,
    stock: parts.stock,
    serviceCosts: parts.serviceCosts,
    upstreamHealth: () => parts.upstreamHealth(),
    sourceCosts: () => parts.sourceCosts(),
  });
}

/** Lets in who may ask a route. @returns the operator who sent a request that was let in */
function letOperatorsIn(
  admin: FastifyInstance,
  parts: OperatorRouteParts,
): (request: FastifyRequest) => Operator {
  const operators = new WeakMap<FastifyRequest, Operator>();
  admin.addHook('onRequest', async (request, reply) => {
    const address = parts.addressOf(request);
    try {
      operators.set(request, await letIn(request, parts));
    } catch (error) {
      // A flood of bad tokens must not become a flood of lines: who is told to wait was written down before.
      if (error instanceof Problem && error.status === 401)
        parts.logger.warn({ address, path: request.routeOptions.url, code: error.code }, 'operator refused');
      if (error instanceof Problem && error.code === 'SESSION_ENDED')
        reply.header('set-cookie', parts.cookies.noSession());
      throw error;
    }
    refuseBelow(operatorOf(request).role, ruleOfRequest(request).least);
  });
  function operatorOf(request: FastifyRequest): Operator {
    const operator = operators.get(request);
    if (operator === undefined) throw new Error('a request came past the door');
    return operator;
  }
  return operatorOf;
}

/** Stops the start at a route that no role is declared for. */
function requireRules(admin: FastifyInstance): void {
  admin.addHook('onRoute', ({ method, routePath }) => {
    for (const each of [method].flat())
      if (ruleOf(each, routePath) === undefined)
        throw new Error(`roles.ts does not say which role may ask ${each} /admin/api${routePath}`);
  });
}

function ruleOfRequest(request: FastifyRequest): RouteRule {
  const { method, url = '' } = request.routeOptions;
  const rule = ruleOf([method].flat()[0] ?? '', url.slice('/admin/api'.length));
  if (rule === undefined) throw new Error(`there is no rule for ${url}`);
  return rule;
}

/** Everything at a glance, and the pages of what does not fit there. */
function overviewRoutes(admin: FastifyInstance, parts: OperatorRouteParts): void {
  const { acts, verdicts } = parts;
  /** Lists the money that has to be sent by hand, a page at a time. */
  admin.get('/owed', async (request) => {
    const { skip } = readParameters(owedQuery, request.query);
    return parts.owed({ skip });
  });

  /** Each official page that answers lead to. */
  admin.get('/law-pages', async () => parts.lawPages.states());

  admin.get('/overview', async (request) => {
    const { days } = readParameters(overviewQuery, request.query);
    const sections = createSections(parts.sql, ({ section, error }) =>
      parts.logger.warn({ err: error, section }, 'a section of the overview could not be read'),
    );
    const owed = await sections.read('Payments to be sent back by hand', () => parts.owed({ skip: 0 }));
    const overview = await overviewOf(sections, {
      days,
      creditServices: parts.creditServices(),
      trialBudgetMicrosPerDay: parts.trialBudgetMicrosPerDay,
      isSpread: parts.distribution?.isDistributed === true,
      nowMs: parts.nowMs(),
    });
    const openActs = await sections.read('Actions whose end is not known', () => acts.open());
    const proposals = await sections.read('Refunds and grants to agree to', () => parts.proposals.waiting());
    return {
      at: new Date(parts.nowMs()).toISOString(),
      ...overview,
      openActs: openActs?.map(actAsJson) ?? null,
      proposals: proposals?.map(proposalAsJson) ?? null,
      upstreams: await sections.read('Sources', () => parts.upstreamHealth().map(healthAsJson)),
      dataLists: await sections.read('Lists', () => parts.dataLists()),
      lawPages: await sections.read('Official pages of laws', () => parts.lawPages.summary()),
      owed: owed?.owed ?? null,
      owedTotal: owed?.total ?? null,
      sourceTerms: await sections.read('Terms of the sources', () => parts.sourceTerms()),
      rails: await sections.read('Chains', () => parts.rails().map(railAsJson)),
      gas: await sections.read('Gas', () => parts.gas().map(gasAsJson)),
      books: await sections.read('Books', () => booksAsJson(verdicts)),
      notes: [parts.shut() ?? [], sections.notes].flat(),
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
