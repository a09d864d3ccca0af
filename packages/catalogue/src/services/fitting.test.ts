/** Questions as many kinds of people ask them, and the service that answers each. Twins count alike. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fittingBest } from '../../../core/src/service/fitting.ts';
import { loadServices } from './registry.ts';

const services = await loadServices();

const QUESTIONS: Readonly<Record<string, string>> = {
  'What does one solana cost right now?': 'token-price',
  'how much are transaction fees on ethereum at the moment': 'gas-price-oracle',
  'is it cheap to send something on polygon today': 'gas-price-oracle',
  'how many decimals has this ERC-20': 'token-metadata',
  'which contracts are allowed to spend my tokens': 'approval-manager',
  'revoke an unlimited allowance': 'approval-manager',
  'is there enough liquidity to sell 50k of this coin': 'dex-liquidity',
  'best APY for my stablecoins on solana': 'solana-yield-finder',
  'what does the crowd think about dogecoin': 'token-sentiment',
  'did any big holder just move a lot of ETH': 'whale-alerts',
  'quote me several swaps in one go': 'batch-quote',
  'how much money is in this address on all chains': 'multi-chain-balance',
  'show my holdings and how they changed since last week': 'portfolio-tracker',
  'what memecoins are hot today': 'trending-tokens',
  'can I trust this wallet before I send it money': 'wallet-risk',
  'prepare a transfer of 1 ETH that I can sign myself': 'transaction-builder',
  'make an invoice link so a customer pays me USDC': 'payment-processing',
  'is this token a honeypot or rug pull': 'contract-scan',
  'what would this signature allow before I sign it': 'transaction-preflight',
  'simulate my unsigned transaction and tell me whether it drains me': 'transaction-preflight',
  'generate a new private key': 'instant-agent-wallet',
  'a custodial wallet that you look after for my bot': 'agent-create-wallet',
  'send USDC from base to arbitrum': 'seamless-chain-bridge',
  'which laws apply if I sell crypto in Germany': 'compliance-consultation',
  'do I need a money transmitter licence': 'compliance-consultation',
  'register my agent on chain so that others can verify who it is': 'verified-agent-identity',
  'find vulnerabilities in my Solidity code': 'smart-contract-audit',
  'how much is my house in Austin worth': 'property-valuation',
  'should we sign this office rental contract': 'lease-analysis',
  'is the building site behind schedule': 'construction-progress',
  'does this payment look like a scam': 'fraud-detection',
  'would you lend to this borrower': 'credit-risk-score',
  'is this person on the OFAC list': 'compliance-check',
  'will the euro go up against the dollar': 'forex-sentiment',
  'what are the papers saying about Tesla shares': 'stock-sentiment',
  'is the press positive about nuclear energy': 'sentiment-analysis',
  'should I buy or sell bitcoin now': 'trade-signals|trading-signal',
  'RSI and MACD for ETH/USDT': 'trading-signal|trade-signals',
  'how should I split my savings between these coins': 'portfolio-optimization',
  'do gold and bitcoin move together': 'correlation-matrix',
  'how much could I lose on a bad day': 'risk-metrics',
  'buy low on one exchange and sell high on another': 'arbitrage-scanner',
  'what can I bet on at Kalshi today': 'kalshi-markets|kalshi-search',
  'list the biggest events on Polymarket': 'polymarket-events',
  'who is likely to win the election according to bettors':
    'prediction-market-odds|polymarket-odds|kalshi-odds',
  'difference between Kalshi and Polymarket prices for the same bet': 'prediction-market-spread',
  'is the smog bad in Beijing': 'air-quality',
  'is anything burning in California': 'fire-alerts',
  'is this parcel forest or farmland': 'land-use',
  'are the crops healthy this season': 'vegetation|vegetation-health',
  'satellite photo of a hurricane': 'weather-imagery',
  'which Landsat or MODIS scenes exist for this area': 'earthdata-granules',
  'is there an algae bloom off the coast': 'earthdata-ocean-color',
  'how much did it rain in Nairobi yesterday': 'earthdata-precipitation',
  'does my field need watering': 'earthdata-soil-moisture',
  'how warm is the water at the beach': 'earthdata-sst',
  'could the river overflow next week': 'flood-detection',
  'read the thermometer in my greenhouse': 'iot-sensor-reading',
  'where are my delivery trucks': 'fleet-telematics',
  'live feed of what my device measures': 'iot-device-stream',
  'wind speed and temperature in Chicago right now': 'weather-station-data',
  'download a year of measurements as CSV': 'iot-bulk-data',
  'write me a short poem': 'ai-inference',
  'summarise this article with a language model': 'ai-inference',
  'is the server working': 'ping',
  'give me an API key that I can pay for with my wallet': 'instant-api-key',
};

/** What of a question's rank is right: 0 for the first place. */
function rankOf(question: string, wanted: string): number {
  const found = fittingBest(question, services, 5).map(({ path }) => path);
  const rank = found.findIndex((path) => wanted.split('|').includes(path));
  return rank === -1 ? Number.POSITIVE_INFINITY : rank;
}

test('plain questions find their service: 85 of 100 first, 97 of 100 among five', (t) => {
  const ranks = Object.entries(QUESTIONS).map(([question, wanted]) => ({
    question,
    wanted,
    rank: rankOf(question, wanted),
  }));
  for (const { question, wanted, rank } of ranks)
    if (rank > 0) t.diagnostic(`${rank} ${question} (${wanted}): ${named(question)}`);
  const share = (within: number) => ranks.filter(({ rank }) => rank < within).length / ranks.length;
  assert.ok(ranks.length >= 60);
  assert.ok(share(1) >= 0.85, `first: ${share(1)}`);
  assert.ok(share(5) >= 0.97, `among five: ${share(5)}`);
});

const named = (words: string) =>
  fittingBest(words, services, 5)
    .map(({ path }) => path)
    .join(', ');

test('the path, the name and the tool of a service find it first', () => {
  const paths = new Set(services.map(({ path }) => path));
  const isPathOfTwin = (name: string) => paths.has(name.toLowerCase().replaceAll(' ', '-'));
  for (const { path, name } of services)
    for (const words of [path, path.replaceAll('-', '_'), ...(isPathOfTwin(name) ? [] : [name])])
      assert.equal(fittingBest(words, services, 1)[0]?.path, path, words);
});

test('words are found whole, begun, in another form and mistyped', () => {
  for (const [words, path] of [
    ['wildfires', 'fire-alerts'],
    ['polymarkt', 'polymarket-search'],
    ['sentimnt of stocks', 'stock-sentiment'],
    ['vegetat', 'vegetation'],
    ['precipitations', 'earthdata-precipitation'],
  ] as const)
    assert.ok(named(words).includes(path), `${words}: ${named(words)}`);
});

test('words that say nothing find nothing, and hostile text is only words', () => {
  for (const words of ['', '   ', '?!', 'the of is a', '\u0000\u202e', '漢字'])
    assert.deepEqual(fittingBest(words, services, 5), [], words);
  assert.ok(fittingBest('price '.repeat(100_000), services, 5).length <= 5);
  assert.deepEqual(fittingBest('__proto__ constructor hasOwnProperty', services, 5).length <= 5, true);
});

test('what is asked for is found among the services that are given, and no others', () => {
  const some = services.filter(({ tag }) => tag === 'Banking');
  assert.deepEqual(
    fittingBest('fire near a city', some, 5).filter(({ tag }) => tag !== 'Banking'),
    [],
  );
  assert.deepEqual(fittingBest('sanctions', [], 5), []);
});
