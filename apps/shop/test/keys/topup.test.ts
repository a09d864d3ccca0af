/**
 * Credit bought with USDC: whatever happens on the way, what came to the recipient is what was credited, once, and the
 * key goes to whoever paid.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { address, createSolanaRpc, generateKeyPairSigner } from '@solana/kit';
import { decodePaymentRequiredHeader } from '@x402/core/http';
import { parsePaymentRequired } from '@x402/core/schemas';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { ExactSvmScheme } from '@x402/svm';
import { type Hex, parseAbi } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { createCallStore } from '../../../../packages/core/src/paid-call/inside/calls.ts';
import { SettlementFinisher } from '../../../../packages/core/src/paid-call/inside/finish-settlements.ts';
import { createSettlementStore } from '../../../../packages/core/src/paid-call/inside/settlement-store.ts';
import { PaymentRefused } from '../../../../packages/core/src/paid-call/rail.ts';
import { tokenAccountOf } from '../../../../packages/core/src/rails/x402/solana-programs.ts';
import { TOPUP_BOOKS } from '../../../../packages/core/src/topup/books-rules.ts';
import { USDC_MINT } from '../../../../packages/sandbox/src/solana/programs.ts';
import { proveBooks } from '../books.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { type Blow, type MortalReplica, startMortalReplica } from '../fire/mortal-replica.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import {
  firstGenerationHeader,
  type PaymentWorld,
  paymentHeader,
  readFromCalldata,
  signPayment,
  startPaymentWorld,
} from '../x402.fixture.ts';

const TOPUP = '/api/m2m/credits/topup';
const services = (await loadServices()).filter(({ path }) => path === 'ping');

let world: PaymentWorld;
let database: TestDatabase;
let here: TestServer;
let there: TestServer;
/** Every secret that was used; none may be in a log. */
const secrets: string[] = [];
const logs: string[][] = [];
const nowMs = Date.now;

async function open(environment: Record<string, string> = world.environment): Promise<TestServer> {
  const spread = { ACCOUNT_BUCKETS: '64', ...environment };
  const server = await startTestServer({ pools: database, services, environment: spread, nowMs });
  logs.push(server.log);
  return server;
}

before(async () => {
  [world, database] = await Promise.all([startPaymentWorld({ solana: true }), openTestDatabase()]);
  [here, there] = await Promise.all([open(), open()]);
});
after(async () => {
  await Promise.all([here?.close(), there?.close()]);
  await Promise.all([world?.stop(), database?.close()]);
});

test('an amount that is a text, and a claim that is too short, are told before any payment is asked for', async () => {
  for (const [body, field] of [
    [{ amountUsd: '5' }, 'amountUsd'],
    [{ amount: '5' }, 'amountUsd'],
    [{ amountUsd: 5, claimSecret: 'too-short' }, 'claimSecret'],
    [{ amountUsd: 5, claimSecret: 16 }, 'claimSecret'],
  ] as const) {
    const answer = await ask({ body });
    const refused = await jsonOf(answer);
    assert.deepEqual([answer.status, refused.fields?.[0]?.field], [400, field], JSON.stringify(refused));
  }
  assert.equal((await ask({ body: { amountUsd: 5, claimSecret: 'long-enough-to-be-one' } })).status, 402);
});

interface Asking {
  on?: TestServer;
  path?: string;
  body?: Record<string, unknown>;
  apiKey?: string;
  payment?: string;
  headers?: Record<string, string>;
}

