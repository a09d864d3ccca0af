/** Bounds are counted by root buyer: a key that buys the next one with the same money gains no further webhook or device. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { visitorNow } from '../../../../packages/catalogue/src/upstreams/call-scope.ts';
import { rootBuyerOf } from '../../../../packages/core/src/keys/root-buyer.ts';
import { defineService } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { accountOf } from '../fire/money.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

/** Says by whom the places of upstreams are counted for whoever calls it. */
const mirror = defineService({
  path: 'mirror',
  name: 'Mirror',
  tag: 'AI Services',
  priceUsd: '0.01',
  summary: 'Who asks.',
  input: z.object({}),
  output: z.object({ caller: z.string() }),
  example: {},
  run: async () => answer({ caller: visitorNow().caller }, { method: 'Looked.' }),
});
const bought = (await loadServices()).filter(({ path }) => ['instant-api-key', 'ping'].includes(path));
const services = [...bought, mirror];

const TOKEN = 'an-operators-token-of-the-tests';

let database: TestDatabase;
let here: TestServer;
let there: TestServer;
before(async () => {
  database = await openTestDatabase();
  const environment = { DEVICES_PER_ACCOUNT: '3', ADMIN_TOKENS: `desk:${TOKEN}` };
  [here, there] = (await Promise.all(
    [1, 2].map(() => startTestServer({ pools: database, services, environment })),
  )) as [TestServer, TestServer];
});
after(async () => {
  await Promise.all([here?.close(), there?.close()]);
  await database?.close();
});

const ask = (on: TestServer, path: string, key: string, body: object) =>
  fetch(`${on.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: JSON.stringify(body),
  });
const buys = async (key: string): Promise<string> =>
  (await jsonOf(ask(here, '/x402/instant-api-key', key, { name: 'next' }))).apiKey;
const webhook = (on: TestServer, key: string) =>
  ask(on, '/api/webhooks', key, {
    url: 'https://hooks.example.com/',
    events: ['balance.low'],
    lowBalanceUsd: 1,
  });
const device = (on: TestServer, key: string, deviceId: string) =>
  ask(on, '/api/devices', key, { deviceId, public: true, sensors: { temperature: 'celsius' } });
const rootOf = async (key: string) => rootBuyerOf(database.sql, await accountOf(database.sql, key));

/** Keys of which each was bought with the credit of the one before, the first among them. */
async function hops(count: number): Promise<string[]> {
  const keys = [await here.key(String(count))];
  while (keys.length <= count) keys.push(await buys(keys.at(-1) ?? ''));
  return keys;
}

test('an account that bought no key of another is its own root buyer', async () => {
  const key = await here.key('1');
  const name = `account:${await accountOf(database.sql, key)}`;
  assert.deepEqual(await rootOf(key), { name, isShared: true });
});

test('over any number of hops it is one root buyer with one bound, at two replicas at once', async () => {
  const keys = await hops(4);
  const name = `account:${await accountOf(database.sql, keys[0] ?? '')}`;
  for (const key of keys) assert.deepEqual(await rootOf(key), { name, isShared: true });

  const at = (index: number) => (index % 2 === 0 ? here : there);
  const registered = await Promise.all([...keys, ...keys].map((key, index) => webhook(at(index), key)));
  const statuses = registered.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [...Array(5).fill(201), ...Array(5).fill(409)]);
  const refused = registered.find(({ status }) => status === 409) ?? assert.fail('none was refused');
  assert.equal((await jsonOf(refused)).code, 'TOO_MANY_WEBHOOKS');

  const made = await Promise.all(keys.map((key, index) => device(at(index), key, `hop-${index}`)));
  assert.deepEqual(made.map(({ status }) => status).sort(), [201, 201, 201, 409, 409]);

  // Somebody else has their own.
  const other = await here.key('1');
  assert.equal((await webhook(here, other)).status, 201);
  assert.equal((await device(here, other, 'not-a-hop')).status, 201);
});

test('at upstreams keys that were bought with the credit of one are one caller, and other keys are another', async () => {
  const keys = await hops(2);
  const callers = async (of: readonly string[]) =>
    Promise.all(of.map(async (key) => (await jsonOf(ask(here, '/x402/mirror', key, {}))).caller));
  const name = `account:${await accountOf(database.sql, keys[0] ?? '')}`;
  // The key between them has nothing left.
  assert.deepEqual(await callers([keys[0] ?? '', keys[2] ?? '']), [name, name]);
  assert.notEqual((await callers([await here.key('1')]))[0], name);
});

test('where an operator has lifted the bounds each account has its own', async () => {
  const keys = await hops(3);
  const name = `account:${await accountOf(database.sql, keys[0] ?? '')}`;
  for (let n = 0; n < 5; n += 1) assert.equal((await webhook(here, keys[0] ?? '')).status, 201);
  assert.equal((await webhook(here, keys[1] ?? '')).status, 409);
  // By the page of an account that was bought, not of the root buyer.
  const account = await accountOf(database.sql, keys[2] ?? '');
  const lift = (key: string) =>
    fetch(`${here.url}/admin/api/accounts/${account}/lift-bounds`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${TOKEN}`,
        'idempotency-key': key,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ reason: 'sells keys on' }),
    });
  const lifted = await jsonOf(lift('lift-bounds-1'));
  assert.deepEqual([lifted.act.act, lifted.act.accountId], ['lift_bounds', String(account)]);
  assert.equal((await jsonOf(lift('lift-bounds-1'))).repeated, true);
  assert.equal((await jsonOf(lift('lift-bounds-2'))).code, 'BOUNDS_LIFTED');
  const [row] = await database.sql`select 1 from lifted_bounds where root_buyer = ${name}`;
  assert(row !== undefined);
  for (const key of keys) {
    const own = `account:${await accountOf(database.sql, key)}`;
    assert.deepEqual(await rootOf(key), { name: own, isShared: false });
  }
  assert.equal((await webhook(here, keys[0] ?? '')).status, 409);
  for (const key of keys.slice(1))
    for (let n = 0; n < 5; n += 1) assert.equal((await webhook(here, key)).status, 201);
  assert.equal((await webhook(here, keys[1] ?? '')).status, 409);

  // What the bought keys hold counts for them alone, also at the account from which they all come.
  for (let n = 0; n < 3; n += 1) assert.equal((await device(here, keys[1] ?? '', `lifted-${n}`)).status, 201);
  assert.equal((await device(here, keys[1] ?? '', 'lifted-3')).status, 409);
  assert.equal((await device(here, keys[0] ?? '', 'lifted-root')).status, 201);
});
