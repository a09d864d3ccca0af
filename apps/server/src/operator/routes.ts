/** The operator's page and what it asks. Nothing below `/admin` is there unless there is a token for it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Database } from '../db/connection.ts';
import { claimantOf, type Derivation, isInternal, siteOf } from '../http/caller-address.ts';
import { idempotencyKeyOf } from '../http/idempotency-key.ts';
import { readJsonBody } from '../http/json-body.ts';
import { invalidRequest, Problem } from '../http/problem.ts';
import { microsToUsd, usdToMicros } from '../ledger/money.ts';
import type { GasStanding } from '../relayer/gas-tanks.ts';
import type { UpstreamHealth } from '../upstreams/http.ts';
import { isNameable, NOT_NAMEABLE } from '../words/name.ts';
import type { AccountRecords } from './accounts.ts';
import { ACTS_A_PAGE, type Act, type ActDone, type Acts, type Order } from './acts.ts';
import type { BooksVerdict, BooksVerdicts } from './books-verdict.ts';
import type { Operators } from './credentials.ts';
import { gasAsJson } from './gas.ts';
import { MOST_DAYS, overviewOf } from './overview.ts';

/** Of an `Idempotency-Key`, in characters. */
const KEY_LENGTH = { least: 8, most: 200 };
const MOST_GRANTED_MICROS = usdToMicros('10000');
const MOST_REFUNDED_MICROS = usdToMicros('1000000');
const CENT_MICROS = 10_000n;
const MOST_ID = 2n ** 63n - 1n;
/** Who asks for a proof of the books waits for so long; then it goes on without them. */
const PROOF_AWAITED_MS = 20_000;

export interface OperatorRouteParts {
  sql: Database;
  operators: Operators;
  acts: Acts;
  records: AccountRecords;
  verdicts: BooksVerdicts;
  /** Whether card payments can be sent back. */
  cards: boolean;
  /** What the names of services begin with that sell credit. */
  creditServices: string;
  /** What a day may give in trials; null: any. */
  trialBudgetMicrosPerDay: bigint | null;
  upstreamHealth(): readonly UpstreamHealth[];
  /** On which terms each source gives what is sold. */
  sourceTerms(): readonly object[];
  /** Where each list stands that services look things up in. */
  dataLists(): Promise<readonly object[]>;
  /** The keys of ours that pay for transactions on chains. */
  gas(): readonly GasStanding[];
  /** Sends the page itself. */
  sendPage(request: FastifyRequest, reply: FastifyReply): FastifyReply;
  addressOf(request: FastifyRequest): string;
  /** How that address came about. */
  explainAddress(request: FastifyRequest): Derivation;
  logger: Pick<FastifyBaseLogger, 'info' | 'warn' | 'error'>;
  nowMs(): number;
}

const reason = z
  .string()
  .trim()
  .min(3, 'must say why, in 3 to 500 characters')
  .max(500, 'must say why, in 3 to 500 characters')
  .refine(isNameable, NOT_NAMEABLE);
const amountUpTo = (mostMicros: bigint) =>
  z.union([z.string(), z.number()]).transform((value, context) => {
    try {
      const micros = usdToMicros(String(value));
      if (micros > 0n && micros <= mostMicros) return micros;
    } catch {
      // said below
    }
    context.addIssue({
      code: 'custom',
      message: `must be an amount in USD above 0, at most ${microsToUsd(mostMicros, 2)}, with at most six places`,
    });
    return z.NEVER;
  });
const uuid = z.uuid().transform((value) => value.toLowerCase());
const plainAct = z.strictObject({ reason });
const grantAct = z.strictObject({ reason, amountUsd: amountUpTo(MOST_GRANTED_MICROS) });
const callRefund = z.strictObject({ reason, callId: uuid });
const orderRefund = z.strictObject({
  reason,
  orderId: uuid,
  amountUsd: amountUpTo(MOST_REFUNDED_MICROS)
    .refine((micros) => micros % CENT_MICROS === 0n, 'must be a whole number of cents')
    .nullable(),
});
const keyMail = z.strictObject({ reason, orderId: uuid });
const id = z
  .string()
  .regex(/^\d{1,19}$/, 'must be a number')
  .transform(BigInt)
  .refine((value) => value <= MOST_ID, 'must be a number');
const overviewQuery = z.object({
  days: z.coerce.number().int().min(1).max(MOST_DAYS).default(30),
});
const searchQuery = z.object({
  q: z
    .string()
    .max(200)
    .regex(/^\P{Cc}*$/u, 'must not hold control characters')
    .default(''),
  after: id.optional(),
});
const actsQuery = z.object({ account: id.optional(), after: id.optional() });

