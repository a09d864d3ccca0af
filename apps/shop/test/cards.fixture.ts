/** The app with the sandbox's card provider: the real client library, real messages over real sockets. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type CardProvider, startCardProvider } from '../../../packages/sandbox/src/cards/card-provider.ts';
import { proveBooks } from './books.fixture.ts';
import { openTestDatabase, type TestDatabase } from './database.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from './server.fixture.ts';

const SECRET_KEY = 'sk_test_of_the_card_tests';
export const WEBHOOK_SECRET = 'whsec_of_the_card_tests';
export const CARD = {
  email: 'payer@example.com',
  number: '4242 4242 4242 4242',
  expiry: '12/34',
  cvc: '123',
};

export type CardWorld = Awaited<ReturnType<typeof startCardWorld>>;

/**
 * A provider, a database and an app. The provider's messages come through a gate that the test may close; jobs run when
 * the test says so.
 */
export async function startCardWorld(
  options: { environment?: Record<string, string>; nowMs?: () => number; database?: TestDatabase } = {},
) {
  const database: TestDatabase = options.database ?? (await openTestDatabase());
  const upstreams = await startUpstreams();
  const delivered: { body: Buffer; signature: string }[] = [];
  let target: TestServer | null = null;

  const gate = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming);
    const signature = String(incoming.headers['stripe-signature']);
    if (target === null) return outgoing.writeHead(503).end();
    delivered.push({ body, signature });
    const reply = await present({ body, signature }).catch(() => null);
    outgoing.writeHead(reply?.status ?? 502).end();
  });
  gate.listen(0, '127.0.0.1');
  await once(gate, 'listening');
  const address = gate.address();
  assert(address !== null && typeof address === 'object');
  const provider: CardProvider = await startCardProvider({
    stateDir: null,
    webhooks: [{ url: `http://127.0.0.1:${address.port}/hook`, secret: WEBHOOK_SECRET }],
    secretKey: SECRET_KEY,
  });
  const environment = {
    CARD_PROVIDER_URL: provider.url,
    CARD_PROVIDER_KEY: SECRET_KEY,
    CARD_WEBHOOK_SECRET: WEBHOOK_SECRET,
    TRUSTED_PROXIES: 'loopback',
    ...options.environment,
  };
  const open = () =>
    startTestServer({
      pools: database,
      environment,
      upstreamsUrl: upstreams.url,
      ...(options.nowMs === undefined ? {} : { nowMs: options.nowMs }),
    });
  const server = await open();
  target = server;

  let addresses = 0;
  function nextAddress(): string {
    addresses += 1;
    return `10.${addresses >> 8}.${addresses & 255}.1`;
  }

  /** Sends a message to the app as the provider did. */
  function present(message: { body: Buffer; signature: string }, to = server): Promise<Response> {
    return fetch(`${to.url}/api/m2m/credits/webhook`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'stripe-signature': message.signature },
      body: new Uint8Array(message.body),
    });
  }

  return {
    database,
    upstreams,
    provider,
    server,
    environment,
    /** Messages that came through the gate, oldest first. */
    delivered,
    present,
    /** Another replica on the same database. */
    open,

    /** Lets the provider's messages through to the app, or not: they are refused then, and sent again later. */
    gate(isOpen: boolean): void {
      target = isOpen ? server : null;
    },

    /** POSTs JSON, from an address that nobody else has unless the headers name one. */
    post(path: string, body: unknown, headers: Record<string, string> = {}, to = server): Promise<Response> {
      return fetch(to.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': nextAddress(), ...headers },
        body: JSON.stringify(body),
      });
    },

    /** Presses the button of the provider's page, as a browser would. */
    pay(checkoutUrl: string, card: Partial<typeof CARD> = {}): Promise<Response> {
      return fetch(checkoutUrl, {
        method: 'POST',
        body: new URLSearchParams({ ...CARD, ...card }),
        redirect: 'manual',
      });
    },

    /** Speaks to the provider's control surface. */
    async control(method: 'GET' | 'POST' | 'DELETE', path: string, body: object = {}) {
      const reply = await fetch(`${provider.url}/__control${path}`, {
        method,
        ...(method === 'POST' && {
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }),
      });
      const text = await reply.text();
      assert(reply.ok, `${path}: ${reply.status} ${text}`);
      return JSON.parse(text);
    },

    /** Reads what the key's owner sees. */
    me(key: string, to = server) {
      return jsonOf(fetch(`${to.url}/api/keys/me`, { headers: { 'x-api-key': key } }));
    },

    /** Works what waits, as the jobs would. */
    async settle(to = server): Promise<void> {
      assert(to.app.cards !== null);
      await to.app.cards.inbox.work();
      await to.app.cards.sweep();
      await to.app.walks.run();
      await to.app.debts.sweep(100);
    },

    /** The books balance, and card clearing holds exactly what the provider's own account does. */
    async assertBooks(): Promise<void> {
      const { totals } = await this.control('GET', '');
      const books = await proveBooks(database.patient);
      for (const { name, finding } of books.checks) assert.equal(finding, null, name);
      const clearing = books.house.find(({ account }) => account === 'card_clearing')?.netMicros ?? 0n;
      assert.equal(-clearing, BigInt(totals.netCents) * 10_000n, 'the provider’s net against card clearing');
    },

    async stop(): Promise<void> {
      target = null;
      gate.closeAllConnections();
      gate.close();
      await server.close();
      await provider.stop();
      await upstreams.stop();
      await database.close();
    },
  };
}
