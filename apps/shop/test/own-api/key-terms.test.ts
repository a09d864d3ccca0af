/** Free calls of a day, quotas and prices by key, at two servers on one database: each counts once, whoever asks at the same time. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { createKeys } from '../../../../packages/core/src/keys/keys.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf, assertBooksClosed, balanceOf, callsOf } from '../fire/money.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { type OwnApi, routesOf, startOwnApi } from './own-api.fixture.ts';

const PRICE_MICROS = 10_000n;
const USD = 1_000_000n;
const DAY_MS = 86_400_000;
/** The accounts of the plan are opened before the server that reads the plan starts. */
const START_MS = Date.parse('2027-03-01T12:00:10Z');
const services = (await loadServices()).filter(({ path }) => path === 'instant-api-key');

let nowMs = START_MS;
let database: TestDatabase;
let api: OwnApi;
let here: TestServer;
let there: TestServer;
let partner: string;
/** The status that the API answers with, and when it does. */
let status = 200;
let opened = Promise.resolve();

before(async () => {
  [database, api] = await Promise.all([
    openTestDatabase(),
    startOwnApi(async (_, reply) => {
      await opened;
      reply.writeHead(status, { 'content-type': 'application/json' }).end(`{"number":${api.got.length}}`);
    }),
  ]);
  const environment = {
    ACCOUNT_BUCKETS: '4',
    TRUSTED_PROXIES: 'loopback',
    RECONCILE_INTERVAL_SECONDS: '3600',
  };
  const start = (account: bigint | null) =>
    startTestServer({
      pools: database,
      services,
      environment,
      nowMs: () => nowMs,
      routes: () => routesOf(configOf(account), { nowMs: () => nowMs }),
    });
  const first = await start(null);
  partner = await first.key('1');
  await first.close();
  const account = await accountOf(database.sql, partner);
  [here, there] = (await Promise.all([1, 2].map(() => start(account)))) as [TestServer, TestServer];
});
after(async () => {
  await Promise.all([here?.close(), there?.close()]);
  await Promise.all([database?.close(), api?.stop()]);
});

function configOf(account: bigint | null): string {
  const plans = account === null ? '' : `plans: { partner: { price: "0.004", quota: { perDay: 2 } } }`;
  return `
    upstreams:
      api: { url: "${api.url}", prefix: "/", breaker: false }
    ${account === null ? '' : `plans: { partner: { accounts: [${account}] } }`}
    routes:
      "GET /free": { upstream: api, price: "0.01", freeCallsPerDay: 3 }
      "GET /minute": { upstream: api, price: "0.01", quota: { perMinute: 3 } }
      "GET /day": { upstream: api, price: "0.01", quota: { perMinute: 4, perDay: 5 } }
      "GET /planned":
        upstream: api
        price: "0.01"
        quota: { perDay: 1 }
        ${plans}
      "POST /by":
        upstream: api
        priceBy: { field: size, prices: { small: "0.01", large: "0.02" } }
        ${account === null ? '' : 'plans: { partner: { priceBy: { field: size, prices: { small: "0.003" } } } }'}
  `;
}

const get = (on: TestServer, path: string, key: string, headers: Record<string, string> = {}) =>
  fetch(on.url + path, { headers: { 'x-api-key': key, ...headers } });
const at = (index: number) => (index % 2 === 0 ? here : there);
/** Calls at once, at the two servers in turn. @returns what each cost in USD, or the code of its refusal, sorted */
async function costs(path: string, keys: readonly string[]): Promise<string[]> {
  const answers = await Promise.all(keys.map((key, index) => get(at(index), path, key)));
  const told = answers.map(async (answer) =>
    answer.status === 200 ? (answer.headers.get('x-credits-used') ?? '') : codeOf(await answer.json()),
  );
  return (await Promise.all(told)).sort();
}
// biome-ignore lint/suspicious/noExplicitAny: whatever came
const codeOf = (body: any): string => body.last_error_reason?.code ?? body.code;
const times = <T>(count: number, value: T): T[] => Array(count).fill(value);
const balance = async (key: string) => balanceOf(database.sql, await accountOf(database.sql, key));
const buys = async (key: string): Promise<string> =>
  (await jsonOf(here.call('instant-api-key', key, { name: 'next' }))).apiKey;
const trial = async (address: string): Promise<string> =>
  (await jsonOf(fetch(`${here.url}/api/m2m/credits/trial`, { headers: { 'x-forwarded-for': address } })))
    .apiKey;

test('of many calls at once at two servers just so many of a day are free, and the next day as many again', async () => {
  const key = await here.key('1');
  assert.deepEqual(await costs('/free', times(12, key)), [...times(3, '0.0000'), ...times(9, '0.0100')]);
  assert.equal(await balance(key), USD - 9n * PRICE_MICROS);
  // The other address of the same route is the same sale.
  const elsewhere = await here.call('get-free', key);
  assert.equal(elsewhere.headers.get('x-credits-used'), '0.0100');
  nowMs += DAY_MS;
  assert.deepEqual(await costs('/free', times(5, key)), [...times(3, '0.0000'), ...times(2, '0.0100')]);
  const calls = await callsOf(database.sql, await accountOf(database.sql, key));
  assert.equal(calls.filter(({ price_micros, state }) => price_micros === 0n && state === 1).length, 6);
  await assertBooksClosed(database.sql);
});

