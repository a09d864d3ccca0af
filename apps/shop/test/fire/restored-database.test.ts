/**
 * The database is restored to a point in time from a base backup and its log. Chains, card provider and customers know what
 * was sold since; the database does not. Nothing is sold until that is found and put right.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import type { Hex } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import {
  FORGOTTEN_SERVICE,
  planRecovery,
  type RecoverParts,
  recover,
} from '../../../../packages/core/src/recovery/recover.ts';
import {
  type CardProvider,
  startCardProvider,
} from '../../../../packages/sandbox/src/cards/card-provider.ts';
import { proveBooks } from '../books.fixture.ts';
import { type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { firstGenerationHeader, signPayment } from '../x402.fixture.ts';
import { type ArchivedDatabase, startArchivedDatabase } from './archived-database.fixture.ts';
import { until } from './until.fixture.ts';

const SOLD = ['ping', 'first-call', 'instant-api-key'];
const services = (await loadServices()).filter(({ path }) => SOLD.includes(path));
const SECRET_KEY = 'sk_test_of_the_restored';
const CARD = { email: 'payer@example.com', number: '4242 4242 4242 4242', expiry: '12/34', cvc: '123' };
const USD = 1_000_000n;

let world: MppWorld;
let cards: CardProvider;
let database: ArchivedDatabase;
let server: TestServer | null = null;
before(async () => {
  [world, cards, database] = await Promise.all([
    startMppWorld(),
    startCardProvider({ stateDir: null, webhooks: [], secretKey: SECRET_KEY }),
    startArchivedDatabase(),
  ]);
});
after(async () => {
  await server?.close();
  await database?.close();
  await Promise.all([world?.stop(), cards?.stop()]);
});

const open = (pools: ArchivedDatabase['pools']) =>
  startTestServer({
    pools,
    services,
    environment: {
      ...world.environment,
      CARD_PROVIDER_URL: cards.url,
      CARD_PROVIDER_KEY: SECRET_KEY,
      CARD_WEBHOOK_SECRET: 'whsec_of_the_restored',
      REFUND_AFTER_MS: '60000',
    },
  });

const posting = (body: unknown, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

/** A person pays on the provider's page. @returns the key, which the agent fetches; null: it topped a key up, or did not look yet */
async function payByCard(at: TestServer, amountUsd: number, onto: string | null, fetches = true) {
  const headers: Record<string, string> = onto === null ? {} : { 'x-api-key': onto };
  const path = '/api/m2m/credits/checkout';
  const session = await jsonOf(fetch(`${at.url}${path}/session`, posting({ amountUsd }, headers)));
  await fetch(session.checkoutUrl, { method: 'POST', body: new URLSearchParams(CARD), redirect: 'manual' });
  const status = `${path}/status/${session.sessionId}?token=${session.retrievalToken}`;
  const told = fetches ? await jsonOf(fetch(at.url + status)) : null;
  return { key: (told?.apiKey ?? null) as string | null, status };
}

const balanceOf = async (at: TestServer, key: string) =>
  Number((await jsonOf(fetch(`${at.url}/api/keys/me`, { headers: { 'x-api-key': key } }))).balanceUsd);

function payingByX402(account: PrivateKeyAccount) {
  const client = new x402Client().register('eip155:8453', new ExactEvmScheme(account));
  return wrapFetchWithPayment(fetch, client);
}

const partsOf = ({ app }: TestServer, pools: ArchivedDatabase['pools']): RecoverParts => ({
  sql: pools.sql,
  sales: app.sales,
  async paidSince(sinceMs) {
    return (await Promise.all([app.x402.paidSince(sinceMs), app.byMpp.mpp?.paidSince(sinceMs) ?? []])).flat();
  },
  cards: app.cards,
  sellsWhatLasts: (micros) => micros === USD,
  nowMs: Date.now,
});

async function assertBooks(pools: ArchivedDatabase['pools']) {
  const books = await proveBooks(pools.patient);
  for (const { name, finding } of books.checks) assert.equal(finding, null, name);
  return books;
}