function ask({ on = here, path = TOPUP, body, apiKey, payment, headers }: Asking = {}): Promise<Response> {
  return fetch(on.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
      ...(payment === undefined ? {} : { 'payment-signature': payment }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** The header of a payment for so much credit, as the reference client makes it from the 402. */
async function payFor(
  payer: PrivateKeyAccount,
  amountUsd: number,
  asking: Asking = {},
  terms: { valueUnits?: bigint } = {},
): Promise<string> {
  const challenge = await ask({ body: { amountUsd }, ...asking });
  assert.equal(challenge.status, 402, await challenge.text());
  const valueUnits = BigInt(amountUsd) * 1_000_000n;
  const signed = await signPayment(payer, { to: world.recipient, valueUnits, ...terms });
  const header = await paymentHeader(challenge, signed);
  const { accepted } = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  assert.match(accepted.extra.claimSecret, /^[\w-]{32}$/);
  secrets.push(header, accepted.extra.claimSecret);
  return header;
}

/** What the answer says, and how. */
async function told(answer: Response | Promise<Response>): Promise<{
  text: string;
  apiKey: string | null;
  charged: unknown;
}> {
  const response = await answer;
  const body = await jsonOf(response);
  if (typeof body.apiKey === 'string') secrets.push(body.apiKey);
  const code = body.last_error_reason?.code ?? body.code;
  return {
    text: [response.status, code, response.headers.has('idempotent-replayed') ? 'again' : undefined]
      .filter((part) => part !== undefined)
      .join(' '),
    apiKey: body.apiKey ?? null,
    charged: body.charged,
  };
}

/** In USD; in words when the key is of no use. */
async function balanceOf(apiKey: string, on: TestServer = here): Promise<number | string> {
  const answer = await fetch(`${on.url}/api/keys/me`, { headers: { 'x-api-key': apiKey } });
  const body = await jsonOf(answer);
  return answer.status === 200 ? Number(body.availableUsd) : body.code;
}

async function job(name: string, on: TestServer = here): Promise<void> {
  const found = on.app.jobs.find((each) => each.name === name);
  assert.ok(found, `there is no job ${name}`);
  await found.run();
}

/** Whatever somebody holds or waits for has its time now. */
async function elapse(): Promise<void> {
  await database.sql`update calls set expires_at = now() - interval '1 second' where state = 0`;
  await database.sql`
    update settlements set next_at = now() - interval '1 second', lease_until = now() - interval '1 second'
    where final_at is null`;
}

/** Lets the jobs finish whatever is left. */
async function rest(on: TestServer = here): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    await elapse();
    await job('reconcile-calls', on);
    await job('finish-settlements', on);
    await job('finish-topups', on);
  }
}

/** What came to the recipient and what was credited while something was done, in micro-USD. */
async function moved(work: () => Promise<unknown>): Promise<{ paid: bigint; credited: bigint }> {
  const [paid, credited] = await Promise.all([world.received(), creditedMicros()]);
  await work();
  return { paid: (await world.received()) - paid, credited: (await creditedMicros()) - credited };
}

async function receivedOnSolana(): Promise<bigint> {
  const account = await tokenAccountOf(world.environment.X402_RECIPIENT_SOLANA ?? '', USDC_MINT);
  const { value } = await createSolanaRpc(world.solana?.url ?? '')
    .getTokenAccountBalance(address(account))
    .send();
  return BigInt(value.amount);
}

const NOTHING = { paid: 0n, credited: 0n };
const usd = (amount: number) => ({
  paid: BigInt(amount) * 1_000_000n,
  credited: BigInt(amount) * 1_000_000n,
});

async function creditedMicros(): Promise<bigint> {
  const [row] = await database.sql<{ micros: bigint }[]>`
    select coalesce(sum(amount_micros), 0)::bigint as micros from ledger_transfers where code = 'usdc_topup'`;
  return row?.micros ?? 0n;
}

async function keysOnTheBooks(): Promise<number> {
  const [row] = await database.sql<{ count: number }[]>`select count(*)::integer as count from api_keys`;
  return row?.count ?? 0;
}

describe('unmodified clients', () => {
  const clientOf = (account: PrivateKeyAccount) =>
    wrapFetchWithPayment(
      fetch,
      new x402Client()
        .register('eip155:*', new ExactEvmScheme(account))
        .setSpendControls({ maxAmountPerPayment: '$100' }),
    );
  const buying = (body: unknown, headers: Record<string, string> = {}) => ({
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

  test('a wallet without a key buys one, and calls with it', async () => {
    const pay = clientOf(await world.wallet(20));
    let apiKey = '';
    const bought = await moved(async () => {
      const answer = await pay(here.url + TOPUP, buying({ amount: 10 }));
      const body = await jsonOf(answer);
      assert.equal(answer.status, 200, JSON.stringify(body));
      assert.deepEqual(
        [body.amountUsd, body.creditsAdded, body.tier, body.newKey],
        [10, 10, 'Starter', true],
      );
      assert.match(answer.headers.get('cache-control') ?? '', /private, no-store/);
      apiKey = body.apiKey;
      secrets.push(apiKey);
      assert.equal(body.keyPrefix, apiKey.slice(0, 12));
    });
    assert.deepEqual(bought, usd(10));
    assert.equal(await balanceOf(apiKey), 10);
    const ping = await here.call('ping', apiKey);
    assert.equal(ping.status, 200);
    assert.equal(ping.headers.get('x-payment-method'), 'api-key');
    assert.equal(await balanceOf(apiKey), 9.75);
  });

  test('a wallet of Solana buys a key too', async () => {
    const rpcUrl = world.solana?.url ?? '';
    const wallet = await generateKeyPairSigner();
    const params = [wallet.address, { usdcUnits: 10_000_000 }];
    const funded = await fetch(rpcUrl, buying({ jsonrpc: '2.0', id: 1, method: 'sandbox_fund', params }));
    assert.equal(funded.status, 200);
    const client = new x402Client()
      .register('solana:*', new ExactSvmScheme(wallet, { rpcUrl }))
      .setSpendControls({ maxAmountPerPayment: '$100' });
    const answer = await wrapFetchWithPayment(fetch, client)(here.url + TOPUP, buying({ amountUsd: 10 }));
    const { text, apiKey } = await told(answer);
    assert.equal(text, '200');
    assert.equal(await balanceOf(apiKey ?? ''), 10);
  });

  test('a client that sends its key header tops that key up, at the first try', async () => {
    const pay = clientOf(await world.wallet(100));
    const apiKey = await here.key('0.30');
    secrets.push(apiKey);
    const bought = await moved(async () => {
      const answer = await pay(here.url + TOPUP, buying({ amountUsd: 25 }, { 'x-api-key': apiKey }));
      const body = await jsonOf(answer);
      assert.equal(answer.status, 200, JSON.stringify(body));
      assert.deepEqual([body.newKey, body.apiKey, body.creditsAdded], [false, null, 25]);
      const bearer = await pay(`${here.url}${TOPUP}/5`, buying({}, { authorization: `Bearer ${apiKey}` }));
      assert.equal(bearer.status, 200, await bearer.text());
    });
    assert.deepEqual(bought, usd(30));
    assert.equal(await balanceOf(apiKey), 30.3);
  });
});

describe('the 402', () => {
  test('quotes the tier, the lowest without one, to GET too', async () => {
    for (const [asking, units] of [
      [{}, '5000000'],
      [{ body: { amountUsd: 25 } }, '25000000'],
      [{ path: `${TOPUP}/10` }, '10000000'],
    ] as const) {
      const answer = await ask(asking);
      assert.equal(answer.status, 402);
      const required = decodePaymentRequiredHeader(answer.headers.get('payment-required') ?? '');
      assert.ok(parsePaymentRequired(required).success);
      assert.deepEqual(
        required.accepts.map(({ network, amount }) => [network.split(':')[0], amount]),
        [
          ['eip155', units],
          ['solana', units],
        ],
      );
      assert.ok(!('sign-in-with-x' in (required.extensions ?? {})), 'it offers what it does not do');
      const body = await jsonOf(answer);
      assert.deepEqual(
        [body.accepts[0].maxAmountRequired, body.tiers.length, body.resource.url],
        [units, 4, `http://farebox.test${TOPUP}/${Number(units) / 1e6}`],
      );
    }
    assert.equal((await fetch(here.url + TOPUP)).status, 402);
  });

  test('is a 400 with the tiers for any other amount', async () => {
    for (const asking of [
      { body: { amountUsd: 7 } },
      { body: { amount: '5; drop' } },
      { body: { amountUsd: true } },
      { path: `${TOPUP}/5`, body: { amountUsd: 10 } },
    ]) {
      const answer = await ask(asking);
      const body = await jsonOf(answer);
      assert.deepEqual(
        [answer.status, body.code, body.tiers?.length],
        [400, 'INVALID_AMOUNT', 4],
        JSON.stringify(asking),
      );
    }
  });

  test('is a 503 where no chain is ready', async () => {
    const poor = await open({});
    try {
      assert.equal((await told(ask({ on: poor }))).text, '503 SERVICE_UNAVAILABLE');
    } finally {
      await poor.close();
    }
  });
});

describe('one payment', () => {
  test('20 times at once, on two replicas and after a restart, is one credit and one key', async () => {
    const payer = await world.wallet(20);
    const payment = await payFor(payer, 10);
    const other = await here.key('1');
    const before = await keysOnTheBooks();
    const bought = await moved(async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          const answer = await ask({ body: { amountUsd: 10 }, payment, on: index % 2 === 0 ? here : there });
          return { status: answer.status, body: await answer.text() };
        }),
      );
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
      assert.equal(new Set(answers.map(({ body }) => body)).size, 1, 'they got different answers');
      const { apiKey } = JSON.parse(answers[0]?.body ?? '');
      secrets.push(apiKey);

      await there.close();
      there = await open();
      const again = await ask({ body: { amountUsd: 10 }, payment, on: there });
      assert.equal(again.headers.get('idempotent-replayed'), 'true');
      assert.equal(await again.text(), answers[0]?.body);
      assert.equal(await balanceOf(apiKey, there), 10);

      // For somebody else's key, in whatever spelling, it buys nothing.
      const asked = { body: { amountUsd: 10 }, payment };
      assert.equal((await told(ask({ ...asked, apiKey: other }))).text, '409 IDEMPOTENCY_KEY_REUSED');
      assert.equal(
        (await told(ask({ ...asked, headers: { authorization: `Bearer ${other}` } }))).text,
        '409 IDEMPOTENCY_KEY_REUSED',
      );
      assert.equal(
        (await told(ask({ body: { amountUsd: 25 }, payment }))).text,
        '402 PAYMENT_REQUIREMENTS_MISMATCH',
      );
    });
    assert.deepEqual(bought, usd(10));
    assert.equal((await keysOnTheBooks()) - before, 1);
    assert.equal(await balanceOf(other), 1);
  });

  test('for a key buys nothing for another, nor a new one, and goes on for a key that replaced it', async () => {
    const [mine, other] = [await here.key('1'), await here.key('1')];
    const payment = await payFor(await world.wallet(5), 5);
    const bought = await moved(async () => {
      assert.equal((await told(ask({ payment, apiKey: mine }))).text, '200');
      assert.equal((await told(ask({ payment, apiKey: other }))).text, '409 IDEMPOTENCY_KEY_REUSED');
      assert.equal((await told(ask({ payment }))).text, '409 IDEMPOTENCY_KEY_REUSED');
      const rotated = await jsonOf(
        fetch(`${here.url}/api/keys/me/rotate`, { method: 'POST', headers: { 'x-api-key': mine } }),
      );
      assert.equal((await told(ask({ payment, apiKey: mine }))).text, '401 API_KEY_REVOKED');
      assert.equal((await told(ask({ payment, apiKey: rotated.apiKey }))).text, '200 again');
      assert.equal(await balanceOf(rotated.apiKey), 6);
    });
    assert.deepEqual(bought, usd(5));
    assert.equal(await balanceOf(other), 1);
  });

  test('with an id of the payer is one purchase, and its answer needs the secret of the first', async () => {
    const payer = await world.wallet(20);
    const info = { id: randomBytes(16).toString('hex') };
    const named = async (body: Record<string, unknown>) => {
      const signed = await signPayment(payer, { to: world.recipient, valueUnits: 5_000_000n });
      return paymentHeader(await ask({ body }), signed, { 'payment-identifier': { info } });
    };
    const bought = await moved(async () => {
      const claimSecret = randomBytes(16).toString('hex');
      secrets.push(claimSecret);
      const first = await told(ask({ body: { claimSecret }, payment: await named({}) }));
      assert.equal(first.text, '200');
      const second = await told(ask({ body: { claimSecret }, payment: await named({}) }));
      assert.deepEqual([second.text, second.apiKey], ['200 again', first.apiKey]);
      const without = await told(ask({ payment: await named({}) }));
      assert.deepEqual([without.text, without.apiKey], ['409 IDEMPOTENCY_KEY_REUSED', null]);
    });
    assert.deepEqual(bought, usd(5));
  });
});

