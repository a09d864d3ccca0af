/**
 * Everything that the card provider stores: its objects, the scheduled acts, and one JSON file that survives a restart.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { refused } from './api-error.ts';
import type * as api from './objects.ts';

export const API_VERSION = '2026-10-28.endive';

const STATE_FILE = 'cards.json';
/** The most objects of one kind; a full sandbox refuses more instead of growing. */
const MAX_OBJECTS = 20_000;
/** The oldest events are dropped, as the real provider does after 30 days. */
const MAX_EVENTS = 5_000;
const MAX_KEPT_ANSWERS = 5_000;
const MAX_APPOINTMENTS = 20_000;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The test card behind a payment method, and what has been done with it. */
export interface Instrument {
  card: string;
  /** The customer has authenticated it for charges in their absence. */
  setUp: boolean;
  /** Charged without a customer, so it cannot be used again. */
  used: boolean;
}

/** What a checkout session keeps for its payment intent. */
export interface Order {
  lines: api.LineItem[];
  futureUsage: 'off_session' | 'on_session' | null;
  paymentMetadata: api.Metadata;
  description: string | null;
  receiptEmail: string | null;
  /** What the page says beside its button. */
  submitText: string | null;
}

/** An authentication that an intent waits for; the nonce is in the page's address, so an older page cannot approve. */
export interface Challenge {
  nonce: string;
  /** Where the person goes after it; null: nowhere, the page says the result. */
  returnUrl: string | null;
  session: string | null;
}

/** One event on its way to one endpoint. */
export interface Delivery {
  id: string;
  event: string;
  endpoint: string;
  attempts: number;
  nextAtMs: number;
  state: 'pending' | 'delivered' | 'failed' | 'dropped';
}

export type DueAct =
  | { kind: 'expire-session'; session: string }
  | { kind: 'dispute'; charge: string; reason: string; inquiry: boolean }
  | { kind: 'early-warning'; charge: string }
  | { kind: 'fail-refund'; refund: string }
  | { kind: 'settle-refund'; refund: string };

interface Appointment {
  id: string;
  atMs: number;
  act: DueAct;
}

/** An answer kept for its idempotency key. */
export interface KeptAnswer {
  endpoint: string;
  paramsDigest: string;
  status: number;
  body: string;
  requestId: string;
  atMs: number;
}

export interface Endpoint {
  id: string;
  url: string;
  secret: string;
  /** Absent: every type. */
  events?: readonly string[];
}

const COLLECTIONS = [
  'customers',
  'paymentMethods',
  'paymentIntents',
  'setupIntents',
  'charges',
  'refunds',
  'disputes',
  'sessions',
  'balanceTransactions',
  'warnings',
  'webhookEndpoints',
  'events',
  'instruments',
  'orders',
  'challenges',
  'secrets',
  'deliveries',
  'appointments',
  'answers',
] as const;

interface Kinds {
  customers: api.Customer;
  paymentMethods: api.PaymentMethod;
  paymentIntents: api.PaymentIntent;
  setupIntents: api.SetupIntent;
  charges: api.Charge;
  refunds: api.Refund;
  disputes: api.Dispute;
  sessions: api.CheckoutSession;
  balanceTransactions: api.BalanceTransaction;
  warnings: api.EarlyFraudWarning;
  webhookEndpoints: api.WebhookEndpoint;
  events: api.ApiEvent;
  instruments: Instrument;
  orders: Order;
  challenges: Challenge;
  secrets: string;
  deliveries: Delivery;
  appointments: Appointment;
  answers: KeptAnswer;
}

export type Collections = { readonly [K in keyof Kinds]: Map<string, Kinds[K]> };

export interface Records extends Collections {
  /** Where this provider is reached; set once it listens. */
  baseUrl: string;
  /** The request that is being worked on, for the events it causes. */
  request: { id: string | null; idempotency_key: string | null };
  /** How far the clock of expiries and appointments is ahead of the wall clock. */
  clockAheadMs: number;
  /** The clock of expiries and appointments; `created` and signatures follow the wall clock. */
  nowMs(): number;
  newId(prefix: string): string;
  /** @throws ApiError 400 when there are too many of the kind */
  insert<
    K extends 'customers' | 'paymentMethods' | 'paymentIntents' | 'setupIntents' | 'charges' | 'refunds',
  >(kind: K, object: Kinds[K] & { id: string }): void;
  insert<K extends 'disputes' | 'sessions' | 'balanceTransactions' | 'warnings' | 'webhookEndpoints'>(
    kind: K,
    object: Kinds[K] & { id: string },
  ): void;
  /** Writes an event down, as things are now, with a delivery to each endpoint that wants its type. */
  emit(type: string, object: unknown, previous?: Record<string, unknown>): void;
  /** Orders an act; it survives a restart. */
  later(delayMs: number, act: DueAct): void;
  /** Takes out the acts that are due. */
  takeDue(): DueAct[];
  keepAnswer(keyDigest: string, answer: KeptAnswer): void;
  endpoints(): Endpoint[];
  /** Resolves once everything up to now is in the file; at once when nothing is kept. */
  save(): Promise<void>;
}

