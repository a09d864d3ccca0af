/**
 * What independent implementations of the Machine Payments Protocol are held to, one test for each behaviour of its
 * conformance suite, and what its drafts say of the wire. https://paymentauth.org
 */
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { after, before, describe, mock, test } from 'node:test';
import { Challenge } from 'mppx';
import { z } from 'zod';
import { defineService, type Service } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { ServiceFailure } from '../../../../packages/core/src/words/failure.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import {
  altered,
  METHODS,
  type Method,
  MPP_SECRET,
  type MppWorld,
  opened,
  receiptOf,
  sealed,
  startMppWorld,
} from '../mpp.fixture.ts';
import { openStorefront, type Storefront } from '../storefront.fixture.ts';
import {
  firstGenerationHeader,
  paymentHeader,
  type SignedPayment,
  signPayment,
  USDC,
} from '../x402.fixture.ts';

const PROBLEMS = 'https://paymentauth.org/problems/';
const PRICE = 50_000n;

let world: MppWorld;
let database: TestDatabase;
let shop: Storefront;
let runs = 0;

const counted = (path: string, secretAnswer?: true): Service =>
  defineService({
    path,
    ...(secretAnswer === undefined ? {} : { secretAnswer }),
    name: path === 'coin' ? 'A "quoted" name, with commas, and \\' : path,
    tag: 'Discovery',
    priceUsd: '0.05',
    mpp: true,
    summary: 'For tests.',
    input: z.object({ name: z.string().default('a') }),
    output: z.object({ name: z.string(), run: z.number().int() }),
    example: { name: 'a' },
    async run({ name }) {
      runs += 1;
      if (name === 'down')
        throw new ServiceFailure({ status: 503, code: 'SOURCE_DOWN', message: 'Down.', retryAfterMs: 7_000 });
      return answer({ name, run: runs }, { method: 'Counted.' });
    },
  });

before(async () => {
  [world, database] = await Promise.all([startMppWorld(), openTestDatabase()]);
  shop = await openStorefront({
    pools: database,
    environment: world.environment,
    services: [counted('nickel'), counted('coin'), counted('secret', true)],
    nowMs: () => Date.now(),
  });
});
after(async () => {
  await shop?.stop();
  await Promise.all([world?.stop(), database?.close()]);
});

interface Asking {
  path?: string;
  body?: string;
  headers?: Record<string, string>;
}
const ask = ({ path = 'nickel', body, headers = {} }: Asking = {}): Promise<Response> =>
  fetch(`${shop.url}/mpp/${path}`, {
    method: 'POST',
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body }),
  });
const present = (authorization: string, asking: Asking = {}): Promise<Response> =>
  ask({ body: '{"name":"a"}', ...asking, headers: { ...asking.headers, authorization } });

/** A credential of a fresh wallet. */
async function credential(method: Method = 'evm', unpaid?: Response): Promise<string> {
  return world.credential(await world.wallet(), method, unpaid ?? (await ask()));
}

interface ProblemBody {
  type: string;
  title: string;
  status: number;
  detail: string;
  hint: string;
  challengeId?: string;
  error: string;
  message: string;
}

/** A 402 as the drafts want it: a fresh challenge for each method, a problem, nothing cached, and no receipt. */
async function assertChallenged(response: Response, problem: string): Promise<ProblemBody> {
  const { status, headers } = response;
  const text = await response.text();
  assert.equal(status, 402, text);
  assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/);
  assert.equal(headers.get('cache-control'), 'no-store');
  assert.equal(headers.get('payment-receipt'), null);
  const challenges = Challenge.fromHeadersList(headers);
  assert.deepEqual(
    challenges.map(({ method, intent }) => [method, intent]),
    METHODS.map((method) => [method, 'charge']),
  );
  const body: ProblemBody = JSON.parse(text);
  assert.deepEqual([body.type, body.status], [PROBLEMS + problem, 402]);
  for (const field of [body.title, body.detail, body.error, body.message]) assert.ok(field.length > 0);
  assert.ok(challenges.some(({ id }) => id === body.challengeId));
  return body;
}

async function spent(work: () => Promise<unknown>): Promise<{ runs: number; units: bigint }> {
  const [runsBefore, ...before] = [runs, await world.received('tempo'), await world.received('evm')] as const;
  await work();
  const after = [await world.received('tempo'), await world.received('evm')] as const;
  return { runs: runs - runsBefore, units: after[0] + after[1] - before[0] - before[1] };
}

