/** The legacy family as its clients see it: the interface's prices, GET and POST alike, one key and one charge. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { privateKeyToAddress } from 'viem/accounts';
import { z } from 'zod';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { UPSTREAM_NAMES } from '../../../../packages/catalogue/src/upstreams/index.ts';
import { defineService, type Service } from '../../../../packages/core/src/service/define.ts';
import { answer } from '../../../../packages/core/src/words/answer.ts';
import { noAnswer } from '../../../../packages/core/src/words/failure.ts';
import { upstreamBaseUrlVariable } from '../../../../packages/core/src/words/upstream-variables.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

const WALLET = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65';

/** The interface: "Legacy credit endpoints", with a query for each. */
const PRICED = [
  ['instant-wallet', '1.00', 10, 'instant-agent-wallet', '1.00', ''],
  ['arbitrage-scanner', '1.25', 13, 'arbitrage-scanner', '1.25', 'token=ETH'],
  ['trade-signals', '0.75', 8, 'trade-signals', '0.75', 'symbol=ETH&timeframe=4h'],
  ['multi-chain-balance', '0.50', 5, 'multi-chain-balance', '0.50', `wallet=${WALLET}&chains=base`],
  ['wallet-analysis', '0.50', 5, 'wallet-risk', '0.50', `address=${WALLET}&chain=base`],
  ['polymarket', '0.50', 5, 'polymarket-search', '0.25', 'query=rates&limit=5'],
  ['stock-sentiment', '0.40', 4, 'stock-sentiment', '0.40', 'symbol=ACME'],
  ['forex-sentiment', '0.40', 4, 'forex-sentiment', '0.40', 'pair=EURUSD'],
] as const;

/** A service that tells what it was asked, with the path, price and input of one that may not be there yet. */
function standIn(
  path: string,
  priceUsd: string,
  input: z.ZodObject,
  example: Record<string, unknown>,
  fields: Record<string, unknown>,
): Service {
  return defineService({
    path,
    name: path,
    tag: 'Investment',
    priceUsd,
    summary: 'For tests.',
    input,
    output: z.looseObject(Object.fromEntries(Object.keys(fields).map((name) => [name, z.unknown()]))),
    example,
    async run(asked) {
      if (Object(asked).symbol === 'NOBODY') throw noAnswer('UNLISTED', 'not listed', 'symbol');
      return answer({ ...fields, asked }, { method: 'Said by a test.', notes: [`asked ${path}`] });
    },
  });
}

const text = z.string().min(1).max(60);
const STAND_INS = [
  standIn(
    'arbitrage-scanner',
    '1.25',
    z.object({ minProfitPercent: z.number().default(0.5), assets: z.array(text).max(10).optional() }),
    {},
    { opportunities: [{ asset: 'ETH', buyExchange: 'a', profitPercentage: 0.7, estimatedProfit: 70 }] },
  ),
  standIn(
    'wallet-risk',
    '0.50',
    z.object({ walletAddress: text, chain: text }),
    { walletAddress: WALLET, chain: 'base' },
    { riskScore: 12, riskTier: 'LOW', complianceFlags: ['none'], recommendation: 'Carry on.' },
  ),
  standIn(
    'polymarket-search',
    '0.25',
    z.object({ query: text, limit: z.number().int().max(50).default(10) }),
    { query: 'rates' },
    {
      results: [
        { title: 'Cut?', prices: [0.62, 0.38], volume: 5 },
        { title: 'None?', prices: [] },
      ],
    },
  ),
  standIn(
    'stock-sentiment',
    '0.40',
    z.object({ symbol: text, includeNews: z.boolean().default(true) }),
    { symbol: 'ACME' },
    { data: { symbol: 'ACME', sentimentScore: -7 } },
  ),
  standIn(
    'forex-sentiment',
    '0.40',
    z.object({ pair: text }),
    { pair: 'EURUSD' },
    { data: { pair: 'EUR/USD' } },
  ),
];

let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let world: PaymentWorld;
let server: TestServer;
let registry: readonly Service[];
before(async () => {
  [database, upstreams, world, registry] = await Promise.all([
    openTestDatabase(),
    startUpstreams(),
    startPaymentWorld(),
    loadServices(),
  ]);
  server = await startWith([
    ...registry,
    ...STAND_INS.filter(({ path }) => registry.every((service) => service.path !== path)),
  ]);
});
after(async () => {
  await server.close();
  await upstreams.stop();
  await Promise.all([database.close(), world.stop()]);
});