test('a call that fails, and one whose process ends, gives its free call back; a repeat counts once', async () => {
  const key = await here.key('1');
  const named = { 'idempotency-key': 'free-once' };
  const first = await get(here, '/free', key, named);
  assert.equal(first.headers.get('x-credits-used'), '0.0000');
  for (const on of [there, here]) {
    const again = await get(on, '/free', key, named);
    assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
  }
  status = 500;
  assert.deepEqual(await costs('/free', times(4, key)), times(4, 'UPSTREAM_FAILED'));
  status = 200;
  // Begun, and left open as by a process that is gone.
  const gate = Promise.withResolvers<void>();
  const asked = api.got.length;
  opened = gate.promise;
  const open = get(here, '/free', key);
  await until('the API to be asked', () => api.got.length > asked);
  await database.sql`update calls set expires_at = created_at where state = 0`;
  assert.equal(await there.app.reconciler.run(), 1);
  opened = Promise.resolve();
  gate.resolve();
  assert.equal(codeOf(await jsonOf(open)), 'TOOK_TOO_LONG');
  assert.deepEqual(await costs('/free', times(3, key)), [...times(2, '0.0000'), '0.0100']);
  await assertBooksClosed(database.sql);
});

test('neither an empty balance nor a cap keeps a free call from whoever once paid', async () => {
  const key = await here.key('0.01');
  assert.deepEqual(await costs('/minute', [key]), ['0.0100']);
  assert.equal(await balance(key), 0n);
  assert.deepEqual(await costs('/free', times(5, key)), [
    ...times(3, '0.0000'),
    ...times(2, 'INSUFFICIENT_CREDITS'),
  ]);
  const capped = await here.key('1');
  await database.sql`
    update api_keys set cap_per_call_micros = 5000 where account_id = ${String(await accountOf(database.sql, capped))}`;
  assert.deepEqual(await costs('/free', times(4, capped)), [...times(3, '0.0000'), 'SPEND_CAP_PER_CALL']);
  await database.sql`
    update api_keys set status = 'frozen' where account_id = ${String(await accountOf(database.sql, capped))}`;
  nowMs += DAY_MS;
  assert.deepEqual(await costs('/free', [capped]), ['API_KEY_FROZEN']);
  await database.sql`update api_keys set status = 'active' where status = 'frozen'`;
});

test('a trial has no free calls, nor what was bought with its credit; once money came it has', async () => {
  const key = await trial('8.41.0.1');
  const bought = await buys(key);
  assert.deepEqual(await costs('/free', [key, bought]), times(2, '0.0100'));
  const keys = createKeys(database.sql, () => nowMs);
  const account = await accountOf(database.sql, bought);
  await database.sql.begin((transaction) => keys.becomePaid(transaction, account));
  assert.deepEqual(await costs('/free', [bought]), ['0.0000']);
  assert.deepEqual(await costs('/free', [key]), ['0.0100']);
  const root = await accountOf(database.sql, key);
  await database.sql.begin((transaction) => keys.becomePaid(transaction, root));
  // The one that the bought key had is among the three of its root buyer.
  assert.deepEqual(await costs('/free', times(4, key)), [...times(2, '0.0000'), ...times(2, '0.0100')]);
});

test('keys that were bought with one another’s credit share free calls and quotas, until an operator lifts that', async () => {
  const root = await here.key('4');
  const keys = [root];
  for (let n = 0; n < 3; n += 1) keys.push(await buys(root));
  const all = [...keys, ...keys, ...keys];
  assert.deepEqual(await costs('/free', all), [...times(3, '0.0000'), ...times(9, '0.0100')]);
  assert.deepEqual(await costs('/minute', all), [...times(3, '0.0100'), ...times(9, 'MINUTE_QUOTA_REACHED')]);
  nowMs += DAY_MS;
  const name = `account:${await accountOf(database.sql, root)}`;
  await database.sql`insert into lifted_bounds (root_buyer, lifted_at) values (${name}, now())`;
  assert.deepEqual(await costs('/free', [...keys, ...keys, ...keys]), times(12, '0.0000'));
  await assertBooksClosed(database.sql);
});

