/**
 * Card money under fire: a card provider, a post office between it and the house that a test can close, and two replicas
 * on one database that can be killed. One clock for all, which the test moves.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import Stripe from 'stripe';
import { connectPools, type Pools } from '../../../../packages/core/src/db/connection.ts';
import type { Service } from '../../../../packages/core/src/service/define.ts';
import {
  type CardProvider,
  startCardProvider,
} from '../../../../packages/sandbox/src/cards/card-provider.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

const SECRET_KEY = 'sk_test_of_the_card_fire';
const WEBHOOK_SECRET = 'whsec_of_the_card_fire';
const CONNECTIONS = 6;
/** The fields of a card's form beside the number. */
const FORM = { email: 'payer@example.com', expiry: '12/34', cvc: '123' };

/** Something that the provider told of, read from its message. */
export interface Told {
  id: string;
  type: string;
  object: { id: string; object: string; payment_intent?: string | null };
}

export interface Replica {
  server: TestServer;
  /** `kill -9`, as far as one process can: its connections break, nothing of it reaches the database any more. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

export type CardsStage = Awaited<ReturnType<typeof startCardsStage>>;

export async function startCardsStage(options: {
  services: readonly Service[];
  environment?: Record<string, string>;
}) {
  const database: TestDatabase = await openTestDatabase();
  let aheadMs = 0;
  const nowMs = () => Date.now() + aheadMs;
  const startedAtMs = Date.now();
  const told: Told[] = [];
  let isOpen = true;
  let turn = 0;
  const replicas: Replica[] = [];

  /** Signs as the provider does, but by the test's clock: the sandbox signs by the wall's. */
  function signatureOf(body: Buffer | string, atMs = nowMs(), secret = WEBHOOK_SECRET): string {
    const atS = Math.floor(atMs / 1_000);
    return `t=${atS},v1=${createHmac('sha256', secret).update(`${atS}.`).update(body).digest('hex')}`;
  }

