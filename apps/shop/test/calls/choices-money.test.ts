/** Tests that a refusal with a list to choose from costs nothing by any means of payment, and its payment buys what is chosen. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { defineService } from '../../../../packages/catalogue/src/services/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { noAnswer } from '../../../../packages/core/src/words/failure.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { METHODS, type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { jsonOf } from '../server.fixture.ts';
import { openStorefront, type Storefront } from '../storefront.fixture.ts';
import { paymentHeader, signPayment } from '../x402.fixture.ts';

type Json = Record<string, unknown>;

const PATH = 'pick-one';
const CHOICES = [{ field: 'thing', value: 'apple', about: 'A fruit' }];
const known = new Set(['apple']);
const pickOne = defineService({
  path: PATH,
  name: 'Pick One',
  tag: 'Discovery',
  priceUsd: '0.10',
  mpp: true,
  summary: 'Tells of a thing.',
  input: z.object({ thing: z.string().max(20).describe('What is told of') }),
  output: z.object({ about: z.literal('A fruit').describe('What it is') }),
  example: { thing: 'apple' },
  choices: CHOICES,
  async run({ thing }) {
    if (!known.has(thing)) throw noAnswer('NO_SUCH_THING', 'There is no such thing.', 'thing', CHOICES);
    return answer({ about: 'A fruit' as const }, { method: 'It is known.' });
  },
});
/** Bodies that are refused, by what the service takes and by the service itself. */
const CALLS = {
  'what does not fit': { refused: {}, status: 400 },
  'what has no answer': { refused: { thing: 'pear' }, status: 422 },
} as const;
const right = { thing: 'apple' };

let database: TestDatabase;
let world: MppWorld;
let server: Storefront;
before(async () => {
  [database, world] = await Promise.all([openTestDatabase(), startMppWorld()]);
  server = await openStorefront({ pools: database, services: [pickOne], environment: world.environment });
});
after(async () => {
  await server?.stop();
  await Promise.all([database?.close(), world?.stop()]);
});

const post = (body: Json, headers: Record<string, string> = {}, door = 'x402') =>
  fetch(`${server.url}/${door}/${PATH}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

const byMpp = (body: Json, headers: Record<string, string> = {}) => post(body, headers, 'mpp');

async function assertRefused(response: Response, status: number): Promise<void> {
  const body = await jsonOf(response);
  const { charged, choices } = body as { charged: unknown; choices: Json[] };
  assert.equal(response.status, status, JSON.stringify(body));
  assert.equal(charged, false);
  assert.ok(choices.length > 0);
  assert.equal(response.headers.get('payment-response'), null);
  assert.equal(response.headers.get('payment-receipt'), null);
}

for (const [what, { refused, status }] of Object.entries(CALLS)) {
  test(`${what}, with credits`, async () => {
    const key = await server.key('1');
    const balance = async () =>
      (await jsonOf(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } }))).balanceUsd;
    const headers = { 'x-api-key': key, 'idempotency-key': 'one' };
    const before = await balance();
    await assertRefused(await post(refused, headers), status);
    assert.equal(await balance(), before);
    assert.equal((await post(right, headers)).status, 200, 'the name of the call is free too');
    assert.notEqual(await balance(), before);
  });

  test(`${what}, by x402`, async () => {
    const account = await world.base.wallet(5);
    const unpaid = await post(right);
    const { amount } = JSON.parse(
      Buffer.from(unpaid.headers.get('payment-required') ?? '', 'base64').toString(),
    ).accepts[0];
    const signed = await signPayment(account, { to: world.base.recipient, valueUnits: BigInt(amount) });
    const headers = { 'payment-signature': await paymentHeader(unpaid, signed) };
    const before = await world.base.balanceOf(account.address);
    await assertRefused(await post(refused, headers), status);
    assert.equal(await world.base.balanceOf(account.address), before);
    const bought = await post(right, headers);
    assert.equal(bought.status, 200, await bought.text());
    assert.ok((await world.base.balanceOf(account.address)) < before);
  });

  for (const method of METHODS)
    test(`${what}, by MPP (${method})`, async () => {
      const account = await world.wallet();
      // A credential is for one body: it buys that, as soon as that can be answered.
      const body = status === 422 ? refused : right;
      const authorization = await world.credential(account, method, await byMpp(body));
      const before = await world.holds(account.address, method);
      await assertRefused(await byMpp(refused, { authorization }), status);
      assert.equal(await world.holds(account.address, method), before);
      known.add('pear');
      const bought = await byMpp(body, { authorization });
      known.delete('pear');
      assert.equal(bought.status, 200, await bought.text());
      assert.ok((await world.holds(account.address, method)) < before);
    });
}