describe('the challenge', () => {
  test('has the required parameters, in a form that others can read', async () => {
    const unpaid = await ask({ path: 'coin' });
    const header = unpaid.headers.get('www-authenticate') ?? '';
    for (const name of ['id', 'realm', 'method', 'intent', 'request', 'expires'])
      assert.match(header, new RegExp(`[ ,]${name}="`), name);
    assert.ok(header.length < 8_000);
    const [tempo, evm] = Challenge.fromHeadersList(unpaid.headers);
    assert.ok(tempo !== undefined && evm !== undefined);
    assert.equal(tempo.description, 'A "quoted" name, with commas, and \\');
    assert.equal(tempo.realm, '127.0.0.1');
    assert.deepEqual(tempo.request, {
      amount: '50000',
      currency: world.environment.MPP_TEMPO_CURRENCY,
      methodDetails: { chainId: 4217, supportedModes: ['pull'] },
      recipient: world.tempo.recipient,
    });
    assert.deepEqual(evm.request, {
      amount: '50000',
      currency: USDC,
      methodDetails: { chainId: 8453, credentialTypes: ['authorization'], decimals: 6 },
      recipient: world.base.recipient,
    });
    const lastsMs = Date.parse(tempo.expires ?? '') - Date.now();
    assert.ok(lastsMs > 240_000 && lastsMs <= 300_000, `${lastsMs}`);
  });

  test('carries its request as base64url, without padding, of canonical JSON', async () => {
    const header = (await ask()).headers.get('www-authenticate') ?? '';
    for (const [, request = ''] of header.matchAll(/request="([^"]*)"/g)) {
      assert.match(request, /^[\w-]+$/);
      const text = Buffer.from(request, 'base64url').toString();
      const sorted = (value: unknown): unknown =>
        typeof value === 'object' && value !== null && !Array.isArray(value)
          ? Object.fromEntries(
              Object.entries(value)
                .toSorted(([a], [b]) => (a < b ? -1 : 1))
                .map(([key, each]) => [key, sorted(each)]),
            )
          : value;
      assert.equal(text, JSON.stringify(sorted(JSON.parse(text))));
    }
  });

  test('has an id that is the HMAC of what it says', async () => {
    const header = (await ask()).headers.get('www-authenticate') ?? '';
    const one = header.split(/, (?=Payment )/)[1] ?? '';
    const of = (name: string) => new RegExp(`[ ,]${name}="([^"]*)"`).exec(one)?.[1] ?? '';
    const bound = ['realm', 'method', 'intent', 'request', 'expires', 'digest', 'opaque'].map(of).join('|');
    assert.equal(of('id'), createHmac('sha256', MPP_SECRET).update(bound).digest('base64url'));
  });

  test('is like no other, however many are asked for at once', async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => ask()));
    const ids = answers.flatMap(({ headers }) => Challenge.fromHeadersList(headers).map(({ id }) => id));
    assert.equal(new Set(ids).size, 120);
  });

  test('is answered to every request without a credential, before the body is looked at', async () => {
    const url = `${shop.url}/mpp/nickel`;
    await assertChallenged(await fetch(url), 'payment-required');
    await assertChallenged(await ask({ body: '{"junk' }), 'payment-required');
    await assertChallenged(await ask({ body: '{"name":7}' }), 'payment-required');
    const head = await fetch(url, { method: 'HEAD' });
    assert.equal(head.status, 402);
    assert.equal(Challenge.fromHeadersList(head.headers).length, 2);
  });

  test('carries the offers of x402 beside its own, unless the client names what it can pay by', async () => {
    const unpaid = await ask();
    const required = JSON.parse(
      Buffer.from(unpaid.headers.get('payment-required') ?? '', 'base64').toString(),
    );
    assert.equal(required.resource.url, `${shop.url}/mpp/nickel`);
    assert.deepEqual(
      required.accepts.map(({ network, amount }: Record<string, string>) => [network, amount]),
      [['eip155:8453', '50000']],
    );
    const named = await ask({ headers: { 'accept-payment': 'tempo/charge' } });
    assert.equal(named.headers.get('payment-required'), null);
  });
});

