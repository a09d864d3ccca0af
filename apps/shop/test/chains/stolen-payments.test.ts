/**
 * A signed payment stands in the calldata of its settlement, where everybody can copy it. What holds a secret is handed to
 * whoever bought it all the same, and to nobody else: not while the payment waits to be mined, not after, not by another
 * replica, not after a restart.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithSIWx } from '@x402/extensions/sign-in-with-x';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { encodeFunctionData, type Hex, parseAbi, parseSignature } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { until } from '../fire/until.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';
import { openStorefront, type SeenRequest, type Storefront } from '../storefront.fixture.ts';
import {
  firstGenerationHeader,
  type PaymentWorld,
  paymentHeader,
  readFromCalldata,
  type SignedPayment,
  signPayment,
  startPaymentWorld,
  USDC,
} from '../x402.fixture.ts';

interface Sold {
  path: string;
  body: Record<string, unknown>;
  priceUnits: bigint;
  secretIn: string;
}
const SOLD: readonly Sold[] = [
  { path: 'instant-agent-wallet', body: { chain: 'base' }, priceUnits: 1_000_000n, secretIn: 'privateKey' },
  { path: 'agent-create-wallet', body: { agentId: 'a' }, priceUnits: 2_000_000n, secretIn: 'walletSecret' },
];
const PING: Sold = { path: 'ping', body: {}, priceUnits: 250_000n, secretIn: 'timestamp' };
const services = (await loadServices()).filter(({ path }) =>
  [PING, ...SOLD].some((sold) => sold.path === path),
);

let world: PaymentWorld;
let database: TestDatabase;
/** Settles with keys of its own, so that what waits to be mined is ours. Its clients come by the storefront. */
let shop: Storefront;
let there: TestServer;

before(async () => {
  [world, database] = await Promise.all([startPaymentWorld(), openTestDatabase()]);
  shop = await openStorefront({ pools: database, services, environment: world.ownSettler });
  there = await replica();
});
after(async () => {
  await Promise.all([shop?.stop(), there?.close()]);
  await Promise.all([world?.stop(), database?.close()]);
});

const replica = (environment: Record<string, string> = world.ownSettler) =>
  startTestServer({ pools: database, services, environment: { ...environment, PUBLIC_URL: shop.url } });

