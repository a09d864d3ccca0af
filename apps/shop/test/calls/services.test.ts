/** Every service on sale, bought over HTTP against the sandbox's upstreams, as a client would. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { z } from 'zod';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import { inputSchemaOf } from '../../../../packages/core/src/service/json-schema.ts';
import { CHAINS } from '../../../../packages/core/src/words/chain-names.ts';
import { type SandboxDevices, startDevices } from '../../../../packages/sandbox/src/devices/devices.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { openCertificate } from '../devices.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

const services = await loadServices();

const WALLET = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65';

/** Bodies that existing clients send, which are not in the interface's words. */
const CLIENT_BODIES: readonly (readonly [path: string, body: Record<string, unknown>])[] = [
  ['token-price', { token_address: '0x4200000000000000000000000000000000000006', chain: 'eip155:8453' }],
  ['token-price', { address: '0x4200000000000000000000000000000000000006', chain: 8453 }],
  ['token-price', { symbol: 'ETH' }],
  ['trending-tokens', {}],
  ['trending-tokens', { limit: 50, chain: 'base-mainnet' }],
  ['trade-signals', {}],
  ['trade-signals', { symbol: 'ETH/USDT', timeframe: '4h', risk_level: 'high' }],
  ['trading-signal', { symbol: 'BTC/USDT' }],
  ['trading-signal', { pair: 'ETH', timeframe: '1m', indicators: ['RSI', 'MACD'] }],
  [
    'portfolio-optimization',
    {
      holdings: [
        { token: 'BTC', amount: '0.5', currentValue: 50 },
        { token: 'ETH', amount: '4', currentValue: 40 },
      ],
    },
  ],
  ['portfolio-optimization', { current_holdings: ['BTC', 'ETH', 'SOL'], risk_tolerance: 'moderate' }],
  ['token-sentiment', { token_address: '0x4200000000000000000000000000000000000006', chain: 'base' }],
  ['token-sentiment', { symbol: 'btc' }],
  ['sentiment-analysis', { token: 'ETH', sources: ['twitter', 'reddit', 'news'] }],
  ['sentiment-analysis', { topic: 'interest rates' }],
  [
    'stock-sentiment',
    { symbol: 'aapl', includeNews: true, includeTechnicals: true, includeInstitutional: true },
  ],
  ['forex-sentiment', { pair: 'EURUSD', includeEconomic: true, includeCentralBank: true }],
  ['arbitrage-scanner', {}],
  ['arbitrage-scanner', { min_profit_pct: -5, chains: ['base', 'bsc', 'optimism'], tokens: ['ETH', 'BTC'] }],
  ['correlation-matrix', { tokens: ['BTC', 'ETH'], timeframe: '7d' }],
  ['risk-metrics', { token: 'ETH' }],
  ['risk-metrics', { tokenAddress: '0x4200000000000000000000000000000000000006', chain: 'base' }],
  ['polymarket-events', { limit: 50 }],
  ['kalshi-markets', { limit: 50 }],
  ['prediction-market-spread', {}],
  ['wallet-risk', { address: WALLET }],
  ['fraud-detection', { amount: '250.00', currency: 'USD', merchant: WALLET, timestamp: 1_763_000_000 }],
  ['fraud-detection', { address: WALLET, chain: 'base' }],
  ['credit-risk-score', { entityId: WALLET, entityType: 'wallet' }],
  ['credit-risk-score', { wallet_address: WALLET, includeDefi: false }],
  ['compliance-check', { entityId: WALLET, checkType: 'aml' }],
  ['compliance-check', { address: WALLET, checkType: 'enhanced', entityName: 'Sandbox Alias 4' }],
  ['compliance-consultation', { businessType: 'money_transmission', jurisdictions: ['US', 'France'] }],
  ['compliance-consultation', { services: ['custody'], jurisdiction: 'singapore', transactionVolume: 5 }],
  ['wallet-risk', { wallet_address: WALLET, chain: 8453 }],
  ['polymarket-search', { q: 'bitcoin', limit: 50 }],
  ['kalshi-search', { query: 'BITCOIN', limit: '50' }],
  ['kalshi-odds', { marketTicker: 'KXSYNBTCQ' }],
  ['kalshi-odds', { eventTicker: 'kxsynbtcq' }],
  ['prediction-market-odds', { query: 'bitcoin' }],
  ['prediction-market-odds', { eventId: '900001', platforms: 'polymarket' }],
  ['earthdata-sst', { latitude: '36.8', longitude: -122 }],
  ['satellite-earthdata', { dataset: 'ocean_temp', latitude: 36.2, longitude: -123.5 }],
  ['satellite-earthdata', { product: 'soil-moisture', lat: 41.6, lon: -93.6, date: '2026-01-10' }],
  ['satellite-earthdata', { product: 'granules' }],
  ['earthdata-granules', {}],
  [
    'earthdata-granules',
    { shortName: 'MOD13Q1', bbox: '-123,37,-122,38', dateStart: '2026-01-01', dateEnd: '2026-03-01' },
  ],
  ['earthdata-precipitation', { latitude: '48.1', longitude: 11.6, hours_back: '72' }],
  ['earthdata-soil-moisture', { latitude: 48.1, longitude: '11.6' }],
  ['earthdata-ocean-color', { latitude: 36.2, longitude: 236.5 }],
  ['lease-analysis', { monthlyRent: 2500, termMonths: 36, securityDeposit: 5000 }],
  ['construction-progress', { projectId: 'p-1', milestones: [{ name: 'Foundation', complete: true }] }],
  [
    'property-valuation',
    { property_address: '12 Peach St, Atlanta, GA', propertyType: 'single_family', squareFootage: '1800' },
  ],
  ['property-valuation', { address: '9 Elm St\nSpringfield, IL 62701, USA', bedrooms: '3', bathrooms: 2.5 }],
  ['fire-alerts', {}],
  ['fire-alerts', { latitude: '-11.2', longitude: 22.4, radius_km: '300', hours: 72 }],
  ['vegetation', { latitude: 48.1, longitude: 11.6, date: '2026-08-01' }],
  ['land-use', { latitude: '48.1', longitude: '11.6', year: '2022' }],
  ['flood-detection', { latitude: 48.2, longitude: 15.6, date: '2026-05-01' }],
  ['air-quality', { latitude: 28.6, longitude: 77.2, pollutant: 'no2' }],
  ['weather-imagery', { latitude: 36.8, longitude: -122, layer: 'GOES_East_ABI_Band13_Clean_Infrared' }],
  ['solana-yield-finder', {}],
  ['solana-yield-finder', { asset: 'USDC', minApy: 0.0 }],
  ['solana-yield-finder', { token: 'SOL', min_apy: 3.0, limit: 50 }],
  ['seamless-chain-bridge', { fromChain: 'base', toChain: 'arbitrum', token: 'USDC', amount: '100' }],
  [
    'seamless-chain-bridge',
    {
      from_chain: 8453,
      to_chain: 'arb',
      tokenAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      amount: 25,
      toAddress: WALLET,
    },
  ],
  [
    'seamless-chain-bridge',
    {
      fromChain: 'base',
      toChain: 'optimism',
      token: 'ETH',
      amount: '0.01',
      fromAddress: WALLET,
      toAddress: WALLET,
    },
  ],
  ['contract-scan', { tokenAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', chain: 'eip155:8453' }],
  ['contract-scan', { contract_address: '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432', chainId: 8453 }],
  ['whale-alerts', { chains: ['base'], threshold: 50000 }],
  ['multi-chain-balance', { address: WALLET, chains: ['ethereum', 'base', 'bsc'] }],
  ['portfolio-tracker', { wallet_address: WALLET }],
  ['payment-processing', { merchantId: 'm', paymentType: 'crypto', currencies: ['USDC'] }],
  ['transaction-builder', { from: WALLET, to: WALLET, chain: 'base', value: '0' }],
  ['approval-manager', { walletAddress: WALLET, chain: 'base', action: 'list' }],
  ['batch-quote', { tokens: ['0x4200000000000000000000000000000000000006'], chain: 'base' }],
  ['gas-price-oracle', { chain: 'base' }],
  ['token-metadata', { contractAddress: '0x4200000000000000000000000000000000000006', chainId: 8453 }],
  ['agent-create-wallet', { agent_id: 'agent-7', chain: 'base' }],
  ['verified-agent-identity', { agentAddress: WALLET }],
  [
    'smart-contract-audit',
    { address: '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432', chainId: 8453, scope: 'full' },
  ],
  ['smart-contract-audit', { contractCode: 'contract A { address a; function f() public { a.call(""); } }' }],
  ['weather-station-data', { latitude: '40.7', longitude: -74, radius_km: 50 }],
  ['iot-device-stream', { device_id: 'iot-device-001', duration_seconds: 60 }],
  ['iot-device-stream', { deviceId: 'demo-truck-1', duration: 300, cursor: '5' }],
  ['iot-sensor-reading', { device_id: 'iot-device-001', sensor_type: 'temperature' }],
  ['iot-bulk-data', { deviceId: 'iot-device-002', format: 'json', sensorType: 'humidity' }],
  ['fleet-telematics', { deviceId: 'demo-truck-1', metrics: ['speed', 'fuel'], timeRangeHours: 1 }],
  ['fleet-telematics', { fleetId: 'fleet-001', vehicleIds: ['demo-truck-2'], limit: 50 }],
  ['ai-inference', { prompt: 'What is 2 + 2?', max_tokens: 50, system_prompt: 'Be brief.' }],
];

let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let world: PaymentWorld;
let key: string;
let devices: SandboxDevices;
const certificate = openCertificate();
before(async () => {
  [database, upstreams, world] = await Promise.all([
    openTestDatabase(),
    startUpstreams(),
    startPaymentWorld({ solana: true }),
  ]);
  server = await startTestServer({
    pools: database,
    upstreamsUrl: upstreams.url,
    environment: { ...world.environment, ...certificate.environment },
  });
  key = await server.key('1000');
  devices = await startDevices({
    serverUrl: server.url,
    apiKey: key,
    ca: certificate.ca,
    everyMs: 1_000,
    nowMs: Date.now,
    failed: (what) => assert.fail(what),
  });
});
after(async () => {
  await devices.stop();
  await server.close();
  certificate.close();
  await upstreams.stop();
  await Promise.all([database.close(), world.stop()]);
});

const provenance = z.object({
  mode: z.enum(['live', 'cached', 'sandbox', 'computed']),
  method: z.string().min(10),
  sources: z.array(
    z.object({
      name: z.string(),
      url: z.url(),
      retrievedAt: z.iso.datetime(),
      cached: z.boolean(),
      sandbox: z.boolean(),
    }),
  ),
  notes: z.array(z.string()),
});

/** Beyond a millionth, this many digits are no source's and no method's: they are what a float leaves behind. */
const MOST_DIGITS = 10;

/** The numbers of an answer that claim to be more exact than they can be, each with its place. */
function tooExact(value: unknown, at: string): string[] {
  if (typeof value === 'number') {
    const [, whole = '', places = ''] = /^-?(\d+)\.(\d+)$/.exec(String(value)) ?? [];
    const digits = `${whole}${places}`.replace(/^0+/, '').length;
    return places.length > 6 && digits > MOST_DIGITS ? [`${at} ${value}`] : [];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => tooExact(each, `${at}/${key}`));
}

async function buy(path: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await server.call(path, key, body);
  const text = await response.text();
  assert.equal(response.status, 200, `${path}: ${text}`);
  const answer: Record<string, unknown> = JSON.parse(text);
  assert.equal(answer.success, true);
  assert(z.iso.datetime().safeParse(answer.timestamp).success);
  const { mode, sources } = provenance.parse(answer.provenance);
  assert.equal(mode, sources.length === 0 ? 'computed' : 'sandbox', 'sandbox answers are labelled as such');
  return answer;
}

describe('every service', () => {
  for (const service of services) {
    test(`${service.path}: its example buys an answer that fits its schema`, async () => {
      const answer = await buy(service.path, service.example);
      const fits = service.output.safeParse(answer);
      assert(fits.success, fits.error?.message);
      assert.deepEqual(tooExact(answer, ''), [], 'numbers that claim to be more exact than they can be');
    });

    test(`${service.path}: its example fits its published schema`, () => {
      const schema = z.fromJSONSchema(inputSchemaOf(service) as Parameters<typeof z.fromJSONSchema>[0]);
      const fits = schema.safeParse(service.example);
      assert(fits.success, fits.error?.message);
    });

    test(`${service.path}: unpaid, it asks for its price in one challenge that clients can read`, async () => {
      for (const [method, body] of [
        ['POST', '{}'],
        ['POST', undefined],
        ['GET', undefined],
      ] as const) {
        const response = await fetch(`${server.url}/x402/${service.path}`, {
          method,
          ...(body === undefined ? {} : { body }),
        });
        assert.equal(response.status, 402);
        const text = await response.text();
        const challenge = JSON.parse(text);
        assert.equal(challenge.x402Version, 1, 'the body is what the first generation reads');
        const required = JSON.parse(
          Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString('utf8'),
        );
        assert.equal(required.x402Version, 2, 'the header is what the second generation reads');
        assert.equal(required.accepts[0].amount, String(Math.round(Number(service.priceUsd) * 1_000_000)));
        assert.equal(challenge.error, 'X-PAYMENT header is required');
        assert.equal(challenge.accepts[0].maxAmountRequiredUSD, Number(service.priceUsd));
        assert.equal(response.headers.get('x-payment-price'), `$${service.priceUsd} USDC`);
        assert.equal(response.headers.get('cache-control'), 'no-store');
        assert.equal(challenge.requestId, response.headers.get('x-request-id'));
      }
      const head = await fetch(`${server.url}/x402/${service.path}`, { method: 'HEAD' });
      assert.deepEqual([head.status, await head.text()], [402, '']);
    });
  }
});

/** Tickers that a buyer would try first. */
const STOCKS =
  'AAPL MSFT NVDA TSLA COIN GOOGL GOOG AMZN META AVGO ORCL JPM WMT V LLY SPY QQQ MA NFLX XOM PLTR JNJ COST HD BABA BAC KO AMD IBM GS CRM DIS UBER PEP INTC MSTR HOOD BRK.B'.split(
    ' ',
  );
const COINS =
  'BTC ETH SOL BNB XRP ADA DOGE LTC AVAX DOT LINK UNI AAVE ARB OP POL PEPE SHIB TRX TON XLM XMR BCH ETC ATOM NEAR APT SUI FIL HBAR'.split(
    ' ',
  );

test('tickers that a buyer would try first are known', async () => {
  for (const symbol of STOCKS) await buy('stock-sentiment', { symbol });
  for (const token of COINS) await buy('trade-signals', { token });
});

test('the example of property-valuation is compared with sales of the sandbox’s double, each with day and distance', async () => {
  const { example } = services.find(({ path }) => path === 'property-valuation') ?? assert.fail();
  const { data, provenance } = (await buy('property-valuation', example)) as {
    data: { comparablesUsed: number; comparablesSource: unknown; comparables: Record<string, unknown>[] };
    provenance: { sources: { name: string; sandbox: boolean }[] };
  };
  assert(data.comparablesUsed >= 3 && data.comparablesUsed === data.comparables.length);
  for (const { soldOn, distanceMeters } of data.comparables)
    assert(z.iso.date().safeParse(soldOn).success && Number(distanceMeters) <= 1_600);
  assert.deepEqual(data.comparablesSource, {
    name: 'Sandbox sales',
    url: null,
    terms: 'Made up; no home was sold',
  });
  assert.equal(provenance.sources.find(({ name }) => name === 'sales')?.sandbox, true);
});

describe('bodies of existing clients', () => {
  for (const [path, body] of CLIENT_BODIES) {
    test(`${path} ${JSON.stringify(body)}`, async () => {
      await buy(path, body);
    });
  }

  test('no service answers an empty body or rubbish with anything but 200 or a 4xx that names a field, uncharged', async () => {
    const rubbish = [
      {},
      { limit: -1 },
      { tokenAddress: 7, chain: [] },
      { prompt: null },
      { lat: 'x', lon: {} },
    ];
    for (const service of services) {
      for (const body of rubbish) {
        const response = await server.call(service.path, key, body);
        const answer = await jsonOf(response);
        if (response.status === 200) continue;
        assert(
          [400, 404, 422].includes(response.status),
          `${service.path} ${JSON.stringify(body)}: ${response.status}`,
        );
        assert.equal(answer.charged, false);
        assert(answer.fields.length > 0, `${service.path}: ${JSON.stringify(answer)}`);
        assert.equal(response.headers.get('x-credits-used'), null);
      }
    }
  });
});

test('chains are named as readable where their nodes are configured, and nowhere else', async () => {
  const [ping, catalog, capabilities, recipe] = await Promise.all([
    buy('ping', {}),
    ...['/x402/catalog', '/api/auth/capabilities', '/x402/recipes/multi-chain-balance'].map((path) =>
      jsonOf(fetch(`${server.url}${path}`)),
    ),
  ]);
  const readable = ['base', 'solana'];
  assert.deepEqual([ping.chains, capabilities.readableChains], [readable, readable]);
  const notReadable = CHAINS.filter((chain) => !readable.includes(chain));
  assert.deepEqual(recipe.chains, { readable, notReadable });
  const chainsOf = (id: string) => catalog.services.find((each: { id: string }) => each.id === id).chains;
  assert.deepEqual(chainsOf('multi-chain-balance'), { readable, notReadable });
  assert.deepEqual(chainsOf('transaction-builder').readable, ['base']);
  assert.equal(chainsOf('fire-alerts'), null);
});

describe('a source that fails', () => {
  test('costs nothing, says when to come back, and takes the service off sale when it keeps failing', async () => {
    const own = await startUpstreams();
    const other = await startTestServer({ pools: database, upstreamsUrl: own.url });
    try {
      const poor = await other.key('10');
      await fetch(`${own.url}/__control/faults`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ upstream: 'erddap', fault: 'status', status: 500 }),
      });
      let last = await other.call('earthdata-sst', poor, { lat: 36.8, lon: -122 });
      for (let i = 0; i < 5 && (await jsonOf(last.clone())).code !== 'SERVICE_UNAVAILABLE'; i++) {
        assert.equal(last.status, 503);
        assert.equal((await jsonOf(last)).charged, false);
        assert(Number(last.headers.get('retry-after')) > 0);
        last = await other.call('earthdata-sst', poor, { lat: 36.8, lon: -122 });
      }
      assert.equal((await jsonOf(last)).reason, 'upstream_down');
      const unpaid = await fetch(`${other.url}/x402/earthdata-sst`, { method: 'POST' });
      assert.equal(unpaid.status, 503, 'what is not for sale asks for no payment');
      const catalog = await jsonOf(fetch(`${other.url}/x402/catalog`));
      const line = catalog.services.find(({ path }: { path: string }) => path.endsWith('earthdata-sst'));
      assert.equal(line.available, false);
      const me = await jsonOf(fetch(`${other.url}/api/keys/me`, { headers: { 'x-api-key': poor } }));
      assert.deepEqual([me.balanceUsd, me.reservedUsd], ['10.000000', '0.000000']);
    } finally {
      await other.close();
      await own.stop();
    }
  });

  test('that was never configured is a 503 too, and the rest is still sold', async () => {
    const bare = await startTestServer({ pools: database });
    try {
      const own = await bare.key('10');
      const ai = await bare.call('ai-inference', own, { prompt: 'hello' });
      assert.equal(ai.status, 503);
      assert.equal((await jsonOf(ai)).reason, 'not_configured');
      assert.equal((await bare.call('ping', own)).status, 200);
    } finally {
      await bare.close();
    }
  });
});