  function present(body: Buffer | string, to: TestServer, signature = signatureOf(body)): Promise<Response> {
    return fetch(`${to.url}/api/m2m/credits/webhook`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'stripe-signature': signature },
      body: typeof body === 'string' ? body : new Uint8Array(body),
    });
  }

  const office = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming);
    const event: { id: string; type: string; data: { object: Told['object'] } } = JSON.parse(String(body));
    if (!told.some(({ id }) => id === event.id))
      told.push({ id: event.id, type: event.type, object: event.data.object });
    turn += 1;
    const replica = replicas[turn % replicas.length];
    if (!isOpen || replica === undefined) return outgoing.writeHead(503).end();
    const reply = await present(body, replica.server).catch(() => null);
    outgoing.writeHead(reply?.status ?? 502).end();
  });
  office.listen(0, '127.0.0.1');
  await once(office, 'listening');
  const address = office.address();
  assert(address !== null && typeof address === 'object');
  const provider: CardProvider = await startCardProvider({
    stateDir: null,
    webhooks: [{ url: `http://127.0.0.1:${address.port}/hook`, secret: WEBHOOK_SECRET }],
    secretKey: SECRET_KEY,
  });
  const { hostname, port } = new URL(provider.url);

  /** Opens all connections at once: one that breaks while it opens rejects a promise of the library's that nobody has. */
  async function warmPools(): Promise<Pools> {
    const pools = connectPools(database.url, CONNECTIONS);
    const { sql, commits } = pools;
    await Promise.all([
      commits`select 1`,
      ...Array.from({ length: CONNECTIONS }, () => sql`select pg_sleep(0.05)`),
    ]);
    return pools;
  }

  async function openReplica(): Promise<Replica> {
    let pools = await warmPools();
    const begin = () =>
      startTestServer({
        pools,
        services: options.services,
        nowMs,
        environment: {
          CARD_PROVIDER_URL: provider.url,
          CARD_PROVIDER_KEY: SECRET_KEY,
          CARD_WEBHOOK_SECRET: WEBHOOK_SECRET,
          TRUSTED_PROXIES: 'loopback',
          RECHARGE_MAX_PER_DAY: '20',
          ...options.environment,
        },
      });
    const replica: Replica = {
      server: await begin(),
      async crash() {
        const { app } = replica.server;
        const dead = pools;
        const buried = Promise.allSettled([dead.sql.end({ timeout: 0 }), dead.commits.end({ timeout: 0 })]);
        app.http.server.close();
        app.http.server.closeAllConnections();
        void app.cards?.close();
        await buried;
        pools = await warmPools();
        replica.server = await begin();
      },
      async close() {
        await replica.server.close();
        await Promise.all([pools.sql.end({ timeout: 1 }), pools.commits.end({ timeout: 1 })]);
      },
    };
    return replica;
  }
  replicas.push(await openReplica(), await openReplica());

  let addresses = 0;
  function nextAddress(): string {
    addresses += 1;
    return `10.${addresses >> 8}.${addresses & 255}.1`;
  }

  /** Speaks to the provider's control surface. @returns null when it refused, such as a refund of nothing */
  async function control(method: 'GET' | 'POST' | 'DELETE', path: string, body: object = {}) {
    const reply = await fetch(`${provider.url}/__control${path}`, {
      method,
      ...(method === 'POST' && {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    });
    const text = await reply.text();
    assert(reply.ok || reply.status === 400 || reply.status === 404, `${path}: ${reply.status} ${text}`);
    return reply.ok ? JSON.parse(text) : null;
  }

  return {
    database,
    provider,
    replicas,
    told,
    nowMs,
    present,
    signatureOf,
    control,
    webhookSecret: WEBHOOK_SECRET,
    /** The provider's own library, for what only the provider knows. */
    stripe: new Stripe(SECRET_KEY, {
      host: hostname,
      port,
      protocol: 'http',
      telemetry: false,
      maxNetworkRetries: 2,
    }),

    replica(index: number): Replica {
      const found = replicas[index % replicas.length];
      assert(found !== undefined);
      return found;
    },

    /** Lets the provider's messages through, or refuses them. */
    gate(open: boolean): void {
      isOpen = open;
    },

    /** Lets time pass for everybody. */
    async advance(ms: number): Promise<void> {
      aheadMs += ms;
      await control('POST', '/clock', { advanceSeconds: ms / 1_000 });
    },

    /** POSTs JSON from an address that nobody else has. */
    post(
      to: TestServer,
      path: string,
      body: unknown,
      headers: Record<string, string> = {},
    ): Promise<Response> {
      return fetch(to.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': nextAddress(), ...headers },
        body: JSON.stringify(body),
      });
    },

    /** Presses the button of the provider's page. @returns where the browser is sent */
    async pay(checkoutUrl: string, number: string): Promise<string | null> {
      const reply = await fetch(checkoutUrl, {
        method: 'POST',
        body: new URLSearchParams({ ...FORM, number }),
        redirect: 'manual',
      });
      await reply.body?.cancel();
      return reply.headers.get('location');
    },

    /** Reads the provider's whole list of events: its times are the wall's, and the test's clock is ahead of them. */
    async catchUp({ server }: Replica): Promise<void> {
      await database.sql`
        insert into card_event_cursor (one, read_until) values (true, ${new Date(startedAtMs).toISOString()})
        on conflict (one) do update set read_until = excluded.read_until`;
      await server.app.cards?.inbox.catchUp();
    },

    /** Whether the provider has nothing under way to us, and nothing that it will do by itself. */
    async posted(): Promise<boolean> {
      const { deliveries, appointments } = await control('GET', '');
      return deliveries.pending === 0 && appointments === 0;
    },

    /**
     * The books balance, and card clearing holds exactly what the provider's own account does.
     *
     * @param lostCents what the provider took beyond the payments themselves
     */
    async assertBooks(): Promise<void> {
      const { totals } = await control('GET', '');
      const books = await proveBooks(database.patient);
      for (const { name, finding } of books.checks) assert.equal(finding, null, name);
      const clearing = books.house.find(({ account }) => account === 'card_clearing')?.netMicros ?? 0n;
      assert.equal(-clearing, BigInt(totals.netCents) * 10_000n, 'the provider’s net against card clearing');
    },

    async stop(): Promise<void> {
      isOpen = false;
      await Promise.all(replicas.map((replica) => replica.close()));
      office.closeAllConnections();
      office.close();
      await provider.stop();
      await database.close();
    },
  };
}