test('a quota that is reached is a 429 with the time to wait, before the API is asked and for nothing', async () => {
  const key = await here.key('1');
  nowMs = Math.ceil(nowMs / DAY_MS) * DAY_MS + 12 * 3_600_000 + 10_000;
  const asked = api.got.length;
  assert.deepEqual(await costs('/day', times(6, key)), [
    ...times(4, '0.0100'),
    ...times(2, 'MINUTE_QUOTA_REACHED'),
  ]);
  const refused = await get(here, '/day', key);
  const { code, message, charged, quota } = await jsonOf(refused);
  assert.deepEqual(
    [refused.status, refused.headers.get('retry-after'), code, charged, quota],
    [429, '50', 'MINUTE_QUOTA_REACHED', false, 4],
  );
  assert.match(message, /at most 4 calls .* a minute/);
  nowMs += 60_000;
  assert.deepEqual(await costs('/day', times(2, key)), ['0.0100', 'DAY_QUOTA_REACHED']);
  const ofDay = await get(there, '/day', key);
  assert.equal(ofDay.headers.get('retry-after'), String(12 * 3_600 - 70));
  assert.equal(codeOf(await jsonOf(ofDay)), 'DAY_QUOTA_REACHED');
  assert.equal(api.got.length - asked, 5);
  assert.equal(await balance(key), USD - 5n * PRICE_MICROS);
  nowMs += DAY_MS;
  assert.deepEqual(await costs('/day', [key]), ['0.0100']);
  // A replica whose clock is behind counts into the same minute and day.
  nowMs -= DAY_MS;
  assert.deepEqual(await costs('/day', times(4, key)), [...times(3, '0.0100'), 'MINUTE_QUOTA_REACHED']);
  nowMs += DAY_MS;
});

test('keys of a plan have its price and quota, also after a rotation; without a key the list price is named', async () => {
  assert.deepEqual(await costs('/planned', times(3, partner)), [...times(2, '0.0040'), 'DAY_QUOTA_REACHED']);
  const other = await here.key('1');
  assert.deepEqual(await costs('/planned', times(2, other)), ['0.0100', 'DAY_QUOTA_REACHED']);
  assert.equal(await balance(partner), USD - 8_000n);
  const challenge = await fetch(`${here.url}/planned`);
  assert.deepEqual([challenge.status, (await jsonOf(challenge)).price_usd], [402, 0.01]);

  const by = (key: string, size: string) =>
    fetch(`${here.url}/by`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ size }),
    });
  assert.equal((await by(partner, 'small')).headers.get('x-credits-used'), '0.0030');
  assert.equal((await by(other, 'large')).headers.get('x-credits-used'), '0.0200');
  // A value without a price in the plan is refused as in the list.
  const unpriced = await by(partner, 'large');
  assert.deepEqual([unpriced.status, codeOf(await jsonOf(unpriced))], [400, 'PRICE_UNKNOWN']);
  assert.equal(await balance(partner), USD - 11_000n);
  const rotated = await jsonOf(
    fetch(`${here.url}/api/keys/me/rotate`, { method: 'POST', headers: { 'x-api-key': partner } }),
  );
  assert.equal((await by(rotated.apiKey, 'small')).headers.get('x-credits-used'), '0.0030');
  await assertBooksClosed(database.sql);
});

test('catalog, recipe, OpenAPI, llms.txt and the 402 tell of free calls and quotas', async () => {
  const free = '3 calls a day (UTC) cost a key nothing, if credit on it was ever paid for.';
  const bounds = { freeCallsPerDay: 3, callsPerMinute: null, callsPerDay: null };
  const recipe = await jsonOf(fetch(`${here.url}/x402/recipes/get-free`));
  assert.deepEqual(recipe.route.byKey, bounds);
  const catalog = await jsonOf(fetch(`${here.url}/x402/catalog`));
  const listed = catalog.services.find(({ id }: { id: string }) => id === 'get-free');
  assert.deepEqual(listed.route.byKey, bounds);
  const openapi = await jsonOf(fetch(`${here.url}/openapi.json`));
  assert.ok(openapi.paths['/free'].get.description.endsWith(free));
  assert.ok((await (await fetch(`${here.url}/llms.txt`)).text()).includes(free));
  assert.ok((await jsonOf(fetch(`${here.url}/free`))).message.includes(free));
  const { message } = await jsonOf(fetch(`${here.url}/day`));
  assert.match(message, /A key begins at most 4 a minute and 5 a day \(UTC\)\./);
});

test('what was counted is deleted once its day has passed everywhere', async () => {
  const rows = async () => {
    const [row] = await database.sql<{ free: number; quotas: number }[]>`
      select (select count(*) from free_calls)::integer as free, (select count(*) from call_quotas)::integer as quotas`;
    return row;
  };
  const job = here.app.jobs.find(({ name }) => name === 'forget-free-calls');
  assert(job !== undefined);
  nowMs += 2 * DAY_MS;
  await job.run(new AbortController().signal);
  const key = await here.key('1');
  await costs('/free', [key]);
  await costs('/minute', [key]);
  nowMs += DAY_MS;
  await job.run(new AbortController().signal);
  assert.deepEqual(await rows(), { free: 1, quotas: 1 });
  nowMs += DAY_MS;
  await job.run(new AbortController().signal);
  assert.deepEqual(await rows(), { free: 0, quotas: 0 });
});