/** Seconds of the wall clock, as `created` says them. */
export function nowS(): number {
  return Math.floor(Date.now() / 1_000);
}

/**
 * Opens the records of `stateDir`, or empty ones that are never written when it is null.
 * @throws Error when the file there cannot be read
 */
export function openRecords(stateDir: string | null, configured: readonly Omit<Endpoint, 'id'>[]): Records {
  const path = stateDir === null ? null : join(stateDir, STATE_FILE);
  if (stateDir !== null) mkdirSync(stateDir, { recursive: true });
  const saved: Record<string, unknown> =
    path !== null && existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
  const collections = Object.fromEntries(
    COLLECTIONS.map((name) => {
      const entries = saved[name];
      return [name, new Map(Array.isArray(entries) ? entries : [])];
    }),
  ) as unknown as Collections;
  const fixed = configured.map((endpoint) => ({
    ...endpoint,
    id: `we_${createHash('sha256').update(endpoint.url).digest('hex').slice(0, 24)}`,
  }));
  let writing: Promise<void> = Promise.resolve();
  let waiting: Promise<void> | null = null;

  /** Replaces the file: after a crash at any point it is the old one or the new one, whole. */
  async function write(file: string): Promise<void> {
    const state = Object.fromEntries(COLLECTIONS.map((name) => [name, [...collections[name]]]));
    const fresh = await open(`${file}.new`, 'w', 0o600);
    try {
      await fresh.writeFile(JSON.stringify({ ...state, clockAheadMs: records.clockAheadMs }));
      await fresh.sync();
    } finally {
      await fresh.close();
    }
    await rename(`${file}.new`, file);
  }

  function trim(map: Map<string, unknown>, maximum: number): void {
    for (const id of map.keys()) {
      if (map.size <= maximum) return;
      map.delete(id);
    }
  }

  const records: Records = {
    ...collections,
    baseUrl: '',
    request: { id: null, idempotency_key: null },
    clockAheadMs: typeof saved.clockAheadMs === 'number' ? saved.clockAheadMs : 0,
    nowMs: () => Date.now() + records.clockAheadMs,
    newId,
    insert(kind: keyof Collections, object: { id: string }) {
      const map: Map<string, unknown> = collections[kind];
      if (map.size >= MAX_OBJECTS) throw refused(`The sandbox is full: ${MAX_OBJECTS} ${kind}. Reset it.`);
      map.set(object.id, object);
    },
    emit(type, object, previous) {
      const event: api.ApiEvent = {
        id: newId('evt_'),
        object: 'event',
        api_version: API_VERSION,
        created: nowS(),
        data: {
          object: structuredClone(object),
          ...(previous !== undefined && { previous_attributes: previous }),
        },
        livemode: false,
        request: { ...records.request },
        type,
      };
      collections.events.set(event.id, event);
      trim(collections.events, MAX_EVENTS);
      for (const endpoint of records.endpoints()) {
        const { events } = endpoint;
        if (events !== undefined && !events.includes('*') && !events.includes(type)) continue;
        const id = newId('dlv_');
        collections.deliveries.set(id, {
          id,
          event: event.id,
          endpoint: endpoint.id,
          attempts: 0,
          nextAtMs: 0,
          state: 'pending',
        });
      }
      trim(collections.deliveries, MAX_EVENTS * 2);
    },
    later(delayMs, act) {
      if (collections.appointments.size >= MAX_APPOINTMENTS) throw refused('The sandbox is full. Reset it.');
      const id = newId('due_');
      collections.appointments.set(id, { id, atMs: records.nowMs() + delayMs, act });
    },
    takeDue() {
      const now = records.nowMs();
      const due = [...collections.appointments.values()]
        .filter(({ atMs }) => atMs <= now)
        .sort((a, b) => a.atMs - b.atMs);
      for (const { id } of due) collections.appointments.delete(id);
      return due.map(({ act }) => act);
    },
    keepAnswer(keyDigest, answer) {
      collections.answers.set(keyDigest, answer);
      trim(collections.answers, MAX_KEPT_ANSWERS);
    },
    endpoints() {
      const made = [...collections.webhookEndpoints.values()].map(({ id, url, enabled_events }) => ({
        id,
        url,
        secret: collections.secrets.get(id) ?? '',
        events: enabled_events,
      }));
      return [...fixed, ...made];
    },
    save() {
      if (path === null) return Promise.resolve();
      // A caller that comes during a write waits for the next write, together with all others.
      waiting ??= writing
        .catch(() => undefined)
        .then(() => {
          waiting = null;
          writing = write(path);
          return writing;
        });
      return waiting;
    },
  };
  return records;
}

/** The prefix and 24 letters and digits; a checkout session has 58, because its address alone opens its page. */
function newId(prefix: string): string {
  const length = prefix === 'cs_test_' ? 58 : 24;
  // 248 is a multiple of 62; larger values would favour some characters.
  let id = '';
  while (id.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 248 && id.length < length) id += ALPHABET.charAt(byte % 62);
    }
  }
  return prefix + id;
}
