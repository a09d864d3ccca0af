/** One call is bought once, for no more than was allowed, whatever is lost on the way. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFarebox, type FareboxOptions } from './client.ts';
import { type FakeShop, OFFER, openFakeShop } from './fake-shop.fixture.ts';
import { clock, errorOf, hurried } from './hurried.fixture.ts';
import { memoryStore } from './store.ts';
import { x402Wallet } from './x402.ts';

const KEY = `fbx_live_${'a'.repeat(64)}`;
const EVM = `0x${'1'.repeat(64)}` as const;
const wallet = await x402Wallet({ evm: EVM });

function clientOf(shop: FakeShop, options: FareboxOptions = {}) {
  const farebox = createFarebox({
    url: 'https://farebox.example',
    fetch: shop.fetch,
    nowMs: () => clock.ms,
    ...(options.wallets === undefined ? { apiKey: KEY } : {}),
    ...options,
  });
  return { farebox };
}

const kinds = (sent: string[]) => new Set(sent).size;

test('a call is asked for with the same payment until it is answered, whatever was lost', async () => {
  for (const pays of [{ apiKey: KEY }, { wallets: [wallet] }])
    for (const lost of ['answer lost', 'request lost'] as const) {
      const shop = openFakeShop();
      shop.fates = [lost, lost, { status: 502 }];
      const { farebox } = clientOf(shop, pays);
      const { result } = await hurried(() => farebox.buy('ping', { message: 'hello' }));
      assert.equal((result.output as { echo?: string }).echo, 'hello');
      assert.deepEqual([shop.sent.length, kinds(shop.sent), shop.sales()], [4, 1, 1]);
      await farebox.call('ping', { message: 'hello' });
      assert.deepEqual([kinds(shop.sent), shop.sales()], [2, 2], 'a call after the answer is another one');
    }
});

test('a process that comes after finds the payment in the store, and sends no other', async () => {
  for (const pays of [{ apiKey: KEY }, { wallets: [wallet] }]) {
    const shop = openFakeShop();
    const store = memoryStore();
    shop.fates = Array(20).fill('answer lost');
    const { farebox } = clientOf(shop, { ...pays, store });
    const { result: error } = await hurried(() => errorOf(farebox.call('ping', { message: 'a' })));
    assert.deepEqual([error.code, error.charged], ['ANSWER_LOST', 'unknown']);
    shop.fates = [];
    const next = clientOf(shop, { ...pays, store }).farebox;
    await next.call('ping', { message: 'a' });
    assert.deepEqual([kinds(shop.sent), shop.sales()], [1, 1]);
    assert.equal(await next.spentToday(), 250_000n);
    await next.call('ping', { message: 'b' });
    assert.equal(shop.sales(), 2, 'another question is another purchase');
  }
});

test('the same call at once is one purchase, and under two names it is two', async () => {
  const shop = openFakeShop();
  const fetches = shop.fetch;
  const [asked, sent] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  shop.fetch = async (url, init) => {
    const before = shop.sent.length;
    const answer = await fetches(url, init);
    // Both ask before either pays, and both pay before either is answered.
    const isPaid = shop.sent.length > before;
    if (shop.asked === 2) asked.resolve();
    if (shop.sent.length === 2) sent.resolve();
    await (isPaid ? sent : asked).promise;
    return answer;
  };
  const { farebox } = clientOf(shop, { limits: {} });
  await Promise.all([farebox.call('ping'), farebox.call('ping')]);
  assert.deepEqual([shop.sent.length, shop.sales()], [2, 1]);
  await Promise.all([farebox.call('ping', {}, { id: 'one' }), farebox.call('ping', {}, { id: 'two' })]);
  assert.deepEqual(shop.sent.slice(2).sort(), ['one', 'two']);
});

test('a name is one purchase after its answer too, from a wallet as with a key', async () => {
  for (const pays of [{ apiKey: KEY }, { wallets: [wallet] }]) {
    const shop = openFakeShop();
    const store = memoryStore();
    for (let n = 0; n < 3; n += 1)
      await clientOf(shop, { ...pays, store }).farebox.call('ping', {}, { id: 'mine' });
    assert.deepEqual([kinds(shop.sent), shop.sales()], [1, 1]);
    assert.equal(await clientOf(shop, { ...pays, store }).farebox.spentToday(), 250_000n);
  }
  const { farebox } = clientOf(openFakeShop());
  await assert.rejects(farebox.call('ping', {}, { id: 'a b' }), TypeError);
});

test('it waits as long as a server asks, and then sends the same payment', async () => {
  for (const status of [503, 429]) {
    const shop = openFakeShop();
    const busy = { status, body: { code: 'BUSY', charged: false }, headers: { 'retry-after': '7' } };
    shop.fates = [busy, busy];
    const { farebox } = clientOf(shop);
    const { pausesMs } = await hurried(() => farebox.call('ping'));
    assert.deepEqual(pausesMs, [7_000, 7_000]);
    assert.deepEqual([kinds(shop.sent), shop.sales()], [1, 1]);
    // Longer than its patience: the caller is told.
    shop.fates = [{ ...busy, headers: { 'retry-after': '3600' } }];
    const error = await errorOf(farebox.call('ping'));
    assert.deepEqual([error.code, error.charged, error.retryAfterMs], ['BUSY', false, 3_600_000]);
    assert.equal(await farebox.spentToday(), 250_000n);
    const asking = clientOf(shop, { limits: {} }).farebox;
    shop.fates = [busy, { status: 422, body: { code: 'NO_ANSWER', charged: false } }];
    await hurried(() => errorOf(asking.call('ping')));
    assert.equal(await asking.spentToday(), 0n, 'none of the times has cost anything');
  }
});

test('a refusal is told with its code, what it cost, the field, and a page about it', async () => {
  const shop = openFakeShop();
  const fields = [{ field: 'quotes.0.amount', message: 'must be a number' }];
  shop.fates = [
    {
      status: 400,
      body: { code: 'INVALID_REQUEST', message: 'no', charged: false, fields },
      headers: { 'x-request-id': 'req_1' },
    },
  ];
  const { farebox } = clientOf(shop);
  const error = await errorOf(farebox.call('ping'));
  assert.deepEqual(
    { ...error, field: error.field, message: error.message },
    {
      name: 'FareboxError',
      code: 'INVALID_REQUEST',
      charged: false,
      status: 400,
      docUrl: 'https://farebox.example/docs/ping',
      requestId: 'req_1',
      fields,
      retryAfterMs: null,
      body: { code: 'INVALID_REQUEST', message: 'no', charged: false, fields },
      field: 'quotes.0.amount',
      message: 'no',
    },
  );
  assert.equal(await farebox.spentToday(), 0n);
});

test('no more is bought than a limit allows, of a call, a day and a service', async () => {
  for (const [limits, sold] of [
    [{ maxCallMicros: 249_999n }, 0],
    [{ maxCallMicros: 250_000n, maxDayMicros: 749_999n }, 2],
    [{ maxServiceMicros: { ping: 250_000n } }, 1],
  ] as const) {
    const shop = openFakeShop();
    const { farebox } = clientOf(shop, { limits });
    const bought = await Promise.allSettled(
      Array.from({ length: 5 }, (_, n) => farebox.call('ping', { message: String(n) })),
    );
    assert.equal(shop.sales(), sold);
    for (const each of bought)
      if (each.status === 'rejected') {
        assert.equal(each.reason.code, 'ABOVE_LIMIT');
        assert.equal(each.reason.charged, false);
      }
  }
  const shop = openFakeShop();
  const { farebox } = clientOf(shop, { limits: { maxServiceMicros: { ping: 250_000n } } });
  await farebox.call('ping');
  await farebox.call('first-call');
  clock.ms += 12 * 3_600_000;
  await farebox.call('ping');
  assert.equal(shop.sales(), 3, 'another service has no such limit, and another day is another day');
});

test('two calls that both had room when they looked come to no more than the limit', async () => {
  for (const limits of [{ maxDayMicros: 250_000n }, { maxServiceMicros: { ping: 250_000n } }]) {
    const shop = openFakeShop();
    const fetches = shop.fetch;
    const asked = Promise.withResolvers<void>();
    shop.fetch = async (url, init) => {
      const answer = await fetches(url, init);
      if (shop.asked === 2) asked.resolve();
      await asked.promise;
      return answer;
    };
    const { farebox } = clientOf(shop, { limits });
    const calls = ['a', 'b'].map((message) => farebox.call('ping', { message }));
    const ends = (await Promise.allSettled(calls)).map((each) =>
      each.status === 'fulfilled' ? 'sold' : `${each.reason.code} ${each.reason.charged}`,
    );
    assert.deepEqual([...ends.sort(), shop.sales()], ['ABOVE_LIMIT false', 'sold', 1]);
  }
});

test('a wallet has limits without being told, and asks its owner above them', async () => {
  const shop = openFakeShop();
  shop.accepts = [{ ...OFFER, amount: '1000001' }];
  const refused = await errorOf(clientOf(shop, { wallets: [wallet] }).farebox.call('ping'));
  assert.equal(refused.code, 'ABOVE_LIMIT');
  const asked: bigint[] = [];
  const approve =
    (agrees: boolean) =>
    ({ micros }: { micros: bigint }) => {
      asked.push(micros);
      return agrees;
    };
  const no = await errorOf(
    clientOf(shop, { wallets: [wallet], approve: approve(false) }).farebox.call('ping'),
  );
  assert.equal(no.code, 'DECLINED');
  assert.equal(shop.sales(), 0);
  await clientOf(shop, { wallets: [wallet], approve: approve(true) }).farebox.call('ping');
  assert.deepEqual([asked, shop.sales()], [[1_000_001n, 1_000_001n], 1]);
});

test('a sandbox is paid by no wallet that was not made for one, and nothing else by one that was', async () => {
  const marks: ((shop: FakeShop) => void)[] = [
    (shop) => {
      shop.sandbox = true;
    },
    (shop) => {
      shop.accepts = [{ ...OFFER, extra: { ...OFFER.extra, sandbox: true } }];
    },
  ];
  for (const mark of marks) {
    const shop = openFakeShop();
    mark(shop);
    const error = await errorOf(clientOf(shop, { wallets: [wallet] }).farebox.call('ping'));
    assert.deepEqual([error.code, error.charged, shop.sent.length], ['SANDBOX_REFUSED', false, 0]);
    const made = await x402Wallet({ evm: EVM, sandbox: true });
    await clientOf(shop, { wallets: [made] }).farebox.call('ping');
    assert.equal(shop.sales(), 1);
    const real = openFakeShop();
    const other = await errorOf(clientOf(real, { wallets: [made] }).farebox.call('ping'));
    assert.deepEqual([other.code, other.charged, real.sent.length], ['NOT_A_SANDBOX', false, 0]);
    await clientOf(real, { wallets: [made, wallet] }).farebox.call('ping');
    await clientOf(shop, { apiKey: KEY }).farebox.call('ping');
    assert.deepEqual([real.sales(), shop.sales()], [1, 2], 'a key is of the server that gave it');
  }
});

test('of what its wallets can pay the cheapest is paid', async () => {
  const shop = openFakeShop();
  shop.accepts = [
    { ...OFFER, amount: '240000', network: 'eip155:56' },
    OFFER,
    {
      ...OFFER,
      amount: '249999',
      network: 'eip155:137',
      asset: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
    },
  ];
  const { farebox } = clientOf(shop, { wallets: [wallet] });
  const { receipt } = await farebox.buy('ping');
  assert.equal(receipt?.amountUsd, '0.249999');
  assert.deepEqual(receipt?.doubts.length, 2, 'the receipt of the server is of another amount and network');
});

test('a wallet pays once a key cannot, and not while the key may have paid', async () => {
  const cannot = { status: 402, body: { last_error_reason: { code: 'INSUFFICIENT_CREDITS' } } };
  const shop = openFakeShop();
  shop.fates = [cannot];
  const both = { apiKey: KEY, wallets: [wallet] };
  const { receipt } = await clientOf(shop, both).farebox.buy('ping');
  assert.equal(receipt?.paidBy, 'x402');
  const lost = openFakeShop();
  lost.fates = ['answer lost', cannot];
  const frozen = { status: 402, body: { last_error_reason: { code: 'API_KEY_FROZEN' } } };
  shop.fates = [frozen];
  assert.equal((await errorOf(clientOf(shop, both).farebox.call('ping'))).code, 'API_KEY_FROZEN');
  const { farebox } = clientOf(lost, both);
  await hurried(() => farebox.call('ping').catch(() => undefined));
  assert.equal(kinds(lost.sent), 1, 'what the key was sent for may be paid');
});

test('a payment that a server has refused is not sent again: the next call makes another', async () => {
  for (const pays of [{ apiKey: KEY }, { wallets: [wallet] }]) {
    const shop = openFakeShop();
    shop.fates = [
      { status: 402, body: { last_error_reason: { code: 'PAYMENT_EXPIRED', message: 'too late' } } },
    ];
    const { farebox } = clientOf(shop, pays);
    const error = await errorOf(farebox.call('ping'));
    assert.deepEqual([error.code, error.charged, error.message], ['PAYMENT_EXPIRED', false, 'too late']);
    await farebox.call('ping');
    assert.equal(kinds(shop.sent), 2);
  }
});

test('nothing that pays is sent where others read along', () => {
  for (const url of [
    'http://farebox.example',
    'http://10.0.0.1:8402',
    'https://me:secret@farebox.example',
    'no',
  ]) {
    assert.throws(
      () => createFarebox({ url, apiKey: KEY }),
      (error: Error) => error instanceof TypeError && !error.message.includes('secret'),
    );
  }
  for (const url of ['https://farebox.example/', 'http://127.0.0.1:8402', 'http://[::1]:8402'])
    createFarebox({ url, apiKey: KEY });
  assert.equal(createFarebox({ url: 'http://farebox.example/shop/' }).url, 'http://farebox.example/shop');
});

test('without an address it buys where all programs of this environment do', (t) => {
  const { FAREBOX_URL, PORT } = process.env;
  t.after(() => Object.assign(process.env, { FAREBOX_URL: FAREBOX_URL ?? '', PORT: PORT ?? '' }));
  for (const [environment, url] of [
    [{ FAREBOX_URL: '', PORT: '' }, 'http://127.0.0.1:8402'],
    [{ FAREBOX_URL: '', PORT: '9000' }, 'http://127.0.0.1:9000'],
    [{ FAREBOX_URL: '', PORT: '/run/a.socket' }, 'http://127.0.0.1:8402'],
    [{ FAREBOX_URL: 'https://farebox.example/', PORT: '9000' }, 'https://farebox.example'],
  ] as const) {
    Object.assign(process.env, environment);
    assert.equal(createFarebox().url, url);
    assert.equal(createFarebox({ url: '' }).url, url);
  }
  assert.equal(createFarebox({ url: 'http://localhost:1' }).url, 'http://localhost:1');
});

test('a caller who leaves is told so, and the answer waits to be asked for', async () => {
  const shop = openFakeShop();
  const leaving = new AbortController();
  const fetches = shop.fetch;
  shop.fetch = async (url, init) => {
    const answer = await fetches(url, init);
    if (shop.sent.length === 1) leaving.abort(new Error('gone'));
    init?.signal?.throwIfAborted();
    return answer;
  };
  const { farebox } = clientOf(shop);
  await assert.rejects(farebox.call('ping', {}, { signal: leaving.signal }), /gone/);
  await farebox.call('ping');
  assert.deepEqual([kinds(shop.sent), shop.sales()], [1, 1]);
});

test('an answer that comes to a caller who has left is theirs when they ask again', async () => {
  const shop = openFakeShop();
  const leaving = new AbortController();
  const fetches = shop.fetch;
  // A fetch that heeds no signal.
  shop.fetch = async (url, init) => {
    const answer = await fetches(url, init);
    if (shop.sent.length === 1) leaving.abort(new Error('gone'));
    return answer;
  };
  const { farebox } = clientOf(shop);
  await farebox.call('ping', {}, { signal: leaving.signal }).catch(() => undefined);
  await farebox.call('ping');
  assert.deepEqual([kinds(shop.sent), shop.sales()], [1, 1]);
});

test('what is asked again is neither signed nor counted a second time', async () => {
  const shop = openFakeShop();
  shop.fates = Array(20).fill('answer lost');
  const { farebox } = clientOf(shop, { wallets: [wallet], limits: { maxDayMicros: 250_000n } });
  await hurried(() => errorOf(farebox.call('ping')));
  const { asked } = shop;
  shop.fates = [];
  await farebox.call('ping');
  assert.deepEqual([shop.asked, kinds(shop.sent), shop.sales()], [asked, 1, 1]);
});

test('nothing is bought while it cannot be written down', async () => {
  const shop = openFakeShop();
  const full = { ...memoryStore(), set: () => Promise.reject(new Error('the disk is full')) };
  const error = await errorOf(clientOf(shop, { store: full }).farebox.call('ping'));
  assert.deepEqual([error.code, shop.sent.length], ['CANNOT_BUY', 0]);
  const damaged = { ...memoryStore(), get: () => '{"spent":' };
  const other = await errorOf(clientOf(shop, { store: damaged }).farebox.call('ping'));
  assert.deepEqual([other.code, shop.sent.length], ['CANNOT_BUY', 0]);
});
