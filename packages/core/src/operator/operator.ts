/** The operator's part of the server, put together: there only while a token or a provider opens it. */
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Database, Transaction } from '../db/connection.ts';
import type { DistributionNote } from '../db/distribution-note.ts';
import type { Derivation } from '../http/caller-address.ts';
import type { RateLimit } from '../http/rate-limit.ts';
import type { Keys } from '../keys/keys.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Audited } from '../ledger/rule.ts';
import type { Owed, RailStanding } from '../part.ts';
import type { GasStanding } from '../relayer/gas-tanks.ts';
import type { MeasuredCost, SourceHealth } from '../service/sources.ts';
import type { StockDesk } from '../stock/desk.ts';
import { createAccountRecords } from './accounts.ts';
import type { CardRefunds, PaymentRefunds } from './act.ts';
import { createActs } from './acts.ts';
import { BOOKS_PROVED_EVERY_MS, createBooksVerdicts } from './books-verdict.ts';
import { createOperators, type OperatorToken } from './credentials.ts';
import type { DeclaredCost } from './margin.ts';
import { createProposals } from './proposals.ts';
import { operatorRoutes } from './routes.ts';
import { operatorCookies } from './sign-in/cookies.ts';
import { People, type SessionBounds } from './sign-in/people.ts';
import { createProvider, type ProviderSettings, type SignInProvider } from './sign-in/provider.ts';
import { SIGNED_IN_PATH } from './sign-in/routes.ts';
import { createTrail } from './trail.ts';

export interface OperatorParts {
  sql: Database;
  /** The database connections for proofs of the books. */
  patient: Database;
  /** Whether the database is spread over servers; not given: it is not. */
  distribution?: DistributionNote;
  /** The rules of the books for the money that each part keeps. */
  books: readonly Audited[];
  ledger: Ledger;
  keys: Keys;
  /** Pays what an account owes from credit that has just come, in the same commit. */
  collectDebts(transaction: Transaction, accountId: bigint): Promise<unknown>;
  /** Null: there is no card provider. */
  cards: CardRefunds | null;
  /** Sends payments back on chains. */
  payments: PaymentRefunds;
  /** What is sold, and how an operator changes it. */
  stock: StockDesk;
  /** The most that one operator alone may give where there are several. */
  secondAboveMicros: bigint;
  /** What one call of a service costs the operator. */
  serviceCosts: readonly DeclaredCost[];
  /** The beginnings of the names of services that sell credit: what is paid for them is no sale until it is spent. */
  creditServices(): readonly string[];
  /** The most that a day may give in trials; null: any. */
  trialBudgetMicrosPerDay: bigint | null;
  upstreamHealth(): readonly SourceHealth[];
  /** Where each list stands that services look things up in. */
  sourceTerms(): readonly object[];
  /** What sources have cost that are paid by use, over the last thirty days. */
  sourceCosts(): Promise<readonly MeasuredCost[]>;
  /** The same of one day in UTC, such as `2026-11-29`. */
  sourceCostsOn(day: string): Promise<readonly MeasuredCost[]>;
  dataLists(): Promise<readonly object[]>;
  /** The official pages that answers lead to: how many have changed since they were read, and each of them. */
  lawPages: { summary(): Promise<object>; states(): Promise<object> };
  /** Lists the money that has to be sent by hand. */
  owed(page: { skip: number }): Promise<{ owed: readonly Owed[]; total: number }>;
  /** The chains that payments are taken on. */
  /** Why nothing is sold now, in a sentence; null: it is. */
  shut(): string | null;
  rails(): readonly RailStanding[];
  /** The keys of ours that pay for transactions on chains. */
  gas(): readonly GasStanding[];
  sendPage(request: FastifyRequest, reply: FastifyReply): FastifyReply;
  /** The provider at which operators sign in, and how. */
  signIn: ProviderSettings & SessionBounds;
  signInSecret(): string | null;
  /** The public address. */
  baseUrl: string;
  /** Counts bad tokens by address: `REFUSALS_PER_MINUTE`. */
  refusalLimit: RateLimit;
  /** Counts sign-ins by address: `SIGN_INS_PER_MINUTE`. */
  signInLimit: RateLimit;
  addressOf(request: FastifyRequest): string;
  /** How that address came about. */
  explainAddress(request: FastifyRequest): Derivation;
  logger: Pick<FastifyBaseLogger, 'info' | 'warn' | 'error'>;
  nowMs(): number;
}

/** @returns null without tokens and provider at the start: then nothing of it is there, neither page nor job */
export function openOperatorDoor(tokens: () => readonly OperatorToken[], parts: OperatorParts) {
  const provider = providerOf(parts);
  if (tokens().length === 0 && provider === null) return null;
  const { sql, nowMs, signIn, baseUrl } = parts;
  const trail = createTrail(sql, nowMs);
  const hasTokens = () => tokens().length > 0;
  // Whoever signs in at a provider is one of several.
  const isAlone = () => provider === null && tokens().length < 2;
  const verdicts = createBooksVerdicts(parts, nowMs);
  return {
    routes(app: FastifyInstance): void {
      operatorRoutes(app, {
        ...parts,
        cards: parts.cards !== null,
        operators: createOperators(tokens, parts),
        provider,
        trail,
        hasTokens,
        longestMs: signIn.longestMs,
        cookies: operatorCookies(baseUrl),
        people: new People({
          sql,
          trail,
          issuer: provider?.issuer ?? null,
          rules: signIn.rules,
          bounds: signIn,
          hasTokens,
          nowMs,
        }),
        acts: createActs({
          ...parts,
          aloneUpToMicros: () => (isAlone() ? null : parts.secondAboveMicros),
        }),
        proposals: createProposals({
          sql,
          operators: () => (isAlone() ? 1 : 2),
          aboveMicros: parts.secondAboveMicros,
          nowMs,
        }),
        records: createAccountRecords(sql, nowMs, parts.distribution),
        verdicts,
      });
    },
    job: { name: 'prove-books', intervalMs: BOOKS_PROVED_EVERY_MS, run: verdicts.proveIfDue },
  };
}

function providerOf({ signIn, signInSecret, baseUrl, nowMs }: OperatorParts): SignInProvider | null {
  const { issuer, clientId } = signIn;
  if (issuer === null || clientId === null) return null;
  const redirectUri = baseUrl + SIGNED_IN_PATH;
  return createProvider({ ...signIn, issuer, clientId }, { redirectUri, secret: signInSecret, nowMs });
}