test('what stands on the chain for all to see gets nobody the key', async () => {
  const payer = await world.wallet(20);
  const payment = await payFor(payer, 10);
  const answer = await ask({ body: { amountUsd: 10 }, payment });
  const { apiKey } = await jsonOf(answer);
  secrets.push(apiKey);
  const { transaction } = JSON.parse(
    Buffer.from(answer.headers.get('payment-response') ?? '', 'base64').toString('utf8'),
  );

  const { input } = await world.chain.client.getTransaction({ hash: transaction as Hex });
  const stolen = readFromCalldata(input);
  const v1 = firstGenerationHeader(stolen);
  const body = { amountUsd: 10 };
  const claimSecret = 'c'.repeat(32);
  const taken = await moved(async () => {
    const attempts = [
      [{ body, payment: await paymentHeader(await ask({ body }), stolen) }, '409 IDEMPOTENCY_KEY_REUSED'],
      [{ body, payment: v1 }, '400 CLAIM_SECRET_REQUIRED'],
      [{ body: { ...body, claimSecret }, payment: v1 }, '409 IDEMPOTENCY_KEY_REUSED'],
      [{ body, payment: v1, apiKey: await here.key('1') }, '409 IDEMPOTENCY_KEY_REUSED'],
      [{ body: { ...body, creditTo: 'account:1000' }, payment: v1 }, '400 CLAIM_SECRET_REQUIRED'],
      [{ body, payment: transaction }, '402 PAYMENT_HASH_NOT_TAKEN_HERE'],
      [{ body: { ...body, claimSecret }, payment: transaction }, '402 PAYMENT_HASH_NOT_TAKEN_HERE'],
    ] as const;
    for (const [asking, expected] of attempts) {
      const got = await told(ask(asking));
      assert.deepEqual([got.text, got.apiKey], [expected, null]);
    }
  });
  assert.deepEqual(taken, NOTHING);
});