test('what was sold since is found and put right, once, and only then is anything sold', async () => {
  const first = await open(database.pools);
  server = first;
  const wallet = await world.wallet(10);
  const pay = payingByX402(wallet);
  const before = await payByCard(first, 10, null);
  assert(before.key !== null);
  assert.equal((await first.call('ping', before.key)).status, 200);
  assert.equal((await pay(`${first.url}/x402/ping`, posting({}))).status, 200);
  await database.backUp();
  assert.equal((await first.call('ping', before.key)).status, 200);
  const kept = await balanceOf(first, before.key);
  await database.markPoint();

  // The forgotten time.
  assert.equal((await first.call('ping', before.key)).status, 200);
  const since = await payByCard(first, 25, null);
  assert(since.key !== null);
  await payByCard(first, 5, before.key);
  await payByCard(first, 5, since.key);
  const unfetched = await payByCard(first, 100, null, false);
  const signed = await signPayment(wallet, {
    to: world.base.recipient,
    valueUnits: await priceOf(first, 'ping'),
  });
  const presented = { 'x-payment': firstGenerationHeader(signed) };
  assert.equal((await fetch(`${first.url}/x402/ping`, posting({}, presented))).status, 200);
  const sold = await pay(`${first.url}/x402/instant-api-key`, posting({}));
  assert.equal(sold.status, 200, await sold.clone().text());
  for (const method of ['evm', 'tempo'] as const)
    assert.equal(
      (await world.client(wallet, method).fetch(`${first.url}/mpp/ping`, posting({}))).status,
      200,
    );
  await first.app.settlementFinisher.run();
  await first.close();
  server = null;
  const moved = { evm: await world.received('evm'), tempo: await world.received('tempo') };

  const pools = await database.restore();
  const second = await open(pools);
  server = second;
  await assertBooks(pools);

  // Shut: nothing is sold, no job runs, and people are told why.
  const ready = await fetch(`${second.url}/health/ready`);
  assert.equal(ready.status, 503);
  assert.match(
    (await jsonOf(ready)).message,
    /restored to a point in time.*knows nothing after .*npm run recover/,
  );
  const refused = await second.call('ping', before.key);
  assert.deepEqual([refused.status, (await jsonOf(refused)).code], [503, 'SELLING_SHUT']);
  for (const [path, init] of [
    ['/x402/ping', posting({}, presented)],
    ['/mpp/ping', posting({})],
    ['/mcp', posting({ jsonrpc: '2.0', id: 1, method: 'tools/list' })],
    ['/api/m2m/credits/webhook', posting({})],
    ['/api/m2m/credits/trial', {}],
    ['/api/keys/me', { headers: { 'x-api-key': before.key } }],
  ] as const)
    assert.equal((await fetch(second.url + path, init)).status, 503, path);
  for (const path of ['/', '/openapi.json', '/health/live', '/metrics'])
    assert.equal((await fetch(second.url + path)).status, 200, path);
  let ran = 0;
  for (const { name, run } of second.app.jobs) if (name !== 'watch-recovery') await run().then(() => ran++);
  assert(ran > 20);
  assert.deepEqual([...(await pools.sql`select 1 from card_events`)], [], 'no job has asked anybody');

  // Looking changes nothing.
  const parts = partsOf(second, pools);
  const plan = await planRecovery(parts);
  const shown = (plan?.sales ?? []).map(({ source, amountMicros, becomes }) => [
    source,
    String(amountMicros),
    becomes,
  ]);
  const price = String(priceIn(second));
  assert.deepEqual(
    shown.toSorted(),
    [
      ['card', '100000000', 'granted'],
      ['card', '25000000', 'granted'],
      ['card', '5000000', 'granted'],
      ['card', '5000000', 'refunded'],
      ['eip155:4217', price, 'recorded'],
      ['eip155:8453', '1000000', 'owed'],
      ['eip155:8453', price, 'recorded'],
      ['eip155:8453', price, 'recorded'],
    ].toSorted(),
  );
  assert.deepEqual([...(await pools.sql`select 1 from recovered_sales`)], []);
  assert.deepEqual([...(await pools.sql`select 1 from calls where service = ${FORGOTTEN_SERVICE}`)], []);

  // Stopped between two steps, it goes on when it is run again.
  let steps = 0;
  const { calls } = parts.sales;
  const dying = Object.assign(Object.create(calls), {
    begin: calls.begin,
    keep: calls.keep,
    look: calls.look,
    async finish(call: Parameters<typeof calls.finish>[0]) {
      steps += 1;
      if (steps === 2) throw new Error('killed here');
      return calls.finish(call);
    },
  });
  const killed = { ...parts, sales: { ...parts.sales, calls: dying } };
  await assert.rejects(recover(killed, 'test', { unreadCompared: false }), /killed here/);
  assert.equal((await second.call('ping', before.key)).status, 503, 'it is shut still');
  const done = await recover(parts, 'test', { unreadCompared: false });
  assert.notEqual(done, null);
  assert.equal(
    await recover(parts, 'test', { unreadCompared: false }),
    null,
    'a second time there is nothing',
  );
  await until('the server to see that it is open', async () => {
    await second.app.jobs.find(({ name }) => name === 'watch-recovery')?.run();
    return (await fetch(`${second.url}/health/ready`)).ok;
  });

  // Card money: the keys of then work, with what was paid; what could be given to nobody went back.
  assert.equal(await balanceOf(second, before.key), kept + 5);
  assert.equal(await balanceOf(second, since.key), 25);
  assert.equal((await second.call('ping', since.key)).status, 200);
  const fetched = await jsonOf(fetch(second.url + unfetched.status));
  assert.match(fetched.apiKey, /^fbx_live_/, JSON.stringify(fetched));
  assert.equal(await balanceOf(second, fetched.apiKey), 100);
  const noted = await pools.sql<{ became: string }[]>`select became from recovered_sales order by became`;
  assert.deepEqual(
    noted.map(({ became }) => became),
    ['granted', 'granted', 'granted', 'owed', 'recorded', 'recorded', 'recorded', 'refunded'],
    'what was stopped half way is finished too',
  );
  const sentBack = await pools.sql`
    select 1 from card_orders where amount_micros = 5000000 and reversed_micros = amount_micros`;
  assert.equal(sentBack.length, 1);
  // Of the four calls on chains one is sent back; none buys a second answer.
  const again = await fetch(`${second.url}/x402/ping`, posting({}, presented));
  assert.equal(again.status, 409);
  await second.app.settlementFinisher.run();
  const held = await world.base.balanceOf(wallet.address as Hex);
  await until('what was owed to be sent back', async () => {
    await second.app.settlementFinisher.run();
    return (await pools.sql`select 1 from refunds where state = 1`).length === 1;
  });
  assert.equal((await world.base.balanceOf(wallet.address as Hex)) >= held, true);
  assert.deepEqual(
    { evm: await world.received('evm'), tempo: await world.received('tempo') },
    moved,
    'nothing was paid twice',
  );

  const books = await assertBooks(pools);
  const audits = (
    await Promise.all([second.app.x402.audit(), second.app.byMpp.mpp?.audit(pools.sql) ?? []])
  ).flat();
  for (const { network, findings, unmatched } of audits)
    assert.deepEqual([findings, unmatched ?? []], [[], []], network);
  const { totals } = await jsonOf(fetch(`${cards.url}/__control`));
  const clearing = books.house.find(({ account }) => account === 'card_clearing')?.netMicros ?? 0n;
  assert.equal(-clearing, BigInt(totals.netCents) * 10_000n, 'the provider’s net against card clearing');
});

async function priceOf(at: TestServer, path: string): Promise<bigint> {
  const unpaid = await fetch(`${at.url}/x402/${path}`, posting({}));
  const required = JSON.parse(Buffer.from(unpaid.headers.get('payment-required') ?? '', 'base64').toString());
  return BigInt(
    required.accepts.find((each: { network: string }) => each.network.startsWith('eip155:')).amount,
  );
}

function priceIn(at: TestServer): bigint {
  const [row] = at.app.sales.catalog().filter(({ path }) => path === 'ping');
  assert(row !== undefined);
  return BigInt(Math.round(Number(row.priceUsd) * 1e6));
}