function startWith(services: readonly Service[], nowMs = Date.now): Promise<TestServer> {
  const { environment } = world;
  return startTestServer({ pools: database, upstreamsUrl: upstreams.url, environment, services, nowMs });
}

function get(path: string, key?: string, headers: Record<string, string> = {}): Promise<Response> {
  const credential: Record<string, string> = key === undefined ? {} : { 'x-api-key': key };
  return fetch(`${server.url}/api/gpt/${path}`, { headers: { ...credential, ...headers } });
}

function post(path: string, key: string, body: unknown, headers: Record<string, string> = {}) {
  return fetch(`${server.url}/api/gpt/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key, ...headers },
    body: JSON.stringify(body),
  });
}

async function account(key: string) {
  const told = await jsonOf(fetch(`${server.url}/api/keys/me`, { headers: { 'x-api-key': key } }));
  assert.equal(told.reservedUsd, '0.000000');
  return told;
}
const balance = async (key: string): Promise<string> => (await account(key)).balanceUsd;

describe('every priced endpoint', () => {
  for (const [path, usd, credits, twin, twinUsd, query] of PRICED) {
    test(`${path}: unpaid, it asks for ${usd} USD, ${credits} credits, and says how to pay`, async () => {
      for (const method of ['GET', 'POST']) {
        const response = await fetch(`${server.url}/api/gpt/${path}`, { method });
        const body = await jsonOf(response);
        assert.deepEqual(
          [response.status, body.success, body.code, body.price_usd, body.credits],
          [402, false, 'PAYMENT_REQUIRED', Number(usd), credits],
        );
        assert.equal(body.accepts[0].maxAmountRequiredUSD, Number(usd));
        assert.deepEqual(
          body.ways_to_buy.map((each: { way: string; available: boolean }) => [each.way, each.available]),
          [
            ['trial', true],
            ['checkout', false],
            ['x402', true],
          ],
        );
        const { endpoint, price_usd } = body.ways_to_buy[2];
        assert.deepEqual([endpoint, price_usd], [`http://farebox.test/x402/${twin}`, Number(twinUsd)]);
        assert.equal(body.pricing.pro.credits, 600);
      }
    });

    test(`${path}: a key buys it by GET and by POST at exactly that price`, async () => {
      const key = await server.key('10');
      const byGet = await get(`${path}?${query}`, key);
      const body = await jsonOf(byGet);
      assert.equal(byGet.status, 200, JSON.stringify(body));
      assert.deepEqual(
        [body.success, body.service, body.creditsCharged, body.credits],
        [true, `gpt/${path}`, Number(usd), credits],
      );
      assert.equal(byGet.headers.get('x-credits-used'), `${usd}00`);
      const asPost = await fetch(`${server.url}/api/gpt/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify(Object.fromEntries(new URLSearchParams(query))),
      });
      assert.equal(asPost.status, 200, await asPost.text());
      const { balanceUsd, spending } = await account(key);
      assert.equal(Number(balanceUsd), 10 - 2 * Number(usd));
      assert.deepEqual(
        spending.map((each: { service: string; calls: number }) => [each.service, each.calls]),
        [[`gpt/${path}`, 2]],
      );
    });
  }
});

describe('what is answered', () => {
  test("a trade signal is the service's own, for ETH over 4 h unless something else is asked", async () => {
    const key = await server.key('10');
    const own = await jsonOf(server.call('trade-signals', key, { token: 'ETH', timeframe: '4h' }));
    const { signal, provenance } = await jsonOf(get('trade-signals', key));
    assert.deepEqual(
      [
        signal.symbol,
        signal.timeframe,
        signal.action,
        signal.entryPrice,
        signal.targetPrice,
        signal.stopLoss,
      ],
      ['ETH', '4h', own.signal, own.entry, own.target, own.stopLoss],
    );
    assert.match(signal.reasoning, /\w{4}/);
    assert.equal(provenance.mode, 'sandbox');
    const other = await jsonOf(get('trade-signals?symbol=BTC&timeframe=1d', key));
    assert.deepEqual([other.signal.symbol, other.signal.timeframe], ['BTC', '1d']);
  });

  test('a wallet has the key of its address, and what is kept of it cannot be read', async () => {
    const key = await server.key('2');
    const { wallet } = await jsonOf(get('instant-wallet', key, { 'idempotency-key': 'wallet' }));
    assert.equal(privateKeyToAddress(wallet.privateKey), wallet.address);
    assert.equal(wallet.network, 'base');
    const kept = await database.sql<{ body: string }[]>`select body from call_answers`;
    assert(kept.length > 0);
    for (const { body } of kept) assert(!body.includes(wallet.privateKey.slice(2)));
    const again = await jsonOf(get('instant-wallet', key, { 'idempotency-key': 'wallet' }));
    assert.equal(again.wallet.privateKey, wallet.privateKey);
  });

  test('texts of a query are read as what the service takes', async () => {
    const key = await server.key('10');
    const named = await jsonOf(
      get(`multi-chain-balance?address=${WALLET}&chains=base&includeTokens=false`, key),
    );
    assert.deepEqual([named.wallet, named.balances.length, named.balances[0].tokens], [WALLET, 1, []]);
    assert.equal(typeof named.balances[0].nativeBalance, 'string');
    const scan = await jsonOf(get('arbitrage-scanner?token=BTC,ETH', key));
    assert.equal(scan.token, 'BTC,ETH');
    const both = await jsonOf(post('polymarket?query=old&limit=3', key, { query: 'new' }));
    assert.equal(both.query, 'new', 'the body wins');
    const { markets, disclaimer } = await jsonOf(get('polymarket?query=bitcoin&limit=5', key));
    assert(markets.length > 0 && markets.length <= 5 && disclaimer.length > 0);
    for (const { title, probability, volume, endDate } of markets) {
      assert.match(title, /bitcoin/i);
      assert(probability > 0 && probability < 1 && volume > 0 && Date.parse(endDate) > 0);
    }
  });

  test('an analysis joins two services, and tells what it could not ask', async () => {
    const key = await server.key('10');
    const { analysis } = await jsonOf(get(`wallet-analysis?address=${WALLET}`, key));
    assert.equal(analysis.address, WALLET);
    assert.equal(typeof analysis.totalValueUSD, 'number');
    assert(Array.isArray(analysis.holdings));
    const alone = await startWith(STAND_INS.filter(({ path }) => path === 'wallet-risk'));
    try {
      const response = await fetch(`${alone.url}/api/gpt/wallet-analysis?address=${WALLET}`, {
        headers: { 'x-api-key': key },
      });
      const { analysis: half, provenance } = await jsonOf(response);
      assert.deepEqual(
        [half.riskScore, half.riskLevel, half.totalValueUSD, half.holdings],
        [12, 'LOW', null, null],
      );
      assert(provenance.notes.some((note: string) => note.includes('portfolio-tracker')));
    } finally {
      await alone.close();
    }
  });

  test('a probability is the price of the first outcome, or null', async () => {
    const alone = await startWith(STAND_INS);
    try {
      const key = await alone.key('1');
      const { markets } = await jsonOf(
        fetch(`${alone.url}/api/gpt/polymarket?query=rates`, { headers: { 'x-api-key': key } }),
      );
      assert.deepEqual(
        markets.map((each: { title: string; probability: number | null }) => [each.title, each.probability]),
        [
          ['Cut?', 0.62],
          ['None?', null],
        ],
      );
    } finally {
      await alone.close();
    }
  });
});

test('OpenAPI has every address of the family, each with what it takes and an answer of its form', async () => {
  // With the services as they are: stand-ins say nothing of their answers.
  const whole = await startTestServer({ pools: database, services: await loadServices() });
  try {
    const { paths } = await jsonOf(fetch(`${whole.url}/openapi.json`));
    const { knownPaths } = await jsonOf(fetch(`${whole.url}/api/gpt/what-there-is`));
    assert.ok(knownPaths.length > 10);
    const ids = new Set<string>();
    for (const path of knownPaths) {
      const methods = path.includes('/credits/')
        ? [path.endsWith('/create-session') ? 'post' : 'get']
        : ['get', 'post'];
      assert.deepEqual(Object.keys(paths[path] ?? {}), methods, path);
      for (const method of methods) {
        const { operationId, responses } = paths[path][method];
        assert(!ids.has(operationId), operationId);
        ids.add(operationId);
        const { example } = responses[200].content['application/json'];
        assert.equal(example.success, true, path);
        assert.ok(Object.keys(example).length > 2, `${path} shows nothing of its own`);
      }
    }
    const gas = paths['/api/gpt/gas-prices'].get.responses[200].content['application/json'].example;
    assert.deepEqual(Object.keys(gas.gasPrices[0]), [
      'chain',
      'gasPrice',
      'gasPriceGwei',
      'estimatedCostUSD',
    ]);
  } finally {
    await whole.close();
  }
});

describe('one charge', () => {
  test('GET and POST with one Idempotency-Key are one call; at another address it is another', async () => {
    const key = await server.key('2');
    const once = { 'idempotency-key': 'signal-1' };
    const crowd = await Promise.all([
      ...Array.from({ length: 10 }, () => get('trade-signals?symbol=ETH', key, once)),
      ...Array.from({ length: 10 }, () =>
        post('trade-signals', key, { token: 'ETH', timeframe: '4h' }, once),
      ),
    ]);
    const bodies = await Promise.all(crowd.map((each) => each.text()));
    assert.equal(new Set(bodies).size, 1);
    assert.deepEqual(new Set(crowd.map(({ status }) => status)), new Set([200]));
    assert.equal(crowd.filter((each) => each.headers.get('idempotent-replayed') === null).length, 1);
    const twin = await server.call('trade-signals', key, { token: 'ETH', timeframe: '4h' }, once);
    assert.deepEqual([twin.status, (await jsonOf(twin)).code], [409, 'IDEMPOTENCY_KEY_REUSED']);
    assert.equal(await balance(key), '1.250000');
  });

  test('what is refused or cannot be answered costs nothing', async () => {
    const key = await server.key('1');
    const cases = [
      ['trade-signals?timeframe=7m', 400, 'INVALID_REQUEST', 'timeframe'],
      ['trade-signals?symbol=', 400, 'INVALID_REQUEST', 'token'],
      ['multi-chain-balance', 400, 'INVALID_REQUEST', 'walletAddress'],
      ['polymarket?limit=5', 400, 'INVALID_REQUEST', 'query'],
    ] as const;
    for (const [path, status, code, field] of cases) {
      const response = await get(path, key);
      const body = await jsonOf(response);
      assert.deepEqual(
        [response.status, body.success, body.code, body.fields[0].field, body.charged],
        [status, false, code, field, false],
        path,
      );
    }
    assert.equal((await post('trade-signals', key, [])).status, 400);
    assert.equal((await get('instant-wallet', key, { 'idempotency-key': 'a b' })).status, 400);
    assert.equal(await balance(key), '1.000000');
    const alone = await startWith(STAND_INS);
    try {
      const url = `${alone.url}/api/gpt/stock-sentiment?symbol=NOBODY`;
      assert.equal((await fetch(url, { headers: { 'x-api-key': key } })).status, 422);
    } finally {
      await alone.close();
    }
    assert.equal(await balance(key), '1.000000');
  });

  test('a key that ran dry, is unknown, or comes beside a payment is told why', async () => {
    const dry = await server.key('0.30');
    const refused = await jsonOf(get('trade-signals', dry));
    assert.equal(refused.last_error_reason.code, 'INSUFFICIENT_CREDITS');
    const unknown = await get('trade-signals', `fbx_live_${'0'.repeat(64)}`);
    assert.deepEqual([unknown.status, (await jsonOf(unknown)).code], [402, 'API_KEY_INVALID']);
    const key = await server.key('1');
    for (const [name, value] of [
      ['x-payment', 'e30'],
      ['payment-signature', 'e30'],
      ['authorization', 'Payment e30'],
    ] as const) {
      const response = await get('trade-signals', key, { [name]: value });
      assert.deepEqual([response.status, (await jsonOf(response)).code], [402, 'WALLET_NOT_TAKEN_HERE']);
    }
    assert.equal(await balance(key), '1.000000');
    assert.equal(await balance(dry), '0.300000');
  });
});

describe('what is free', () => {
  test('needs no key and charges none that comes', async () => {
    const key = await server.key('1');
    const gas = await jsonOf(get('gas-prices?chains=base'));
    assert.equal(gas.success, true);
    assert.deepEqual(
      gas.gasPrices.map(({ chain }: { chain: string }) => chain),
      ['base'],
    );
    assert.match(gas.gasPrices[0].gasPrice, /^\d+(\.\d+)? Gwei$/);
    assert.match(gas.gasPrices[0].estimatedCostUSD, /^\$\d+(\.\d+)?$/);
    const { token } = await jsonOf(get('token-info?symbol=ETH', key));
    const own = await jsonOf(server.call('token-price', await server.key('1'), { symbol: 'ETH' }));
    assert.deepEqual([token.symbol, token.priceUSD], [own.symbol, own.price]);
    const list = await jsonOf(post('trending', key, { limit: 3 }));
    assert.deepEqual(
      list.trending.map(({ rank }: { rank: number }) => rank),
      [1, 2, 3],
    );
    assert.equal(await balance(key), '1.000000');
  });

  test('has the decimals of a token that has an address, from its contract', async () => {
    const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
    const { token } = await jsonOf(get(`token-info?address=${usdc}&chain=base`));
    assert.deepEqual([token.decimals, token.tokenAddress.toLowerCase()], [6, usdc.toLowerCase()]);
  });

  test('is bounded: in size, and for each address', async () => {
    for (const path of ['token-info', 'trending?limit=21']) {
      assert.equal((await get(path)).status, 400, path);
    }
    const stoppedAtMs = Date.now();
    const own = await startWith(registry, () => stoppedAtMs);
    try {
      const ask = () => fetch(`${own.url}/api/gpt/token-info`);
      const crowd = await Promise.all(Array.from({ length: 31 }, ask));
      const limited = crowd.filter(({ status }) => status === 429);
      assert.equal(limited.length, 1);
      assert(Number(limited[0]?.headers.get('retry-after')) >= 1);
    } finally {
      await own.close();
    }
  });
});

describe('the rest of the family', () => {
  test('what stands for a service that is not here is not sold, and opens with it', async () => {
    const bare = await startWith(registry.filter(({ path }) => path === 'ping'));
    try {
      const key = await bare.key('5');
      for (const path of ['gas-prices', ...PRICED.map(([name]) => name)]) {
        for (const headers of [new Headers(), new Headers({ 'x-api-key': key })]) {
          const response = await fetch(`${bare.url}/api/gpt/${path}`, { headers });
          const body = await jsonOf(response);
          assert.deepEqual(
            [response.status, body.success, body.code, body.charged],
            [503, false, 'SERVICE_UNAVAILABLE', false],
            path,
          );
          assert(Number(response.headers.get('retry-after')) >= 1);
        }
      }
      assert.equal(await balance(key), '5.000000');
    } finally {
      await bare.close();
    }
  });

  test('a service whose sources are down is not sold here either', async () => {
    const environment = Object.fromEntries(
      UPSTREAM_NAMES.map((name) => [upstreamBaseUrlVariable(name), 'none']),
    );
    const blind = await startTestServer({ pools: database, services: registry, environment });
    try {
      const response = await fetch(`${blind.url}/api/gpt/trade-signals`);
      assert.deepEqual([response.status, (await jsonOf(response)).reason], [503, 'not_configured']);
      assert.equal((await fetch(`${blind.url}/api/gpt/trending`)).status, 503);
    } finally {
      await blind.close();
    }
  });

  test('unknown addresses and methods are told what there is', async () => {
    const unknown = await get('nothing');
    assert.equal(unknown.status, 404);
    assert((await jsonOf(unknown)).knownPaths.includes('/api/gpt/trade-signals'));
    const wrong = await fetch(`${server.url}/api/gpt/credits/create-session`);
    assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'POST']);
    const put = await fetch(`${server.url}/api/gpt/trade-signals`, { method: 'PUT' });
    assert.deepEqual([put.status, put.headers.get('allow')], [405, 'GET, HEAD, POST']);
  });

  test('a HEAD never buys', async () => {
    const key = await server.key('1');
    const response = await fetch(`${server.url}/api/gpt/trade-signals`, {
      method: 'HEAD',
      headers: { 'x-api-key': key },
    });
    assert.equal(response.status, 405);
    assert.equal(await balance(key), '1.000000');
  });
});