test('a client of the first generation buys with a secret of its own', async () => {
  const payer = await world.wallet(10);
  const signed = await signPayment(payer, { to: world.recipient, valueUnits: 5_000_000n });
  const headers = { 'x-payment': firstGenerationHeader(signed) };
  const claimSecret = randomBytes(16).toString('hex');
  secrets.push(claimSecret);
  const bought = await moved(async () => {
    assert.equal((await told(ask({ headers }))).text, '400 CLAIM_SECRET_REQUIRED');
    assert.equal((await told(ask({ headers, body: { claimSecret: 'short' } }))).text, '400 INVALID_REQUEST');
    const first = await told(ask({ headers, body: { claimSecret } }));
    assert.equal(first.text, '200');
    assert.deepEqual(await told(ask({ headers, body: { claimSecret }, on: there })), {
      ...first,
      text: '200 again',
    });
    assert.equal(await balanceOf(first.apiKey ?? ''), 5);
  });
  assert.deepEqual(bought, usd(5));
});

describe('nothing is charged', () => {
  const REFUSED: readonly [string, () => Promise<Asking>, string][] = [
    [
      'for a key that is not known',
      async () => ({ apiKey: `fbx_live_${'0'.repeat(64)}`, payment: await payFor(await world.wallet(5), 5) }),
      '401 API_KEY_INVALID',
    ],
    [
      'for what is no key at all',
      async () => ({ apiKey: 'junk', payment: await payFor(await world.wallet(5), 5) }),
      '401 API_KEY_INVALID',
    ],
    [
      'for a revoked key',
      async () => {
        const apiKey = await here.key('1');
        await fetch(`${here.url}/api/keys/me`, { method: 'DELETE', headers: { 'x-api-key': apiKey } });
        return { apiKey, payment: await payFor(await world.wallet(5), 5) };
      },
      '401 API_KEY_REVOKED',
    ],
    [
      'for a key that the operator froze',
      async () => {
        const apiKey = await here.key('1');
        const key = await here.app.keys.find(apiKey);
        assert.ok(key);
        await database.sql.begin((transaction) =>
          here.app.keys.freeze(transaction, key.accountId, 'operator', 'test'),
        );
        return { apiKey, payment: await payFor(await world.wallet(5), 5) };
      },
      '403 API_KEY_FROZEN',
    ],
    [
      'from a wallet that does not hold it',
      async () => ({ payment: await payFor(await world.wallet(4.99), 5) }),
      '402 PAYMENT_INSUFFICIENT_FUNDS',
    ],
    [
      'when less was signed',
      async () => ({ payment: await payFor(await world.wallet(5), 5, {}, { valueUnits: 4_999_999n }) }),
      '402 PAYMENT_AMOUNT_MISMATCH',
    ],
    [
      'for a tier other than the paid one',
      async () => ({ body: { amountUsd: 100 }, payment: await payFor(await world.wallet(5), 5) }),
      '402 PAYMENT_REQUIREMENTS_MISMATCH',
    ],
    ['for junk', async () => ({ payment: 'junk' }), '402 PAYMENT_DECODE_FAILED'],
  ];
  for (const [what, asking, expected] of REFUSED) {
    test(what, async () => {
      const asked = await asking();
      assert.deepEqual(
        await moved(async () => {
          assert.equal((await told(ask(asked))).text, expected);
          await rest();
        }),
        NOTHING,
      );
    });
  }

  test('and the wallet that is funded then buys with the same payment', async () => {
    const payer = await world.wallet(1);
    const payment = await payFor(payer, 5);
    const bought = await moved(async () => {
      assert.equal((await told(ask({ payment }))).text, '402 PAYMENT_INSUFFICIENT_FUNDS');
      const rich = await world.wallet(10);
      const hash = await world.chain.client.writeContract({
        account: rich,
        chain: null,
        address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
        abi: parseAbi(['function transfer(address,uint256) returns (bool)']),
        functionName: 'transfer',
        args: [payer.address, 5_000_000n],
      });
      await world.chain.client.waitForTransactionReceipt({ hash, pollingInterval: 10 });
      assert.equal((await told(ask({ payment }))).text, '200');
    });
    assert.deepEqual(bought, usd(5));
  });
});

