import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Fastify from 'fastify';
import { Problem } from '../../http/problem.ts';
import { createRateLimit } from '../../http/rate-limit.ts';
import { PaymentRefused } from '../../paid-call/rail.ts';
import type { Receipt, SettlementStore } from '../../paid-call/settlements.ts';
import { receiptRoutes } from './routes.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const SETTLED: Receipt = {
  callId: ID,
  rail: 'x402',
  service: 'first-call',
  priceMicros: 50_000n,
  payment: {
    network: 'eip155:8453',
    asset: '0xasset',
    payer: '0xpayer',
    payTo: '0xpayto',
    amountUnits: 9_007_199_254_740_993n,
  },
  callState: 'captured',
  settlementState: 'settled',
  reason: null,
  transaction: '0xaa',
  blockNumber: 12n,
  final: true,
  createdAtMs: Date.UTC(2026, 0, 1),
  settledAtMs: Date.UTC(2026, 0, 1, 0, 0, 2),
  refund: null,
};

let receipt: Receipt | null = SETTLED;
let asked: string[] = [];
let signedIn: string[] = [];
let askedBy: { transaction: string; payer: string }[] = [];
/** These tests use nothing else of the store. */
const store: Partial<SettlementStore> = {
  receipt: async (callId) => {
    asked.push(callId);
    return receipt;
  },
  receiptBy: async (of) => {
    askedBy.push(of);
    return receipt;
  },
};
const app = Fastify();
before(async () => {
  app.setErrorHandler((error, _request, reply) => {
    assert.ok(error instanceof Problem, `not a problem: ${error}`);
    return reply.code(error.status).headers(error.headers).send(error.body('request'));
  });
  app.decorate('receiptPage', ({ id }) => ({
    headers: { 'content-type': 'text/html' },
    body: `<p>The receipt ${id}</p>`,
  }));
  receiptRoutes(app, {
    settlements: store as SettlementStore,
    baseUrl: 'https://shop.test',
    signIn: {
      fixed: (uri) => ({ supportedChains: [], schema: {}, info: { uri } }),
      fresh: () => ({ nonce: 'n', issuedAt: 'now', expirationTime: 'soon' }),
      async check(header, resourceUrl) {
        signedIn.push(resourceUrl);
        if (header !== 'good') throw new PaymentRefused('SIGN_IN_INVALID', 'No.', 'Sign again.');
        return '0xpayer';
      },
    },
    accountLimit: createRateLimit({ perMinute: 30, maxNames: 10, nowMs: () => 0 }),
    addressOf: ({ headers }) => String(headers['x-test-address'] ?? 'somebody'),
  });
  await app.ready();
});
after(() => app.close());

const get = (id: string, address = 'somebody') =>
  app.inject({ url: `/x402/receipts/${id}`, headers: { 'x-test-address': address } });

test('a receipt says all that is known, with amounts as exact strings', async () => {
  receipt = SETTLED;
  const answer = await get(ID);
  assert.equal(answer.statusCode, 200);
  assert.equal(answer.headers['cache-control'], 'no-store');
  assert.deepEqual(answer.json(), {
    id: ID,
    protocol: 'x402',
    service: 'first-call',
    priceUsd: '0.050000',
    status: 'delivered',
    reason: null,
    network: 'eip155:8453',
    asset: '0xasset',
    payer: '0xpayer',
    payTo: '0xpayto',
    amountUnits: '9007199254740993',
    transaction: '0xaa',
    blockNumber: 12,
    final: true,
    createdAt: '2026-01-01T00:00:00.000Z',
    settledAt: '2026-01-01T00:00:02.000Z',
    refund: null,
  });
});

test('a person gets a page, and whoever names JSON gets that', async () => {
  receipt = SETTLED;
  const asked = async (accept: string) =>
    (await app.inject({ url: `/x402/receipts/${ID}`, headers: { accept } })).headers['content-type'];
  assert.equal(await asked('text/html,application/xhtml+xml,*/*;q=0.8'), 'text/html');
  for (const accept of ['*/*', 'application/json', 'text/html, application/json', 'text/html;q=0'])
    assert.match(String(await asked(accept)), /^application\/json/, accept);
});

