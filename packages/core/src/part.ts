/**
 * The parts that the server is put together from. `House` is what every part gets: small, made once, and without the ledger and
 * the keys, which are handed only to parts that move money. A part is what a folder's `part.ts` opens; `app.ts` lists
 * them, and what is not listed is off.
 */
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import type { Registry } from 'prom-client';
import type { Pools } from './db/connection.ts';
import type { WatchedQueue } from './db/leased-queue.ts';
import type { StartPatience } from './db/start-patience.ts';
import type { Described } from './http/operation.ts';
import type { AddressReader } from './http/proxy-check.ts';
import type { RateLimit, ReturningLimit } from './http/rate-limit.ts';
import type { LostPage, PayPage, ReceiptPage } from './http/server.ts';
import type { Job } from './jobs/schedule.ts';
import type { PayerProof } from './paid-call/rail.ts';
import type { Service } from './service/define.ts';
import type { Shelf } from './service/shelf.ts';
import type { Shop } from './shop.ts';

export interface House {
  pools: Pools;
  /** The public address, without a trailing slash. */
  baseUrl: string;
  version: string;
  /** Whether the money is that of a sandbox. It is told to whoever is about to pay, and decides nothing else. */
  sandbox: boolean;
  shop: Shop;
  /** What is sold now. Read it anew for each request: another table may take its place at any time. */
  shelf: Shelf;
  /** The call of a service that somebody with a new key is shown; it follows the shelf. */
  firstCall: { readonly path: string; readonly body: Readonly<Record<string, unknown>> };
  /** The address that tells of a code of errors; null: nothing does. */
  docUrlOf(code: string): string | null;
  /** How many calls whole dollars of credit buy, in words. */
  callsFor(amountUsd: number): string;
  logger: FastifyBaseLogger;
  addresses: AddressReader;
  /** The address that a request counts for. */
  addressOf(request: FastifyRequest): string;
  /** A new bound on something by any name; in this process. */
  limit(perMinute: number): ReturningLimit;
  /** A new rate limit by caller address, counted in this process. Its default is configured. */
  limitByAddress(perMinute?: number): RateLimit;
  nowMs(): number;
}

export interface Part {
  name: string;
  /** Asked before the server listens, in the order of the list. @throws StartError when it must not */
  prepare?(patience: StartPatience): Promise<unknown>;
  routes?(http: FastifyInstance): void;
  /** Its pages for people: a file of `packages/core/web/` by its address. */
  assets?: Readonly<Record<string, string>>;
  /** The page for browsers that ask for what is not there. One part has it. */
  lost?: LostPage;
  /** The page for browsers that ask for what costs something. One part has it. */
  payPage?: PayPage;
  /** The page for browsers that ask for the receipt of a payment on a chain. One part has it. */
  receiptPage?: ReceiptPage;
  /** Headers of requests to it, beside those of any request: a browser asks before it sends them. Read for each who asks. */
  readonly requestHeaders?: readonly string[];
  /** Why it cannot sell these services, in a sentence; null: it can. */
  refuses?(services: readonly Service[]): string | null;
  /** How its routes are described, and which are not. */
  operations?: readonly Described[];
  jobs?: readonly Job[];
  /** Goes on with transactions that another process left behind; asked every few seconds. */
  resume?(): Promise<unknown>;
  /** The capabilities that this part provides to services. */
  capabilities?: readonly PartCapability[];
  /** Whether somebody new would get a trial now, as far as is known; a part that gives none does not say. */
  trialsOpen?(): boolean;
  /** The beginnings of the names of services whose price becomes credit: such a sale earns nothing until it is spent. */
  creditServices?: readonly string[];
  /** Its queues, whose depth and age stand at `/metrics`. */
  queues?: readonly WatchedQueue[];
  /** Its metrics, served at `/metrics`. */
  metrics?: Registry;
  /** Lists a page of the money that the operator has to send to somebody, what matters most first; and how much there is. */
  owes?(page: { skip: number; most: number }): Promise<{ owed: readonly Owed[]; total: number }>;
  /** The chains that it takes payments on, and whether it can now. */
  railStandings?(): readonly RailStanding[];
  /** Null while it is ready for calls; else why it is not. */
  notReady?(): Promise<string | null>;
  /** Told when an older database has taken the place of the one that this process knew. */
  rewound?(): void;
  /** Why nothing may be sold and no job may run now, in a sentence; null: nothing is in the way. */
  shut?(): string | null;
  /** What `/health/ready` says beside. @param isFromWithin whether an operator's machine asks */
  readiness?(isFromWithin: boolean): Readonly<Record<string, unknown>> | null;
  /** No new calls come from here on. */
  drain?(): void;
  /** Tells the log what is open when the process is ended by force: nobody else may know of it. */
  leftOpen?(): Readonly<Record<string, unknown>>;
  /** Lets go of what it holds, after the last request: the first of the list before the others. */
  close?(): Promise<unknown>;
}

/** A chain that payments are taken on. */
export interface RailStanding {
  /** CAIP-2. */
  network: string;
  /** Whether somebody could pay there when it was looked at last. */
  offered: boolean;
  /** The fault, and since when; null: nothing. */
  reason: string | null;
  sinceMs: number | null;
}

/** Something that the operator has to send by hand, since no key of the server's can. */
export interface Owed {
  /** A description of it in a few words. */
  what: string;
  /** The address that it is for. */
  to: string;
  /** With its currency, such as `5.000000 USDC`. */
  amount: string;
  /** ISO 8601. */
  since: string;
  /** Why. */
  reason: string;
  /** How it is sent so that the server sees by itself that it was. */
  how: string;
}

/** An ability of the house, for whoever pays. */
export interface PartCapability {
  /** The name by which services require it. */
  name: string;
  /** Whether services that require it are sold. */
  configured: boolean;
  /** The variables that an operator sets to have it. */
  setBy: string;
  /** Why they are not sold now although it is configured; null: they are. */
  unable?(): string | null;
  /** Absent while it is not configured. */
  forPayer?(proof: PayerProof): object;
  /**
   * Does what a captured call of a service that requires it still has to do before its answer may leave. Asked before every
   * answer, so doing it again must change nothing.
   */
  beforeAnswer?(callId: string): Promise<void>;
}