describe('keys that cannot spend', () => {
  test('what is frozen for a debt may be topped up', async () => {
    const apiKey = await here.key('1');
    const key = await here.app.keys.find(apiKey);
    assert.ok(key);
    const { freeze, thaw } = here.app.keys;
    const { accountId } = key;
    await database.sql.begin((transaction) => freeze(transaction, accountId, 'debt', 'test'));
    const payment = await payFor(await world.wallet(5), 5);
    assert.deepEqual(await moved(() => told(ask({ apiKey, payment }))), usd(5));
    // Nothing is owed here, and the books say so.
    await database.sql.begin((transaction) => thaw(transaction, accountId, 'debt'));
  });

  test('a trial that bought credit does not expire', async () => {
    const open = await startTestServer({
      pools: database,
      services,
      nowMs,
      environment: { ...world.environment, TRIAL_ALLOW_INTERNAL: 'true' },
    });
    try {
      const { apiKey } = await jsonOf(fetch(`${open.url}/api/m2m/credits/trial`));
      const payment = await payFor(await world.wallet(5), 5);
      assert.equal((await told(ask({ apiKey, payment }))).text, '200');
      const { kind, expiresAt } = await jsonOf(
        fetch(`${here.url}/api/keys/me`, { headers: { 'x-api-key': apiKey } }),
      );
      assert.deepEqual([kind, expiresAt], ['paid', null]);
    } finally {
      await open.close();
    }
  });
});

