/** Servers of Fastify, Hono and Express 4 and 5 sell routes of their own through this shop, bought with a key. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../database.fixture.ts';
import { accountOf, assertBooksClosed, assertCost, openCalls } from '../../fire/money.fixture.ts';
import { until } from '../../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../../server.fixture.ts';
import { routesOf } from '../own-api.fixture.ts';
import { configOf, GUESTS, type Guest, SECRETS, startGuest } from './guests.fixture.ts';

let database: TestDatabase;
let shop: TestServer;

before(async () => {
  database = await openTestDatabase();
  shop = await startTestServer({
    pools: database,
    services: [],
    routes: () => routesOf(configOf(), { env: SECRETS }),
  });
});
after(async () => {
  await shop?.close();
  await database?.close();
});

for (const name of GUESTS)
  describe(name, () => {
    let guest: Guest;
    let key: string;
    let account: bigint;
    before(async () => {
      guest = await startGuest(name, shop.url);
      key = await shop.key('1');
      account = await accountOf(database.sql, key);
    });
    after(() => guest?.stop());

    const forecast = (body: unknown, headers: Record<string, string> = {}, path = '/v1/forecast') =>
      fetch(guest.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': key, ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      });

    const costing = (micros: bigint, asking: () => Promise<Response>) =>
      assertCost({ sql: database.sql, account }, micros, asking);

    test('without a credential it asks for the price of its route, and no handler runs', async () => {
      const asked = await fetch(`${guest.url}/v1/stations/7?unit=c`);
      const body = await jsonOf(asked);
      assert.deepEqual([asked.status, body.code, body.price_usd], [402, 'PAYMENT_REQUIRED', 0.01]);
      assert.equal(body.accepts[0].resource, `https://${name}.example/${name}/v1/stations/7?unit=c`);
      assert.equal('recipeUrl' in body, false, 'no document of this shop tells of it');
      const unknown = await fetch(`${guest.url}/v1/stations/7`, { headers: { 'x-api-key': 'fbx_live_no' } });
      assert.deepEqual(
        [unknown.status, (await jsonOf(unknown)).last_error_reason.code],
        [402, 'API_KEY_INVALID'],
      );
      assert.equal(guest.seen.length, 0);
    });

    test('a key buys an answer, with its status, type and named headers; the handler sees a digest, and never the key', async () => {
      const bought = await costing(20_000n, () =>
        forecast(
          { place: 'here' },
          { 'x-unit': 'c', 'idempotency-key': `${name}-1`, 'if-none-match': '"a"' },
        ),
      );
      assert.deepEqual([bought.status, await bought.json()], [201, { place: 'here', celsius: 12.5 }]);
      assert.match(bought.headers.get('content-type') ?? '', /^application\/json/);
      const told = ['x-model', 'x-own', 'x-credits-used', 'x-credits-remaining'];
      assert.deepEqual(
        told.map((each) => bought.headers.get(each)),
        ['m1', 'kept', '0.0200', '0.9800'],
      );
      assert.match(bought.headers.get('x-call-id') ?? '', /^[0-9a-f-]{36}$/);
      const seen = guest.seen.at(-1);
      assert.deepEqual(seen?.body, { place: 'here' });
      assert.equal(seen?.headers['x-unit'], 'c');
      for (const gone of ['x-api-key', 'authorization', 'idempotency-key', 'if-none-match'])
        assert.equal(seen?.headers[gone], undefined, gone);
      assert.equal(JSON.stringify(seen).includes(key), false);
      assert.equal(seen?.fare?.callId, bought.headers.get('x-call-id'));
      assert.equal(seen?.fare?.priceUsd, '0.02');
      assert.match(seen?.fare?.caller ?? '', /^[0-9a-f]{64}$/);

      const again = await costing(0n, () =>
        forecast({ place: 'here' }, { 'x-unit': 'c', 'idempotency-key': `${name}-1` }),
      );
      assert.deepEqual([again.status, await again.json()], [201, { place: 'here', celsius: 12.5 }]);
      assert.deepEqual(
        ['idempotent-replayed', 'x-model'].map((each) => again.headers.get(each)),
        ['true', 'm1'],
      );
      assert.equal(guest.seen.length, 1, 'the handler is not asked again');
      const other = await costing(0n, () =>
        forecast({ place: 'there' }, { 'x-unit': 'c', 'idempotency-key': `${name}-1` }),
      );
      assert.equal(other.status, 409);
      const next = await costing(10_000n, () =>
        fetch(`${guest.url}/v1/stations/7`, { headers: { authorization: `Bearer ${key}` } }),
      );
      assert.equal(next.status, 201);
      assert.equal(guest.seen.at(-1)?.fare?.caller, seen?.fare?.caller, 'the same key is the same caller');
    });

    test('an answer that is none costs nothing: its error, its refusal, and one that is too large to keep', async () => {
      for (const [place, status, code] of [
        ['broken', 502, 'UPSTREAM_FAILED'],
        ['missing', 404, 'UPSTREAM_REFUSED'],
        ['far', 502, 'UPSTREAM_FAILED'],
        ['far away', 502, 'UPSTREAM_FAILED'],
        ['nowhere', 502, 'UPSTREAM_FAILED'],
      ] as const) {
        const refused = await costing(0n, () => forecast({ place }));
        const body = await jsonOf(refused);
        assert.deepEqual([refused.status, body.code, body.charged], [status, code, false]);
        assert.equal(refused.headers.get('x-own'), null, 'nothing is left of the answer that was refused');
        if (place === 'missing') assert.deepEqual(body.upstream.body, { lost: 'place' });
      }
    });

    test('the price is decided by the bytes that came, and a body that decides twice is refused', async () => {
      const handled = guest.seen.length;
      const large = await costing(100_000n, () => forecast({ size: 'large' }, {}, '/v1/sized'));
      assert.equal(large.status, 201);
      const twice = await costing(0n, () => forecast('{"size":"small","size":"large"}', {}, '/v1/sized'));
      assert.deepEqual([twice.status, (await jsonOf(twice)).code], [400, 'PRICE_DECIDED_TWICE']);
      assert.equal(guest.seen.length, handled + 1);
    });

    test('HEAD gets the terms and buys nothing', async () => {
      const handled = guest.seen.length;
      const terms = await costing(0n, () =>
        fetch(`${guest.url}/v1/stations/7`, { method: 'HEAD', headers: { 'x-api-key': key } }),
      );
      assert.equal(terms.status, 402);
      assert.equal(guest.seen.length, handled);
    });

    test('two of one order at once are one call and one price', async () => {
      const handled = guest.seen.length;
      const open = Promise.withResolvers<void>();
      guest.hold = open.promise;
      await costing(20_000n, async () => {
        const orders = [0, 1].map(() => forecast({ place: 'order' }, { 'idempotency-key': `${name}-order` }));
        await until('the handler to be asked', () => guest.seen.length > handled);
        open.resolve();
        const [first, second] = await Promise.all(orders);
        assert.ok(first && second);
        assert.deepEqual([first.status, second.status], [201, 201]);
        assert.equal(await first.text(), await second.text());
        const replayed = [first, second].map((each) => each.headers.get('idempotent-replayed'));
        assert.deepEqual(replayed.sort(), [null, 'true'].sort());
        return first;
      });
      assert.equal(guest.seen.length, handled + 1);
    });

    test('a body beyond the bounds of guest or route is refused before anything is bought', async () => {
      for (const bytes of [300_000, 2_000_000]) {
        const refused = await costing(0n, () => forecast({ place: 'x'.repeat(bytes) }));
        assert.deepEqual([refused.status, (await jsonOf(refused)).code], [413, 'BODY_TOO_LARGE']);
      }
    });
  });

test('nothing is open in the end, and the books balance', async () => {
  assert.equal(await openCalls(database.sql), 0);
  await assertBooksClosed(database.patient);
});