describe('behaviours', () => {
  for (const method of METHODS) {
    test(`success charge with receipt (${method})`, async () => {
      const told = await present(await credential(method));
      const body = await told.text();
      assert.equal(told.status, 200, body + shop.log());
      const receipt = receiptOf(told);
      assert.deepEqual([receipt?.method, receipt?.status], [method, 'success']);
      assert.match(receipt?.reference ?? '', /^0x[0-9a-f]{64}$/);
      assert.ok(Math.abs(Date.parse(receipt?.timestamp ?? '') - Date.now()) < 60_000);
      assert.match(told.headers.get('payment-receipt') ?? '', /^[\w-]+$/);
      assert.equal(JSON.parse(body).name, 'a');
    });
  }

  test('verification error', async () => {
    const payer = await world.wallet(0.01);
    const told = await present(await world.credential(payer, 'tempo', await ask()));
    const body = await assertChallenged(told, 'payment-insufficient');
    assert.doesNotMatch(
      body.detail + body.message + body.hint,
      /revert|eth_|0x/i,
      'the words of a node got out',
    );
    assert.match(body.hint, /Fund the wallet/);
  });

  test('invalid payload', async () => {
    const empty = altered(await credential(), (each) => {
      each.payload = { type: 'authorization' };
    });
    await assertChallenged(await present(empty), 'invalid-payload');
  });

  test('malformed credential', async () => {
    for (const token of ['not*base64', Buffer.from('[]').toString('base64url'), 'bm9uc2Vuc2U'])
      await assertChallenged(await present(`Payment ${token}`), 'malformed-credential');
  });

  test('expired challenge', async () => {
    const authorization = await credential();
    mock.timers.enable({ apis: ['Date'], now: Date.now() + 301_000 });
    try {
      await assertChallenged(await present(authorization), 'payment-expired');
    } finally {
      mock.timers.reset();
    }
  });

  test('missing Authorization, and one of another scheme', async () => {
    await assertChallenged(await ask({ body: '{}' }), 'payment-required');
    await assertChallenged(
      await ask({ body: '{}', headers: { authorization: 'Basic dXNlcjpwYXNz' } }),
      'payment-required',
    );
  });

  test('mismatched request', async () => {
    for (const change of [{ amount: '1' }, { recipient: USDC }, { currency: world.tempo.recipient }]) {
      const other = altered(await credential(), ({ challenge }) => Object.assign(challenge.request, change));
      await assertChallenged(await present(other), 'invalid-challenge');
    }
  });

  test('invalid challenge id', async () => {
    const other = altered(await credential(), ({ challenge }) => {
      challenge.id = 'A'.repeat(43);
    });
    await assertChallenged(await present(other), 'invalid-challenge');
  });

  test('challenge without expires rejected', async () => {
    const other = altered(await credential(), ({ challenge }) => delete challenge.expires);
    await assertChallenged(await present(other), 'invalid-challenge');
  });

  test('POST body preserved on retry', async () => {
    const { fetch: pay } = world.client(await world.wallet(), 'evm');
    const told = await pay(`${shop.url}/mpp/nickel`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"name":"kept"}',
    });
    const body: { name: string } = JSON.parse(await told.text());
    assert.equal(body.name, 'kept');
  });

  test('body digest: what was challenged with a body is paid with that body alone', async () => {
    const unpaid = await ask({ body: '{"name":"bound"}' });
    const authorization = await credential('evm', unpaid);
    const bound: { b: string } = JSON.parse(
      Buffer.from(opened(authorization).challenge.opaque, 'base64url').toString(),
    );
    assert.equal(bound.b, createHash('sha256').update('{"name":"bound"}').digest('base64url'));
    await assertChallenged(await present(authorization, { body: '{"name":"other"}' }), 'invalid-challenge');
    assert.equal((await present(authorization, { body: '{"name":"bound"}' })).status, 200);
  });

  test('cache headers', async () => {
    const unpaid = await ask();
    assert.equal(unpaid.headers.get('cache-control'), 'no-store');
    const told = await present(await credential('evm', unpaid));
    assert.match(told.headers.get('cache-control') ?? '', /private/);
  });

  test('Retry-After, a problem and no receipt on failure; the credential stays good', async () => {
    const authorization = await credential();
    const { units } = await spent(async () => {
      const told = await present(authorization, { body: '{"name":"down"}' });
      assert.deepEqual(
        [told.status, told.headers.get('retry-after'), told.headers.get('payment-receipt')],
        [503, '7', null],
      );
      assert.match(told.headers.get('content-type') ?? '', /^application\/problem\+json/);
      const body: ProblemBody & { charged: boolean } = JSON.parse(await told.text());
      assert.deepEqual([body.status, body.error, body.charged], [503, 'SOURCE_DOWN', false]);
      assert.equal(told.headers.get('www-authenticate'), null);
    });
    assert.equal(units, 0n);
    assert.equal((await present(authorization)).status, 200);
  });

  test('Accept-Payment ordering', async () => {
    const offered = async (accept: string) =>
      Challenge.fromHeadersList((await ask({ headers: { 'accept-payment': accept } })).headers).map(
        ({ method }) => method,
      );
    assert.deepEqual(await offered('evm/charge, tempo/*;q=0.5'), ['evm', 'tempo']);
    assert.deepEqual(await offered('tempo/charge, evm/charge;q=0.1'), ['tempo', 'evm']);
    assert.deepEqual(await offered('evm/charge, tempo/charge;q=0'), ['evm']);
    assert.deepEqual(await offered('stripe/charge'), ['tempo', 'evm'], 'nothing fits: everything is said');
    assert.deepEqual(await offered(';;=,q'), ['tempo', 'evm'], 'not understood: everything is said');
  });

  test('idempotent POST with Idempotency-Key: one side effect', async () => {
    const authorization = await credential();
    const { runs: ran, units } = await spent(async () => {
      const twice = [
        await present(authorization, { headers: { 'idempotency-key': 'one-purchase' } }),
        await present(authorization, { headers: { 'idempotency-key': 'one-purchase' } }),
      ];
      const [first, second] = await Promise.all(twice.map((each) => each.text()));
      assert.deepEqual(
        twice.map(({ status }) => status),
        [200, 200],
      );
      assert.equal(first, second);
    });
    assert.deepEqual([ran, units], [1, PRICE]);
  });

  test('cross-route replay refused', async () => {
    const authorization = await credential();
    const { runs: ran, units } = await spent(async () => {
      await assertChallenged(await present(authorization, { path: 'coin' }), 'invalid-challenge');
    });
    assert.deepEqual([ran, units], [0, 0n]);
    assert.equal((await present(authorization)).status, 200);
    await assertChallenged(await present(authorization, { path: 'coin' }), 'invalid-challenge');
  });

  test('a query string changes nothing: neither the price nor how often a credential buys', async () => {
    const authorization = await credential();
    const { runs: ran, units } = await spent(async () => {
      const first = await (await present(authorization)).text();
      const second = await (await present(authorization, { path: 'nickel?tier=gold' })).text();
      assert.equal(second, first);
    });
    assert.deepEqual([ran, units], [1, PRICE]);
  });

  test('concurrent replay buys once', async () => {
    const authorization = await credential('tempo');
    const { runs: ran, units } = await spent(async () => {
      const answers = await Promise.all(Array.from({ length: 10 }, () => present(authorization)));
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
      assert.equal(new Set(answers.map(({ headers }) => headers.get('payment-receipt'))).size, 1);
    });
    assert.deepEqual([ran, units], [1, PRICE]);
  });

  test('more than one credential is a bad request', async () => {
    const authorization = await credential();
    const told = await present(`${authorization}, ${sealed(opened(authorization))}`);
    assert.equal(told.status, 400);
    assert.equal(told.headers.get('www-authenticate'), null);
  });

  test('the scheme is read whatever its case', async () => {
    const authorization = await credential();
    assert.equal((await present(authorization.replace('Payment', 'pAYMENT'))).status, 200);
  });

  test('/openapi.json discovery: every offer is what the challenge says', async () => {
    const document: {
      paths: Record<
        string,
        { post?: { 'x-payment-info'?: { offers: Record<string, string>[] }; responses: object } }
      >;
    } = JSON.parse(await (await fetch(`${shop.url}/openapi.json`)).text());
    for (const path of ['nickel', 'coin']) {
      const operation = document.paths[`/mpp/${path}`]?.post;
      assert.ok(operation !== undefined && '402' in operation.responses, path);
      const challenges = Challenge.fromHeadersList((await ask({ path })).headers);
      assert.deepEqual(
        operation['x-payment-info']?.offers.map(({ method, intent, amount, currency }) => [
          method,
          intent,
          amount,
          currency?.toLowerCase(),
        ]),
        challenges.map(({ method, intent, request }) => [
          method,
          intent,
          request.amount,
          String(request.currency).toLowerCase(),
        ]),
      );
    }
  });
});