describe('trouble', () => {
  /** What a facilitator does, and what the payer is told until the key is there. */
  const FACILITATOR: readonly [Record<string, unknown>, readonly string[]][] = [
    [{ on: 'settle', fault: 'throw-after-broadcast' }, ['200']],
    [{ on: 'settle', fault: 'drop-after-broadcast' }, ['200']],
    [{ on: 'verify', fault: 'throw-before-broadcast' }, ['503 FACILITATOR_UNAVAILABLE', '200']],
  ];
  for (const [fault, expected] of FACILITATOR) {
    test(`a facilitator: ${JSON.stringify(fault)}`, async () => {
      const payment = await payFor(await world.wallet(5), 5);
      const bought = await moved(async () => {
        await world.faults([fault]);
        const answers = [await told(ask({ payment }))];
        await world.faults([]);
        if (expected.length > 1) {
          assert.equal(answers[0]?.apiKey, null);
          await rest();
          answers.push(await told(ask({ payment })));
        }
        assert.deepEqual(
          answers.map(({ text }) => text),
          expected,
        );
        const last = answers.at(-1);
        assert.equal(await balanceOf(last?.apiKey ?? ''), 5);
        assert.deepEqual(await told(ask({ payment, on: there })), { ...last, text: '200 again' });
      });
      assert.deepEqual(bought, usd(5));
    });
  }

  test('a facilitator that tears the line, lies, answers garbage and is silent: four payers at once wait, and get their keys', async () => {
    const faults = ['drop-before', 'lie', 'garbage', 'never'].map((fault) => ({
      on: 'settle',
      fault,
      ...(fault === 'never' ? { broadcast: false } : {}),
    }));
    const payments = await Promise.all(faults.map(async () => payFor(await world.wallet(5), 5)));
    const bought = await moved(async () => {
      await world.faults(faults);
      for (const { text, apiKey } of await Promise.all(payments.map((payment) => told(ask({ payment })))))
        assert.deepEqual([text, apiKey], ['503 SETTLEMENT_UNKNOWN', null]);
      await world.faults([]);
      await rest();
      for (const payment of payments) {
        const got = await told(ask({ payment }));
        assert.equal(got.text, '200 again');
        assert.equal(await balanceOf(got.apiKey ?? ''), 5);
        assert.deepEqual(await told(ask({ payment, on: there })), got);
      }
    });
    assert.deepEqual(bought, usd(20));
  });

  test('a facilitator that refuses for ever: nothing moves, and no key is made', async () => {
    const before = await keysOnTheBooks();
    const payment = await payFor(await world.wallet(5), 5);
    const bought = await moved(async () => {
      await world.faults([{ on: 'verify', fault: 'refuse', errorReason: 'invalid_payload', times: 3 }]);
      const got = await told(ask({ payment }));
      assert.deepEqual([got.text.slice(0, 3), got.apiKey], ['402', null]);
      await world.faults([]);
      await rest();
    });
    assert.deepEqual(bought, NOTHING);
    assert.equal(await keysOnTheBooks(), before);
  });

  test('the credit cannot be booked: the payer is told so, nobody gets the key, and the job books it once', async () => {
    const payment = await payFor(await world.wallet(5), 5);
    const before = await keysOnTheBooks();
    const bought = await moved(async () => {
      await database.sql.unsafe(`
        create function no_grants() returns trigger language plpgsql as 'begin raise exception ''the disk is full''; end';
        create trigger no_grants before update on topups for each row execute function no_grants()`);
      try {
        for (const expected of ['503 OUTCOME_UNKNOWN', '503 OUTCOME_UNKNOWN']) {
          assert.deepEqual(await told(ask({ payment })), { text: expected, apiKey: null, charged: true });
        }
        await assert.rejects(job('finish-topups'), /the disk is full/);
        assert.equal(await keysOnTheBooks(), before, 'half of a grant is left');
      } finally {
        await database.sql.unsafe('drop trigger no_grants on topups; drop function no_grants');
      }
      await Promise.all([job('finish-topups'), job('finish-topups', there), job('finish-topups')]);
      const got = await told(ask({ payment }));
      assert.equal(got.text, '200 again');
      assert.equal(await balanceOf(got.apiKey ?? ''), 5);
    });
    assert.deepEqual(bought, usd(5));
  });

  describe('the process dies', () => {
    let replica: MortalReplica;
    before(async () => {
      const { environment } = world;
      replica = await startMortalReplica({ databaseUrl: database.url, services, environment, nowMs });
    });
    after(() => replica?.close());

    const DEATHS: readonly [string, Blow, 'job' | 'payer'][] = [
      ['when the answer is kept and nothing is settled', { falls: 'dies after', on: 'anything' }, 'job'],
      ['when the answer is kept and nothing is settled', { falls: 'dies after', on: 'anything' }, 'payer'],
      ['before the answer is kept', { falls: 'dies before', on: 'anything' }, 'job'],
      ['settled and not captured', { falls: 'dies before', on: 'capture' }, 'job'],
      ['settled and not captured', { falls: 'dies before', on: 'capture' }, 'payer'],
      ['captured and not granted', { falls: 'dies after', on: 'capture' }, 'job'],
      ['captured and not granted', { falls: 'dies after', on: 'capture' }, 'payer'],
    ];
    for (const [when, blow, finisher] of DEATHS) {
      test(`${when}; the ${finisher} comes first`, async () => {
        const payment = await payFor(await world.wallet(5), 5);
        const before = await keysOnTheBooks();
        const bought = await moved(async () => {
          const on = await replica.server();
          const deaths = replica.deaths;
          // The claim is made when the facilitator is asked: what comes next is struck.
          if (blow.on === 'anything') await world.faults([{ on: 'verify', fault: 'late', delayMs: 300 }]);
          else replica.strike([blow]);
          const asked = ask({ payment, on }).catch(() => null);
          if (blow.on === 'anything') {
            await until('the facilitator is asked', async () => {
              const { counts } = await jsonOf(fetch(`${world.facilitator.url}/__control`));
              return counts.verify > 0;
            });
            replica.strike([blow]);
          }
          assert.equal(await asked, null, 'it was answered before it died');
          assert.equal(replica.deaths, deaths + 1);
          await world.faults([]);
          assert.equal(await keysOnTheBooks(), before, 'there is a key before there is credit for it');
          if (finisher === 'job') await rest();
          // What the dead one held has its time.
          else await elapse();
          const got = await told(ask({ payment }));
          assert.match(got.text, /^200/, here.log.slice(-4).join('\n'));
          assert.equal(await balanceOf(got.apiKey ?? ''), 5);
          assert.deepEqual(await told(ask({ payment })), { ...got, text: '200 again' });
        });
        assert.deepEqual(bought, usd(5));
        assert.equal((await keysOnTheBooks()) - before, 1);
      });
    }
  });
});

