/** Text that no database and no wire can hold is refused at every door, with its path, before money is looked at. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import {
  inputSchemaOf,
  type JsonSchema,
  propertiesOf,
} from '../../../../packages/core/src/service/json-schema.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, paymentHeader, signPayment, startPaymentWorld } from '../x402.fixture.ts';

const services = await loadServices();
const BAD = { NUL: 'a\0b', 'half a pair, high': 'a\ud800b', 'half a pair, low': '\udfff' } as const;
const ADMIN = 'desk:a-token-of-the-desk-for-this-test';

let database: TestDatabase;
let world: PaymentWorld;
let server: TestServer;
let key: string;
before(async () => {
  [database, world] = await Promise.all([openTestDatabase(), startPaymentWorld()]);
  server = await startTestServer({
    pools: database,
    environment: {
      ...world.environment,
      ADMIN_TOKENS: ADMIN,
      MPP_METHODS: 'evm',
      MPP_SECRET_KEY: 'a-key-for-challenges-of-this-test-only',
    },
  });
  key = await server.key('1000');
});
after(async () => {
  await server.close();
  await Promise.all([database.close(), world.stop()]);
});

/** The paths of all texts that an input may hold, `0` for the first entry of a list. */
function textsOf(schema: JsonSchema, path: readonly string[] = []): (readonly string[])[] {
  const branches = [schema, ...[schema.anyOf, schema.oneOf, schema.allOf].flat()].filter(
    (each): each is JsonSchema => typeof each === 'object' && each !== null,
  );
  return branches.flatMap((each) => [
    // A schema that says nothing of its type takes text as well.
    ...(each.type === 'string' || (each.type === undefined && path.length > 0) ? [path] : []),
    ...(typeof each.items === 'object' ? textsOf(each.items as JsonSchema, [...path, '0']) : []),
    ...Object.entries(propertiesOf(each)).flatMap(([name, field]) => textsOf(field, [...path, name])),
    ...(each === schema ? [] : textsOf({ ...each, anyOf: undefined }, path)),
  ]);
}

/** A body with `value` at `path`, and around it what the example says. */
function bodyWith(example: unknown, [name, ...rest]: readonly string[], value: string): unknown {
  if (name === undefined) return value;
  if (/^\d+$/.test(name)) return [bodyWith(Array.isArray(example) ? example[0] : undefined, rest, value)];
  const fields = typeof example === 'object' && example !== null && !Array.isArray(example) ? example : {};
  return { ...fields, [name]: bodyWith((fields as Record<string, unknown>)[name], rest, value) };
}

async function assertRefused(answer: Response, field: string, what: string): Promise<void> {
  const body = await jsonOf(answer);
  assert.deepEqual(
    [answer.status, body.code, body.fields?.[0]?.field, body.charged],
    [400, 'INVALID_REQUEST', field, false],
    `${what}: ${JSON.stringify(body)}`,
  );
}

describe('a service', () => {
  for (const service of services) {
    const paths = new Set(textsOf(inputSchemaOf(service)).map((path) => path.join('.')));
    test(`${service.path}: each of its ${paths.size} texts is refused with its path, uncharged`, async () => {
      const doors = ['x402', 'api/x402', ...(service.mpp ? ['mpp'] : [])];
      // A text that no schema knows is read all the same.
      for (const path of [...paths, 'aFieldOfNobody']) {
        for (const [what, value] of Object.entries(BAD)) {
          const body = JSON.stringify(bodyWith(service.example, path.split('.'), value));
          for (const door of doors) {
            const answer = await fetch(`${server.url}/${door}/${service.path}`, {
              method: 'POST',
              headers: { 'x-api-key': key, 'content-type': 'application/json' },
              body,
            });
            await assertRefused(answer, path, `${door}/${service.path} ${path} ${what}`);
          }
        }
      }
      const { body } = await me();
      assert.deepEqual([body.balanceUsd, body.reservedUsd], ['1000.000000', '0.000000']);
    });
  }

  test('names of fields are text too', async () => {
    const answer = await server.call('ping', key, { 'a\0': 1 });
    await assertRefused(answer, String.raw`a\u0000`, 'a name');
  });

  test('agent-create-wallet takes no payment on a chain for what it could not deliver', async () => {
    const payer = await world.wallet(5);
    const received = await world.received();
    const url = `${server.url}/x402/agent-create-wallet`;
    for (const [name, agentId] of Object.entries(BAD)) {
      for (const body of [
        { agentId },
        { agentId: 'a', agentName: agentId },
        { agentId: 'a', purpose: agentId },
      ]) {
        const challenge = await fetch(url, { method: 'POST', body: '{}' });
        assert.equal(challenge.status, 402);
        const payment = await signPayment(payer, { to: world.recipient, valueUnits: 2_000_000n });
        const answer = await fetch(url, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'payment-signature': await paymentHeader(challenge, payment),
          },
          body: JSON.stringify(body),
        });
        const [field] = Object.entries(body).find(([, text]) => text === agentId) ?? [''];
        await assertRefused(answer, field, name);
      }
    }
    assert.deepEqual([await world.balanceOf(payer.address), await world.received()], [5_000_000n, received]);
    const [calls] = await database.sql`
      select (select count(*)::integer from calls where rail = 'x402') as calls,
             (select count(*)::integer from managed_wallets) as wallets`;
    assert.deepEqual({ ...calls }, { calls: 0, wallets: 0 });
  });
});