/**
 * The payment of a credential stands on the chain once it has settled; its challenge, whose id is an HMAC, never does. So
 * what it bought goes to whoever shows the challenge too.
 */
describe('a stranger who has read the payment from the chain', () => {
  const body = '{"name":"a"}';
  const at = (door: string, path: string, headers: Record<string, string>, sent = body) =>
    fetch(`${shop.url}/${door}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: sent,
    });
  async function assertRefused(answer: Response, bought: string, expected: [number, string]): Promise<void> {
    const text = await answer.text();
    const { code } = JSON.parse(text);
    assert.deepEqual([answer.status, JSON.parse(text).last_error_reason?.code ?? code], expected);
    assert.notEqual(text, bought);
    assert.ok(!('run' in JSON.parse(text)), text);
  }

  for (const path of ['secret', 'nickel']) {
    for (const method of METHODS) {
      test(`gets nothing of ${path} by ${method}, at either door; the buyer has it again`, async () => {
        const account = await world.wallet();
        const authorization = await world.credential(account, method, await ask({ path }));
        const cost = await spent(async () => {
          const bought = await present(authorization, { path });
          const text = await bought.text();
          assert.equal(bought.status, 200, text);
          assert.equal(await (await present(authorization, { path })).text(), text);

          // A fresh challenge of the thief's own, with the payment as the chain shows it.
          const { challenge } = opened(
            await world.credential(await world.wallet(), method, await ask({ path })),
          );
          const stolen = altered(authorization, (credential) => {
            credential.challenge = challenge;
          });
          await assertRefused(await present(stolen, { path }), text, [402, 'MPP_VERIFICATION_FAILED']);
          // The challenge with which it was bought, as far as the chain tells it: without its HMAC.
          const guessed = altered(authorization, (credential) => {
            credential.challenge.id = challenge.id;
          });
          await assertRefused(await present(guessed, { path }), text, [402, 'MPP_INVALID_CHALLENGE']);
          if (method !== 'evm') return;

          const { from, to, value, validAfter, validBefore, nonce, signature } =
            opened(authorization).payload;
          const asX402: SignedPayment = {
            authorization: { from, to, value, validAfter, validBefore, nonce },
            signature,
          };
          const v1 = { 'x-payment': firstGenerationHeader(asX402) };
          const v2 = { 'x-payment': await paymentHeader(await at('x402', path, {}), asX402) };
          const isSecret = path === 'secret';
          const claimed = JSON.stringify({ name: 'a', claimSecret: 'c'.repeat(32) });
          for (const door of ['mpp', 'x402', 'api/x402']) {
            await assertRefused(
              await at(door, path, v1),
              text,
              isSecret ? [400, 'CLAIM_SECRET_REQUIRED'] : [409, 'IDEMPOTENCY_KEY_REUSED'],
            );
            await assertRefused(await at(door, path, v2), text, [409, 'IDEMPOTENCY_KEY_REUSED']);
            await assertRefused(await at(door, path, v1, claimed), text, [409, 'IDEMPOTENCY_KEY_REUSED']);
          }
        });
        assert.deepEqual(cost, { runs: 1, units: PRICE });
      });
    }
  }

  test('and what x402 bought at /x402 is as safe at /mpp', async () => {
    const signed = await signPayment(await world.wallet(), { to: world.tempo.recipient, valueUnits: PRICE });
    const mine = { 'x-payment': await paymentHeader(await at('x402', 'secret', {}), signed) };
    const bought = await at('x402', 'secret', mine);
    const text = await bought.text();
    assert.equal(bought.status, 200, text);
    const theirs = { 'x-payment': await paymentHeader(await at('mpp', 'secret', {}), signed) };
    await assertRefused(await at('mpp', 'secret', theirs), text, [409, 'IDEMPOTENCY_KEY_REUSED']);
    const v1 = { 'x-payment': firstGenerationHeader(signed) };
    await assertRefused(await at('mpp', 'secret', v1), text, [400, 'CLAIM_SECRET_REQUIRED']);
    assert.equal(await (await at('mpp', 'secret', mine)).text(), text, 'the buyer has it at either door');
  });
});