describe('the chain forgets a payment', () => {
  /** Rounds of the reconciler, while the chain says that nothing like it was ever mined and the payment is dead. */
  async function forget(callId: string): Promise<void> {
    let aheadMs = 0;
    const nowMs = () => Date.now() + aheadMs;
    await database.sql`update settlements set next_at = 'infinity' where final_at is null and call_id <> ${callId}`;
    const finisher = new SettlementFinisher({
      calls: createCallStore(database, { nowMs, answerTtlMs: 86_400_000 }),
      settlements: createSettlementStore(database.sql, nowMs),
      ledger: here.app.ledger,
      chainsOf: () => ({
        verify: async () => {},
        balanceOf: async () => 0n,
        look: async () => ({ status: 'unknown' }),
        settle: async () => ({
          status: 'dead',
          refusal: new PaymentRefused('PAYMENT_AUTHORIZATION_USED', 'cancelled', 'sign again'),
        }),
        finality: async () => 'gone',
        canRefund: () => false,
        canEverRefund: () => false,
        refund: async () => null,
      }),
      refundAfterMs: 900_000,
      nowMs,
      report: () => {},
    });
    for (let round = 0; round < 6; round += 1) {
      aheadMs += 70_000;
      await finisher.run();
    }
  }

  for (const { spends, left, takenBack } of [
    { spends: 0, left: 0, takenBack: 5_000_000n },
    { spends: 2, left: 0, takenBack: 4_500_000n },
  ]) {
    test(`after ${spends} calls: what is left is taken back, once, and the rest is our loss`, async () => {
      const payment = await payFor(await world.wallet(5), 5);
      const answer = await ask({ payment });
      const callId = answer.headers.get('x-call-id') ?? '';
      const { apiKey } = await jsonOf(answer);
      secrets.push(apiKey);
      for (let call = 0; call < spends; call += 1)
        assert.equal((await here.call('ping', apiKey)).status, 200);
      await forget(callId);
      await Promise.all([job('finish-topups'), job('finish-topups', there)]);
      await job('finish-topups');
      assert.equal(await balanceOf(apiKey), left);
      const [row] = await database.sql<{ taken_back_micros: bigint; closed: boolean; back: bigint }[]>`
        select t.taken_back_micros, t.closed_at is not null as closed, sum(x.amount_micros)::bigint as back
        from topups t join ledger_transfers x on x.code = 'usdc_topup_lost' and x.note = 'topup ' || t.call_id
        where t.call_id = ${callId} group by 1, 2`;
      assert.deepEqual({ ...row }, { taken_back_micros: takenBack, closed: true, back: takenBack });
      const losses = (await proveBooks(database.patient)).house.find(
        ({ account }) => account === 'settlement_losses',
      );
      assert.ok(losses && losses.netMicros <= 0n);
      // It is over: the same payment gets its answer again, and nothing more.
      assert.deepEqual((await told(ask({ payment }))).text, '200 again');
      assert.equal(await balanceOf(apiKey), left);
    });
  }
});

