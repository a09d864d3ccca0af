import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Service } from '../../service/define.ts';
import { type Payment, PaymentRefused, type Quote, type Rail } from '../rail.ts';
import { SERVICE } from '../sale.fixture.ts';
import type { PaidRequest } from '../sale.ts';
import { leastForKey, readForTerms, termsBefore } from './terms-before.ts';

const REQUEST: PaidRequest = {
  service: SERVICE,
  headers: {},
  rawBody: undefined,
  address: '',
  requestId: '',
  gone: () => false,
  assertMayBuy() {},
};

const quoteAt = (priceMicros: bigint): Quote => ({
  service: SERVICE,
  priceMicros,
  resourceUrl: 'http://shop/x402/nickel',
});
const soldAt = (priceUsd: string): Service => ({ ...SERVICE, priceUsd });

/** A rail whose credential pays one amount, and the amounts that it was asked about. */
function railFor(
  paid: bigint,
  { isChain = true, other = null }: { isChain?: boolean; other?: Error | null } = {},
) {
  const asked: bigint[] = [];
  const rail = {
    name: isChain ? 'x402' : 'credits',
    ...(isChain ? { chains: {} } : {}),
    async read(_headers: unknown, { priceMicros }: Quote) {
      asked.push(priceMicros);
      if (priceMicros === paid || !isChain) return { priceMicros } as unknown as Payment;
      throw other ?? new PaymentRefused('PAYMENT_AMOUNT_MISMATCH', `not ${priceMicros}`, 'Sign another one.');
    },
  } as unknown as Rail;
  return { rail, asked };
}

const read = (rail: Rail, now: bigint, ...before: bigint[]) =>
  readForTerms(rail, REQUEST, {
    quote: quoteAt(now),
    before: before.map(quoteAt),
    beside: { idempotencyKey: null, rawBody: undefined },
  });

test('terms of before are those that cost otherwise, each once, the newest first', () => {
  const quote = quoteAt(50_000n);
  const before = termsBefore(quote, REQUEST, ['0.07', '0.05', '0.06', '0.07'].map(soldAt));
  assert.deepEqual(
    before.map(({ priceMicros }) => priceMicros),
    [70_000n, 60_000n],
  );
  assert.ok(
    before.every(({ service, resourceUrl }) => service === SERVICE && resourceUrl === quote.resourceUrl),
  );
  assert.deepEqual(termsBefore(quote, REQUEST, []), []);
});

test('a route’s terms are those of the very call, and none where the call could not be read then', () => {
  const route = (readCall: NonNullable<Service['route']>['read']): Service => ({
    ...SERVICE,
    priceUsd: '0.99',
    route: { method: 'GET', address: '/', read: readCall, shown: {} as never },
  });
  const priced = route(() => ({
    input: {},
    fingerprint: Buffer.alloc(32),
    priceMicros: 20_000n,
    address: '/',
  }));
  const unread = route(() => {
    throw new Error('not readable then');
  });
  assert.deepEqual(
    termsBefore(quoteAt(50_000n), REQUEST, [unread, priced]).map(({ priceMicros }) => priceMicros),
    [20_000n],
  );
});

test('a metered answer has no terms of before: its price is a ceiling, and a lower one would not cover what is measured', () => {
  const metered = { ...SERVICE, metered: {} as NonNullable<Service['metered']> };
  const quote = { ...quoteAt(50_000n), service: metered };
  assert.deepEqual(termsBefore(quote, { ...REQUEST, service: metered }, [soldAt('0.02')]), []);
});

test('a key with a price of its own pays the least that it may have been told, and that another key was told is nothing to it', () => {
  const then = (ownMicros: bigint | null): Service => ({
    ...SERVICE,
    route: {
      method: 'GET',
      address: '/',
      shown: {} as never,
      read: () => ({
        input: {},
        fingerprint: Buffer.alloc(32),
        priceMicros: 20_000n,
        address: '/',
        keyTerms(accountId) {
          if (ownMicros === null) throw new Error('no price for this key');
          const priceMicros = accountId === 7n ? ownMicros : 90_000n;
          return { priceMicros, freeCallsPerDay: 0, callsPerMinute: null, callsPerDay: null };
        },
      }),
    },
  });
  for (const [accountId, now, before, least] of [
    [7n, 30_000n, 10_000n, 10_000n],
    [7n, 5_000n, 10_000n, 5_000n],
    [8n, 30_000n, 10_000n, 30_000n],
    [7n, 30_000n, null, 30_000n],
  ] as const)
    assert.equal(leastForKey(now, accountId, REQUEST, [then(before)]), least);
  assert.equal(leastForKey(30_000n, 7n, REQUEST, []), 30_000n);
  const metered = { ...SERVICE, metered: {} as NonNullable<Service['metered']> };
  assert.equal(leastForKey(30_000n, 7n, { ...REQUEST, service: metered }, [then(10_000n)]), 30_000n);
});

test('a wallet pays the terms that it signed for: those in force first, else those of before', async () => {
  for (const [paid, tried] of [
    [50_000n, [50_000n]],
    [60_000n, [50_000n, 70_000n, 60_000n]],
  ] as const) {
    const { rail, asked } = railFor(paid);
    assert.equal((await read(rail, 50_000n, 70_000n, 60_000n)).quote.priceMicros, paid);
    assert.deepEqual(asked, tried);
  }
});

test('a payment of no terms is refused by those in force, and a chain that does not answer is no refusal', async () => {
  const { rail } = railFor(1n);
  await assert.rejects(read(rail, 50_000n, 70_000n), /not 50000/);
  const silent = railFor(1n, { other: new Error('the chain is silent') });
  await assert.rejects(read(silent.rail, 50_000n, 70_000n), /silent/);
  assert.deepEqual(silent.asked, [50_000n]);
});

test('a key pays the least of what its owner may have been told', async () => {
  for (const [now, before, paid] of [
    [50_000n, [70_000n, 20_000n], 20_000n],
    [10_000n, [70_000n, 20_000n], 10_000n],
    [50_000n, [], 50_000n],
  ] as const) {
    const { rail, asked } = railFor(0n, { isChain: false });
    assert.equal((await read(rail, now, ...before)).quote.priceMicros, paid);
    assert.deepEqual(asked, [paid]);
  }
});