/** Serves `/admin` and everything below it. */
export function operatorRoutes(app: FastifyInstance, parts: OperatorRouteParts): void {
  const { acts, records, verdicts, logger } = parts;
  const actors = new WeakMap<FastifyRequest, string>();

  app.register(
    async (admin) => {
      // After the house's own hook: these answers are for one page on this origin, and for nobody to keep or index.
      admin.addHook('onSend', async (_request, reply, payload) => {
        reply.removeHeader('access-control-allow-origin');
        reply.removeHeader('access-control-expose-headers');
        reply.headers({ 'cache-control': 'no-store', 'x-robots-tag': 'noindex, nofollow' });
        reply.header('x-content-type-options', 'nosniff');
        return payload;
      });
      admin.setNotFoundHandler((request, reply) => {
        const problem = new Problem(404, 'NOT_FOUND', 'There is nothing at this address.');
        return reply.code(404).send(problem.body(request.id));
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

    admin.get('/overview', async (request) => {
      const { days } = read(overviewQuery, request.query);
      const { creditServices, trialBudgetMicrosPerDay } = parts;
      const overview = await overviewOf(parts.sql, {
        ...{ days, creditServices, trialBudgetMicrosPerDay },
        nowMs: parts.nowMs(),
      });
      return {
        at: new Date(parts.nowMs()).toISOString(),
        ...overview,
        openActs: (await acts.open()).map(asJson),
        upstreams: parts.upstreamHealth().map(healthAsJson),
        dataLists: await parts.dataLists(),
        ...{ gas: parts.gas().map(gasAsJson), sourceTerms: parts.sourceTerms() },
        books: await booksAsJson(verdicts),
      };
    });

    admin.get('/books', async () => booksAsJson(verdicts));

    admin.post('/books', async (_request, reply) => {
      const proof = verdicts.prove();
      const waiting = new AbortController();
      const patience = sleep(PROOF_AWAITED_MS, 'later' as const, { signal: waiting.signal, ref: false });
      const first = await Promise.race([proof, patience]).finally(() => {
        waiting.abort();
        patience.catch(() => {});
      });
      if (first === 'later') {
        proof.catch((error: unknown) => logger.error({ err: error }, 'proving the books failed'));
        return reply.code(202).send(await booksAsJson(verdicts));
      }
      if (first !== null) return booksAsJson(verdicts);
      throw new Problem(409, 'BOOKS_BEING_PROVEN', 'The books are being proved already.', {
        details: { since: (await verdicts.provingSince())?.toISOString() ?? null },
        headers: { 'retry-after': '10' },
      });
    });

    admin.get('/keys', async (request) => {
      const { q, after } = read(searchQuery, request.query);
      return inTime(records.search(q, after ?? null));
    });

    admin.get('/accounts/:account', async (request) => {
      const accountId = accountOf(request);
      const account = await inTime(records.account(accountId));
      if (account === null) throw new Problem(404, 'NO_SUCH_ACCOUNT', 'There is no such account.');
      return { ...account, acts: (await acts.list({ accountId, after: null })).map(asJson) };
    });

    admin.get('/acts', async (request) => {
      const { account, after } = read(actsQuery, request.query);
      const listed = await acts.list({ accountId: account ?? null, after: after ?? null });
      const last = listed.length === ACTS_A_PAGE ? listed.at(-1) : undefined;
      return { acts: listed.map(asJson), after: last === undefined ? null : String(last.number) };
    });

    admin.post('/accounts/:account/freeze', async (request) => {
      return did(await acts.freeze({ ...orderOf(request), ...readJsonBody(request, plainAct) }));
    });
    admin.post('/accounts/:account/unfreeze', async (request) => {
      return did(await acts.unfreeze({ ...orderOf(request), ...readJsonBody(request, plainAct) }));
    });
    admin.post('/accounts/:account/grant', async (request) => {
      const { amountUsd: amountMicros, ...body } = readJsonBody(request, grantAct);
      return did(await acts.grant({ ...orderOf(request), ...body, amountMicros }));
    });
    admin.post('/accounts/:account/refund-call', async (request) => {
      return did(await acts.refundCall({ ...orderOf(request), ...readJsonBody(request, callRefund) }));
    });
    admin.post('/accounts/:account/refund-order', async (request) => {
      const { amountUsd: amountMicros, ...body } = readJsonBody(request, orderRefund);
      return did(await acts.refundOrder({ ...orderOf(request), ...body, amountMicros }));
    });
    admin.post('/accounts/:account/mail-key', async (request) => {
      return did(await acts.mailKey({ ...orderOf(request), ...readJsonBody(request, keyMail) }));
    });
    admin.post<{ Params: { act: string } }>('/acts/:act/go-on', async (request) => {
      const actor = actorOf(request);
      const done = await acts.goOn(read(uuid, request.params.act));
      logger.info({ actor, actId: done.act.id }, 'an act was gone on with');
      return { success: true, repeated: done.repeated, act: asJson(done.act) };
    });

    function orderOf(request: FastifyRequest): Omit<Order, 'reason'> {
      const sent = idempotencyKeyOf(request.headers, KEY_LENGTH);
      if (sent === null || sent === 'unfit') {
        throw new Problem(
          400,
          'IDEMPOTENCY_KEY_REQUIRED',
          'Send an Idempotency-Key of 8 to 200 printable characters: the same key again is the same action.',
        );
      }
      return { actor: actorOf(request), accountId: accountOf(request), idempotencyKey: sent.key };
    }
  }

  function did(done: ActDone): Record<string, unknown> {
    const { id: actId, actor, act, accountId } = done.act;
    if (!done.repeated) logger.info({ actId, actor, act, accountId: String(accountId) }, 'operator acted');
    return { success: true, repeated: done.repeated, act: asJson(done.act) };
  }
}

function callerAsJson(derived: Derivation): Record<string, unknown> {
  const site = siteOf(derived.address);
  return {
    ...derived,
    internal: isInternal(derived.address),
    countedAs: [claimantOf(derived.address), ...(site === null ? [] : [site])],
  };
}

function accountOf(request: FastifyRequest): bigint {
  return read(z.object({ account: id }), request.params).account;
}

/** @throws Problem 400 with what is wrong */
function read<T>(schema: z.ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join('.') ?? '';
  throw invalidRequest(`${field || 'address'}: ${issue?.message ?? 'is invalid'}`);
}

/** What took longer than its bound is the caller's to narrow. */
async function inTime<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === '57014')) throw error;
    throw new Problem(503, 'TOOK_TOO_LONG', 'This took more than 5 s to look up. Ask for less.', {
      headers: { 'retry-after': '5' },
      cause: error,
    });
  }
}