const asJson = (body: unknown, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

function buyerOf(account: PrivateKeyAccount): typeof fetch {
  const client = new x402Client()
    .register('eip155:*', new ExactEvmScheme(account))
    .setSpendControls({ maxAmountPerPayment: '$10' });
  return wrapFetchWithPayment(fetch, client) as typeof fetch;
}

interface Told {
  text: string;
  secret: unknown;
  body: string;
}

async function told(answer: Response | Promise<Response>, { secretIn }: Sold): Promise<Told> {
  const response = await answer;
  const body = await response.text();
  const json = JSON.parse(body);
  const code = json.last_error_reason?.code ?? (response.status === 200 ? undefined : json.code);
  const again = response.headers.has('idempotent-replayed') ? 'again' : undefined;
  return {
    text: [response.status, code, again].filter((part) => part !== undefined).join(' '),
    secret: json[secretIn],
    body,
  };
}

async function received(work: () => Promise<unknown>): Promise<bigint> {
  const before = await world.received();
  await work();
  return (await world.received()) - before;
}

/** The claims that buyers used. */
const claims: string[] = [];

/** What was presented last, its claim, and its nonce. */
function presentedLast(): { seen: SeenRequest; claim: string; nonce: string } {
  const seen = shop.payments.at(-1);
  assert.ok(seen);
  const { accepted, payload } = JSON.parse(
    Buffer.from(seen.headers['payment-signature'] ?? '', 'base64').toString(),
  );
  const claim = accepted.extra.claimSecret;
  assert.match(claim, /^[\w-]{32}$/);
  claims.push(claim);
  return { seen, claim, nonce: payload.authorization.nonce };
}

function newClaim(): string {
  const claim = randomBytes(16).toString('hex');
  claims.push(claim);
  return claim;
}

async function settlementOf(answer: Response): Promise<{ transaction: Hex; stolen: SignedPayment }> {
  const transaction = answer.headers.get('x-payment-transaction') as Hex;
  const { input } = await world.chain.client.getTransaction({ hash: transaction });
  return { transaction, stolen: readFromCalldata(input) };
}

/** A payment of version 2, as far as it is altered here. */
interface Signed {
  accepted: { amount: string; extra: { claimSecret?: string } };
  extensions: unknown;
}

/** Everything that a stranger can make of what the chain shows, with what each is told. */
async function attempts(
  sold: Sold,
  stolen: SignedPayment,
  transaction: Hex | null,
  on: string,
): Promise<readonly (readonly [string, Promise<Told>, string])[]> {
  const { path, body } = sold;
  const url = `${on}/x402/${path}`;
  const challenge = () => fetch(url, asJson(body));
  const v1 = firstGenerationHeader(stolen);
  const fresh = await paymentHeader(await challenge(), stolen);
  const altered = (change: (payment: Signed) => void) => {
    const payment: Signed = JSON.parse(Buffer.from(fresh, 'base64').toString());
    change(payment);
    return { 'payment-signature': Buffer.from(JSON.stringify(payment)).toString('base64') };
  };
  const claimless = altered(({ accepted }) => {
    delete accepted.extra.claimSecret;
  });
  const otherTerms = altered(({ accepted }) => {
    accepted.amount = '7';
  });
  const named = altered((payment) => {
    payment.extensions = { 'payment-identifier': { info: { id: randomBytes(16).toString('hex') } } };
  });
  const guess = { ...body, claimSecret: 'c'.repeat(32) };
  const post = (headers: Record<string, string>, sent: unknown = body, at = url) =>
    told(fetch(at, asJson(sent, headers)), sold);
  const hashes: [string, Promise<Told>, string][] =
    transaction === null
      ? []
      : [
          ['its hash', post({ 'x-payment': transaction }), '402 PAYMENT_HASH_NOT_TAKEN_HERE'],
          [
            'its hash and a claim',
            post({ 'x-payment': transaction }, guess),
            '402 PAYMENT_HASH_NOT_TAKEN_HERE',
          ],
          [
            'its hash as JSON',
            post({ 'x-payment': JSON.stringify({ txHash: transaction, network: 'base' }) }),
            '402 PAYMENT_HASH_NOT_TAKEN_HERE',
          ],
        ];
  return [
    ['version 1', post({ 'x-payment': v1 }), '400 CLAIM_SECRET_REQUIRED'],
    ['version 1 in the other header', post({ 'payment-signature': v1 }), '400 CLAIM_SECRET_REQUIRED'],
    ['version 1, guessing', post({ 'x-payment': v1 }, guess), '409 IDEMPOTENCY_KEY_REUSED'],
    [
      'version 1, no claim',
      post({ 'x-payment': v1 }, { ...body, claimSecret: null }),
      '400 CLAIM_SECRET_REQUIRED',
    ],
    ['version 1, junk', post({ 'x-payment': v1 }, { ...body, claimSecret: 'c' }), '400 INVALID_REQUEST'],
    [
      'the older address',
      post({ 'x-payment': v1 }, guess, `${on}/api/x402/${path}`),
      '409 IDEMPOTENCY_KEY_REUSED',
    ],
    ['a claim of its own 402', post({ 'payment-signature': fresh }), '409 IDEMPOTENCY_KEY_REUSED'],
    ['both claims', post({ 'payment-signature': fresh }, guess), '409 IDEMPOTENCY_KEY_REUSED'],
    ['no claim', post(claimless), '400 CLAIM_SECRET_REQUIRED'],
    ['another name', post(named), '409 IDEMPOTENCY_KEY_REUSED'],
    ['terms that are refused', post(otherTerms), '402 PAYMENT_REQUIREMENTS_MISMATCH'],
    ['terms that are refused, guessing', post(otherTerms, guess), '402 PAYMENT_REQUIREMENTS_MISMATCH'],
    ...hashes,
  ];
}

async function assertWorthless(
  sold: Sold,
  stolen: SignedPayment,
  transaction: Hex | null,
  on: string,
  mine?: Told,
): Promise<void> {
  for (const [how, got, expected] of await attempts(sold, stolen, transaction, on)) {
    const { text, secret, body } = await got;
    assert.deepEqual([text, secret], [expected, undefined], `${sold.path}: ${how}`);
    if (mine !== undefined) assert.ok(!body.includes(String(mine.secret)), how);
  }
}

for (const sold of SOLD) {
  const url = () => `${shop.url}/x402/${sold.path}`;
  const bodyOf = (name: string) => (sold.path === 'agent-create-wallet' ? { agentId: name } : sold.body);

  describe(sold.path, () => {
    test('settled: what stands on the chain gets nobody the secret, and the buyer has it again', async () => {
      const account = await world.wallet();
      const mine = { ...sold, body: bodyOf('settled') };
      const moved = await received(async () => {
        const answer = await buyerOf(account)(url(), asJson(mine.body));
        const { stolen, transaction } = await settlementOf(answer);
        const bought = await told(answer, sold);
        assert.equal(bought.text, '200', bought.body);
        assert.equal(typeof bought.secret, 'string');
        const { seen, nonce } = presentedLast();
        assert.equal(nonce, stolen.authorization.nonce, 'the stranger does not hold the very payment');
        for (const when of ['settled', 'restarted']) {
          if (when === 'restarted') {
            await Promise.all([shop.restart(), there.close()]);
            there = await replica();
          }
          for (const on of [shop.url, there.url])
            await assertWorthless(mine, stolen, transaction, on, bought);
          assert.deepEqual(await told(shop.present(seen), sold), { ...bought, text: '200 again' });
          const elsewhere = fetch(
            `${there.url}${seen.path}`,
            asJson(mine.body, {
              'payment-signature': seen.headers['payment-signature'] ?? '',
            }),
          );
          assert.deepEqual(await told(elsewhere, sold), { ...bought, text: '200 again' });
        }
      });
      assert.equal(moved, sold.priceUnits);
    });

    test('waiting to be mined, while the buyer waits too: nobody gets it but the buyer', async () => {
      const account = await world.wallet();
      const mine = { ...sold, body: bodyOf('waiting') };
      const moved = await received(async () => {
        await world.chain.client.setAutomine(false);
        let answer: Promise<Response>;
        let seen: SeenRequest;
        try {
          answer = buyerOf(account)(url(), asJson(mine.body));
          let input: Hex | undefined;
          await until('its settlement waits to be mined', async () => {
            const { pending } = await world.chain.client.getTxpoolContent();
            input = Object.values(pending)
              .flatMap((ofSender) => Object.values(ofSender))
              .find(({ to }) => to?.toLowerCase() === USDC.toLowerCase())?.input;
            return input !== undefined;
          });
          const stolen = readFromCalldata(input ?? '0x');
          seen = presentedLast().seen;
          for (const on of [shop.url, there.url]) await assertWorthless(mine, stolen, null, on);
        } finally {
          await world.chain.client.setAutomine(true);
          await world.chain.client.mine({ blocks: 1 });
        }
        const bought = await told(answer, sold);
        assert.equal(bought.text, '200', bought.body);
        assert.deepEqual(await told(shop.present(seen), sold), { ...bought, text: '200 again' });
      });
      assert.equal(moved, sold.priceUnits);
    });

    test('a client that sends no terms back is told so and charged nothing, and buys with a claim of its own', async () => {
      const account = await world.wallet();
      const body = bodyOf('first generation');
      const signed = await signPayment(account, { to: world.recipient, valueUnits: sold.priceUnits });
      const payment = { 'x-payment': firstGenerationHeader(signed) };
      const claimSecret = newClaim();
      const { hint, message, charged } = await jsonOf(fetch(url(), asJson(body, payment)));
      assert.match(`${message} ${hint}`, /not used.*claimSecret of 16 to 128/s);
      assert.equal(charged, false);
      assert.equal(await world.balanceOf(account.address), 5_000_000n);

      const moved = await received(async () => {
        const bought = await told(fetch(url(), asJson({ ...body, claimSecret }, payment)), sold);
        assert.equal(bought.text, '200', bought.body);
        const again = fetch(`${there.url}/x402/${sold.path}`, asJson({ claimSecret, ...body }, payment));
        assert.deepEqual(await told(again, sold), { ...bought, text: '200 again' });
        await assertWorthless({ ...sold, body }, signed, null, there.url, bought);
      });
      assert.equal(moved, sold.priceUnits);
    });

    test('the wallet that paid fetches it by signing in, whatever it was claimed with; another does not', async () => {
      const account = await world.wallet(10);
      const stranger = await world.wallet();
      const bodies: readonly Record<string, string>[] = [{}, { claimSecret: newClaim() }];
      for (const [index, claim] of bodies.entries()) {
        const body = bodyOf(`signed in ${index}`);
        const bought = await told(buyerOf(account)(url(), asJson({ ...body, ...claim })), sold);
        assert.equal(bought.text, '200', bought.body);
        const again = await told(wrapFetchWithSIWx(fetch, account)(url(), asJson(body)), sold);
        assert.deepEqual(again, { ...bought, text: '200 again' });
        const other = await told(wrapFetchWithSIWx(fetch, stranger)(url(), asJson(body)), sold);
        assert.deepEqual([other.text, other.secret], ['402 NOTHING_BOUGHT', undefined]);
      }
    });

    test('while no payment can be taken, the buyer has what it bought, and nobody else', async () => {
      const account = await world.wallet();
      const mine = { ...sold, body: bodyOf('closed') };
      const answer = await buyerOf(account)(url(), asJson(mine.body));
      const { stolen, transaction } = await settlementOf(answer);
      const bought = await told(answer, sold);
      const { seen, claim } = presentedLast();
      // Nobody settles there, so no chain is offered: what is recalled is all there is.
      const closed = await replica({ ...world.environment, FACILITATOR_URL: '' });
      try {
        const at = `${closed.url}/x402/${sold.path}`;
        const sent = { 'payment-signature': seen.headers['payment-signature'] ?? '' };
        assert.deepEqual(await told(fetch(at, asJson(mine.body, sent)), sold), {
          ...bought,
          text: '200 again',
        });
        const v1 = { 'x-payment': firstGenerationHeader(stolen) };
        const own = await told(fetch(at, asJson({ ...mine.body, claimSecret: claim }, v1)), sold);
        assert.deepEqual(own, { ...bought, text: '200 again' }, 'the claim counts wherever it stands');
        for (const [headers, body] of [
          [v1, mine.body],
          [v1, { ...mine.body, claimSecret: 'c'.repeat(32) }],
          [{ 'x-payment': transaction }, mine.body],
          [{ 'x-payment': transaction }, { ...mine.body, claimSecret: claim }],
        ] as const) {
          const got = await told(fetch(at, asJson(body, headers as Record<string, string>)), sold);
          assert.deepEqual([got.text, got.secret], ['402 PAYMENT_NETWORK_UNSUPPORTED', undefined]);
        }
      } finally {
        await closed.close();
      }
    });

    test('a payment that settled before it was presented buys nobody a secret in its payer’s name', async () => {
      const account = await world.wallet();
      const mine = { ...sold, body: bodyOf('elsewhere') };
      const signed = await signPayment(account, { to: world.recipient, valueUnits: sold.priceUnits });
      await settleElsewhere(signed);
      const moved = await received(async () => {
        const claimed = { ...mine.body, claimSecret: 'c'.repeat(32) };
        for (const payment of [
          firstGenerationHeader(signed),
          await paymentHeader(await fetch(url()), signed),
        ]) {
          const got = await told(fetch(url(), asJson(claimed, { 'x-payment': payment })), sold);
          assert.deepEqual([got.text, got.secret], ['402 PAYMENT_PUBLIC_BEFORE', undefined]);
        }
        const [row] = await database.sql<{ count: number }[]>`
          select count(*)::integer as count from managed_wallets where owner like ${`%${account.address.toLowerCase()}`}`;
        assert.equal(row?.count, 0, 'there is a wallet in the name of somebody who bought none');
      });
      assert.equal(moved, 0n);
    });
  });
}

async function settleElsewhere({ authorization, signature }: SignedPayment): Promise<void> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const { r, s, yParity } = parseSignature(signature);
  const hash = await world.chain.client.sendTransaction({
    account: await world.wallet(),
    chain: null,
    to: USDC,
    data: encodeFunctionData({
      abi: parseAbi([
        'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)',
      ]),
      args: [
        from as Hex,
        to as Hex,
        BigInt(value),
        BigInt(validAfter),
        BigInt(validBefore),
        nonce as Hex,
        27 + yParity,
        r,
        s,
      ],
    }),
  });
  const { status } = await world.chain.client.waitForTransactionReceipt({ hash });
  assert.equal(status, 'success');
}