describe('every other door that reads text', () => {
  const json = (path: string, body: unknown, init: RequestInit = {}) =>
    fetch(server.url + path, {
      method: 'POST',
      ...init,
      headers: { 'content-type': 'application/json', 'x-api-key': key, ...init.headers },
      body: JSON.stringify(body),
    });
  const asDesk = {
    headers: { authorization: `Bearer ${ADMIN.split(':')[1]}`, 'idempotency-key': 'an-act-of-the-desk' },
  };

  for (const [what, value] of Object.entries(BAD)) {
    test(`${what}: in bodies`, async () => {
      const doors: [string, () => Promise<Response>, field: string][] = [
        ['a label', () => json('/api/keys/me', { label: value }, { method: 'PATCH' }), 'label'],
        ['a demo key', () => json('/api/sdk/demo-key', { installId: value, sdkType: 'x' }), 'installId'],
        [
          'telemetry',
          () =>
            json('/api/sdk/telemetry', {
              installId: 'i',
              sdkType: 's',
              event: 'e',
              environment: { a: [value] },
            }),
          'environment.a.0',
        ],
        [
          'a top-up',
          () => json('/api/m2m/credits/topup', { amountUsd: 5, claimSecret: value }),
          'claimSecret',
        ],
        [
          'the note of an act',
          () => json('/admin/api/accounts/1000/freeze', { reason: `why ${value}` }, asDesk),
          'reason',
        ],
        ['an older address', () => json('/api/gpt/token-info', { symbol: value }), 'symbol'],
      ];
      for (const [name, ask, field] of doors) await assertRefused(await ask(), field, name);
    });
  }

  test('names that read as others are refused: marks that turn text, and lines', async () => {
    for (const mark of ['\u202e', '\u2066', '\u200f', '\u061c', '\u2028', '\u0007']) {
      const name = `paid${mark}liaf`;
      const doors = [
        ['a label', json('/api/keys/me', { label: name }, { method: 'PATCH' }), 'label'],
        ['a wallet', server.call('agent-create-wallet', key, { agentId: name }), 'agentId'],
        ['a note', json('/admin/api/accounts/1000/freeze', { reason: name }, asDesk), 'reason'],
      ] as const;
      for (const [door, asked, field] of doors) {
        const answer = await asked;
        const body = await jsonOf(answer);
        assert.deepEqual(
          [answer.status, body.fields?.[0]?.field ?? undefined],
          [400, field],
          `${door} ${JSON.stringify(body)}`,
        );
      }
    }
    const arabic = await json('/api/keys/me', { label: 'محفظة 👩‍🚀 ключ' }, { method: 'PATCH' });
    assert.equal((await jsonOf(arabic)).label, 'محفظة 👩‍🚀 ключ');
  });

  test('NUL in queries and paths', async () => {
    const get = (path: string) => fetch(server.url + path, { headers: asDesk.headers });
    await assertRefused(await get('/admin/api/keys?q=a%00'), 'q', 'a search');
    await assertRefused(await get('/api/gpt/token-info?symbol=ETH%00'), 'symbol', 'a query');
    await assertRefused(await get('/api/gpt/credits/status?session=%00'), 'session', 'a session');
    await assertRefused(await get('/x402/receipts/%00'), 'address', 'a path');
    // What decodes to no text stays as it was written, and is looked for in vain.
    assert.equal((await get('/admin/api/keys?q=%ED%A0%80')).status, 200);
  });
});

async function me() {
  return { body: await jsonOf(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } })) };
}