const owed = {
  state: 'owed',
  amountMicros: SETTLED.priceMicros,
  transaction: null,
  reason: 'not delivered in time',
} as const;
const STATUSES: [string, Partial<Receipt>][] = [
  ['delivered', {}],
  ['lost', { settlementState: 'lost' }],
  ['refund_owed', { refund: owed }],
  // What was paid above the price.
  ['delivered', { refund: { ...owed, amountMicros: 1n } }],
  ['refunded', { refund: { ...owed, state: 'paid', transaction: '0xbb' } }],
  ['not_charged', { callState: 'released', settlementState: 'dead', reason: 'PAYMENT_EXPIRED' }],
  ['paid_not_delivered', { callState: 'settling' }],
  [
    'settling',
    { callState: 'settling', settlementState: 'with_chain', transaction: null, blockNumber: null },
  ],
  ['settling', { callState: 'settling', settlementState: 'refused', settledAtMs: null }],
];
for (const [status, changes] of STATUSES) {
  test(`${
    Object.entries(changes)
      .map(
        ([name, value]) =>
          `${name} ${JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? String(each) : each))}`,
      )
      .join(', ') || 'all well'
  }: ${status}`, async () => {
    receipt = { ...SETTLED, ...changes };
    assert.equal((await get(ID)).json().status, status);
  });
}

test('a malformed id does not reach the database; an unknown one is not found', async () => {
  receipt = null;
  asked = [];
  for (const id of ['1', 'x'.repeat(36), `${ID}0`, encodeURIComponent("' or 1=1")])
    assert.equal((await get(id)).statusCode, 404);
  assert.deepEqual(asked, []);
  const answer = await get(ID);
  assert.deepEqual([answer.statusCode, answer.json().code], [404, 'RECEIPT_NOT_FOUND']);
  assert.deepEqual(asked, [ID]);
});

test('requests of one address are limited, and others are not held back', async () => {
  receipt = SETTLED;
  const statuses: number[] = [];
  for (let index = 0; index < 40; index++) statuses.push((await get(ID, 'busy')).statusCode);
  assert.deepEqual(new Set(statuses), new Set([200, 429]));
  assert.equal((await get(ID, 'else')).statusCode, 200);
});

test('a receipt by its transaction is for the wallet that paid, and for nobody who merely knows the hash', async () => {
  receipt = SETTLED;
  [asked, signedIn, askedBy] = [[], [], []];
  const hash = `0x${'Ab'.repeat(32)}`;
  const by = (header?: string) =>
    app.inject({
      url: `/x402/receipts/${hash}`,
      headers: { 'x-test-address': 'payer', ...(header === undefined ? {} : { 'sign-in-with-x': header }) },
    });
  const unsigned = await by();
  assert.deepEqual([unsigned.statusCode, unsigned.json().code], [401, 'SIGN_IN_REQUIRED']);
  assert.deepEqual(unsigned.json().extensions['sign-in-with-x'].info, {
    uri: `https://shop.test/x402/receipts/${hash}`,
    nonce: 'n',
    issuedAt: 'now',
    expirationTime: 'soon',
  });
  const forged = await by('forged');
  assert.deepEqual([forged.statusCode, forged.json().code], [401, 'SIGN_IN_INVALID']);
  assert.deepEqual([asked, askedBy], [[], []], 'nothing was looked up for either');
  const signed = await by('good');
  assert.deepEqual([signed.statusCode, signed.json().id], [200, ID]);
  assert.deepEqual(askedBy, [{ transaction: hash.toLowerCase(), payer: '0xpayer' }]);
  receipt = null;
  assert.equal((await by('good')).json().code, 'RECEIPT_NOT_FOUND');
});