test('an answer without a secret: bound where the buyer asks for it, and nobody is asked for a claim', async () => {
  const account = await world.wallet();
  const url = `${shop.url}/x402/ping`;
  const required = (await fetch(url)).headers.get('payment-required') ?? '';
  assert.doesNotMatch(Buffer.from(required, 'base64').toString(), /claimSecret/);

  const open = await buyerOf(account)(url, asJson({}));
  const { stolen } = await settlementOf(open);
  const bought = await told(open, PING);
  const copied = { 'x-payment': firstGenerationHeader(stolen) };
  // As docs/x402.md says: whoever knows the body may read along.
  assert.deepEqual(await told(fetch(url, asJson({}, copied)), PING), { ...bought, text: '200 again' });

  const claimed = { claimSecret: newClaim() };
  const bound = await buyerOf(account)(url, asJson(claimed));
  const settled = await settlementOf(bound);
  const mine = await told(bound, PING);
  assert.equal(mine.text, '200', mine.body);
  const theirs = { 'x-payment': firstGenerationHeader(settled.stolen) };
  assert.equal((await told(fetch(url, asJson({}, theirs)), PING)).text, '409 IDEMPOTENCY_KEY_REUSED');
  assert.deepEqual(await told(fetch(url, asJson(claimed, theirs)), PING), { ...mine, text: '200 again' });
});

test('no claim is in the database or in a log', async () => {
  const kept = await database.sql<{ text: string }[]>`
    select evidence::text as text from settlements union all select body from call_answers`;
  assert.ok(claims.length > 5);
  const told = `${kept.map(({ text }) => text).join('\n')}\n${there.log.join('\n')}\n${shop.log()}`;
  for (const claim of claims) assert.ok(!told.includes(claim));
});