test('at the end the books balance, what came in is what was credited, and no log tells a secret', async () => {
  await rest();
  const { checks } = await proveBooks(database.patient);
  assert.deepEqual(
    checks.filter(({ ok }) => !ok),
    [],
  );
  for (const { name, sql, say } of TOPUP_BOOKS.rules) {
    const [row] = await database.sql.unsafe(sql.replace("interval '10 minutes'", "interval '-10 years'"));
    assert.equal(row === undefined ? null : say(row), null, name);
  }
  assert.equal(await creditedMicros(), (await world.received()) + (await receivedOnSolana()));
  const [open] = await database.sql<{ ungranted: number; useless: number }[]>`
    select (select count(*)::integer from topups where granted_at is null) as ungranted,
           (select count(*)::integer from api_keys k where kind = 'paid' and not exists (
             select 1 from ledger_transfers t where t.account_id = k.account_id and t.code = 'usdc_topup')) as useless`;
  assert.deepEqual({ ...open }, { ungranted: 0, useless: 0 });
  const log = logs.flat().join('\n');
  assert.ok(log.length > 10_000);
  for (const secret of secrets) assert.ok(!log.includes(secret), 'a secret is in the log');
  const kept = await database.sql<{ body: string }[]>`
    select body from call_answers union all select evidence::text from settlements`;
  for (const { body } of kept)
    for (const secret of secrets) assert.ok(!body.includes(secret), 'a secret is in the database');
});

test('the first account of a wallet lies in the bucket that its key names', async () => {
  const rows = await database.sql<{ bucket: number; named: number }[]>`
    select distinct on (r.root_buyer) a.bucket, t.key_bucket as named from topups t
    join root_buyers r on r.account_id = t.account_id join ledger_accounts a on a.id = t.account_id
    where t.key_lookup is not null order by r.root_buyer, a.id`;
  assert.ok(new Set(rows.map(({ bucket }) => bucket)).size > 1);
  for (const { bucket, named } of rows) assert.equal(bucket, named);
});

test('each rule of the books finds what breaks it', async () => {
  const breakage: readonly [number, string][] = [
    [0, `update topups set granted_at = null, closed_at = null, taken_back_micros = null`],
    [0, `delete from topups`],
    [1, `update topups set amount_micros = amount_micros + 1`],
    [1, `update ledger_transfers set note = 'topup ' || gen_random_uuid() where code = 'usdc_topup'`],
    [2, `update topups set taken_back_micros = 1 where taken_back_micros is null and granted_at is not null`],
    [2, `update settlements set state = 1 where state = 4`],
  ];
  for (const [index, statement] of breakage) {
    const rule = TOPUP_BOOKS.rules[index];
    assert.ok(rule);
    await database.sql
      .begin(async (transaction) => {
        await transaction.unsafe(statement);
        const [row] = await transaction.unsafe(
          rule.sql.replace("interval '10 minutes'", "interval '-10 years'"),
        );
        assert.ok(row, `${rule.name}: ${statement}`);
        throw new Error('undo');
      })
      .catch((error: Error) => assert.equal(error.message, 'undo'));
  }
});