function asJson(act: Act): Record<string, unknown> {
  return {
    actId: act.id,
    at: act.at.toISOString(),
    actor: act.actor,
    act: act.act,
    state: act.state,
    accountId: String(act.accountId),
    keyId: act.keyId === null ? null : String(act.keyId),
    orderId: act.orderId,
    callId: act.callId,
    amountUsd: act.amountMicros === null ? null : microsToUsd(act.amountMicros),
    reason: act.reason,
    transferId: act.transferId,
    outcome: act.outcome === null ? null : { ...act.outcome, at: act.outcome.at.toISOString() },
  };
}

function healthAsJson(health: UpstreamHealth): Record<string, unknown> {
  const at = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  return {
    name: health.name,
    state: health.state === 'up' ? seenOf(health) : health.state,
    reason: health.reason,
    lastSuccessAt: at(health.lastSuccessAtMs),
    lastFailureAt: at(health.lastFailureAtMs),
  };
}

/** A source that may be asked is up once it has answered. Before that nobody knows. */
function seenOf({ lastSuccessAtMs, lastFailureAtMs }: UpstreamHealth): 'up' | 'failing' | 'not_asked' {
  if (lastSuccessAtMs !== null) return 'up';
  return lastFailureAtMs === null ? 'not_asked' : 'failing';
}

/** The last verdict, and whether the next is on its way. */
async function booksAsJson(verdicts: BooksVerdicts): Promise<Record<string, unknown>> {
  const [verdict, since] = await Promise.all([verdicts.last(), verdicts.provingSince()]);
  return {
    verdict: verdict === null ? null : verdictAsJson(verdict),
    provingSince: since?.toISOString() ?? null,
  };
}

function verdictAsJson({ startedAt, endedAt, books }: BooksVerdict): Record<string, unknown> {
  return {
    startedAt: startedAt.toISOString(),
    endedAt: endedAt.toISOString(),
    balanced: books.balanced,
    checks: books.checks,
    /** Credits less debits: what grows by debits, such as money that came in, is below zero. */
    house: books.house.map(({ account, netMicros }) => ({ account, netUsd: microsToUsd(netMicros) })),
    customersUsd: microsToUsd(books.customersMicros),
    reservedUsd: microsToUsd(books.reservedMicros),
    transfers: Number(books.transfers),
    calls: numbersOf(books.calls),
    onChain: numbersOf(books.onChain),
  };
}

function numbersOf(counts: Readonly<Record<string, bigint>>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Number(count)]));
}
