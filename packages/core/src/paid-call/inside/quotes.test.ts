import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Service } from '../../service/define.ts';
import type { ReadCall, ShownRoute } from '../../service/route.ts';
import type { Door } from '../door.ts';
import type { Quote, Rail } from '../rail.ts';
import { SERVICE } from '../sale.fixture.ts';
import { Quotes, readByRoute } from './quotes.ts';

const SHOWN: ShownRoute = {
  path: null,
  query: null,
  body: null,
  answer: null,
  headers: [],
  example: { url: '/stations/1', headers: {}, body: undefined },
  prices: null,
};

const ROUTE: Service = {
  ...SERVICE,
  path: 'get-stations-id',
  route: { method: 'GET', address: '/stations/:id', read: () => call('/stations/1', 1n), shown: SHOWN },
};

function call(address: string, priceMicros: bigint): ReadCall {
  return { input: {}, fingerprint: Buffer.alloc(32), priceMicros, address };
}

/** A door that counts the 402s which it makes, and rails whose offer can change. */
function stage({ prefix = '', tool }: { prefix?: string; tool?: (service: Service) => string } = {}) {
  const made: Quote[] = [];
  const offer = { revision: 1 };
  const door: Door = {
    prefix,
    ...(tool === undefined ? {} : { tool }),
    challenge(quote) {
      made.push(quote);
      return { answer: () => ({ headers: {}, body: String(quote.priceMicros) }) };
    },
    headers: {},
    fields: () => ({}),
    dress: () => ({ headers: {}, body: {} }),
  };
  const rail: Rail = {
    name: 'x402',
    get revision() {
      return offer.revision;
    },
    offer: () => ({ headers: {}, accepts: [], body: {} }),
    recognizes: () => false,
    read: () => Promise.reject(new Error('nothing is read here')),
  };
  const quotes = new Quotes({
    rails: [rail],
    door,
    baseUrl: 'http://shop',
    maxAnswerBytes: 1_000,
  });
  made.length = 0;
  return { quotes, made, offer };
}

test('a call of a route has its own price and its own address; each is quoted once', () => {
  const { quotes, made } = stage();
  for (const [address, price] of [
    ['/stations/7?unit=c', 10_000n],
    ['/stations/7?unit=f', 10_000n],
    ['/stations/7?unit=c', 20_000n],
    ['/stations/7?unit=c', 10_000n],
  ] as const) {
    const { quote, challenge } = quotes.of(ROUTE, call(address, price));
    assert.deepEqual([quote.resourceUrl, quote.priceMicros], [`http://shop${address}`, price]);
    assert.deepEqual(challenge, quotes.of(ROUTE, call(address, price)).challenge);
  }
  assert.equal(made.length, 3);
});

test('a call that could not be read, and a service without a route, are quoted at what stands in the registry', () => {
  const { quotes } = stage();
  const unread = quotes.of(ROUTE, null).quote;
  assert.deepEqual([unread.resourceUrl, unread.priceMicros], ['http://shop/stations/:id', 50_000n]);
  assert.equal(
    stage({ prefix: '/x402' }).quotes.of(SERVICE, null).quote.resourceUrl,
    'http://shop/x402/nickel',
  );
});

test('below a prefix, and as a tool, a route has the address of that door at the price of the call', () => {
  const below = stage({ prefix: '/x402' }).quotes.of(ROUTE, call('/stations/7', 10_000n)).quote;
  assert.deepEqual([below.resourceUrl, below.priceMicros], ['http://shop/x402/get-stations-id', 10_000n]);
  const asTool = stage({ prefix: '/mcp', tool: ({ path }) => path }).quotes.of(
    ROUTE,
    call('/stations/7', 10_000n),
  ).quote;
  assert.deepEqual(
    [asTool.resourceUrl, asTool.tool, asTool.priceMicros],
    ['mcp://tool/get-stations-id', 'get-stations-id', 10_000n],
  );
});

test('addresses that nobody asks for any more are forgotten, the oldest first', () => {
  const { quotes, made } = stage();
  const at = (index: number) => quotes.of(ROUTE, call(`/stations/${index}`, 10_000n));
  for (let index = 0; index < 2_000; index++) at(index);
  // Asked for again, it is not the oldest any more.
  at(0);
  at(2_000);
  assert.equal(made.length, 2_001);
  at(0);
  assert.equal(made.length, 2_001, 'what was asked for lately is remembered');
  at(1);
  assert.equal(made.length, 2_002, 'what was asked for longest ago is not');
});

test('a service that is sold otherwise now is quoted as it is now, also at an address that was quoted before', () => {
  const { quotes } = stage();
  const dearer: Service = { ...ROUTE, priceUsd: '0.07' };
  const asked = call('/stations/7', 10_000n);
  for (const service of [ROUTE, dearer, ROUTE]) {
    assert.equal(quotes.of(service, asked).quote.service, service);
    assert.equal(quotes.of(service, null).quote.service, service);
  }
  assert.equal(quotes.of(dearer, null).quote.priceMicros, 70_000n);
});

test('a 402 is made again when an offer has changed', () => {
  const { quotes, made, offer } = stage();
  const asked = call('/stations/7', 10_000n);
  quotes.of(ROUTE, asked);
  quotes.of(ROUTE, asked);
  assert.equal(made.length, 1);
  offer.revision = 2;
  quotes.of(ROUTE, asked);
  quotes.of(ROUTE, asked);
  assert.equal(made.length, 2);
});

test('what a route cannot read is kept for its caller, and thrown by nobody here', () => {
  const refusal = new Error('not readable');
  const request = {
    headers: {},
    rawBody: undefined,
    address: '',
    requestId: '',
    gone: () => false,
    assertMayBuy() {},
  };
  const read = () => {
    throw refusal;
  };
  const service: Service = { ...ROUTE, route: { method: 'GET', address: '/', read, shown: SHOWN } };
  assert.deepEqual(readByRoute({ ...request, service }), { called: null, unread: refusal });
  assert.deepEqual(readByRoute({ ...request, service: SERVICE }), { called: null, unread: null });
  assert.equal(readByRoute({ ...request, service: ROUTE }).called?.priceMicros, 1n);
});
