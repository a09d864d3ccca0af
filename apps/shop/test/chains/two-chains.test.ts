/**
 * The sandbox's two EVM chains as callers meet them: every service that takes a chain works on Ethereum as on Base, and
 * says what that chain says. Calls are paid on Base alone.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { loadServices } from '../../../../packages/catalogue/src/services/registry.ts';
import type { Service } from '../../../../packages/core/src/service/define.ts';
import { inputSchemaOf, propertiesOf } from '../../../../packages/core/src/service/json-schema.ts';
import { BASE, ETHEREUM } from '../../../../packages/sandbox/src/chain/addresses.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

/** The fields by which a service is told a chain, and how Ethereum is said in each. */
const ON_ETHEREUM: Readonly<Record<string, unknown>> = {
  chain: 'ethereum',
  chains: ['ethereum'],
  networks: ['ethereum'],
  fromChain: 'ethereum',
};
/** These take a chain and ask its node nothing: they ask sources that know tokens by chain, or make keys. */
const ASK_NO_NODE = [
  'token-price',
  'token-sentiment',
  'trending-tokens',
  'portfolio-optimization',
  'correlation-matrix',
  'risk-metrics',
  'instant-agent-wallet',
  'agent-create-wallet',
];

const services = (await loadServices()).filter((service) =>
  /"(chain|chains|networks|fromChain)":\{/.test(JSON.stringify(inputSchemaOf(service))),
);

let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let world: PaymentWorld;
let key: string;
before(async () => {
  [database, upstreams, world] = await Promise.all([
    openTestDatabase(),
    startUpstreams(),
    startPaymentWorld({ ethereum: true }),
  ]);
  const environment = world.environment;
  server = await startTestServer({ pools: database, upstreamsUrl: upstreams.url, environment });
  key = await server.key('1000');
});
after(async () => {
  await server.close();
  await upstreams.stop();
  await Promise.all([database.close(), world.stop()]);
});

/** The example, asked of Ethereum: its tokens are elsewhere. */
function onEthereum(service: Service): Record<string, unknown> {
  const field = Object.keys(propertiesOf(inputSchemaOf(service))).find((name) => name in ON_ETHEREUM);
  const text = JSON.stringify(service.example)
    .replaceAll(BASE.usdc, ETHEREUM.usdc)
    .replaceAll(BASE.weth, ETHEREUM.weth)
    .replaceAll('"base"', '"ethereum"');
  return { ...(field === undefined ? {} : { [field]: ON_ETHEREUM[field] }), ...JSON.parse(text) };
}

async function buy(path: string, body: unknown) {
  const response = await server.call(path, key, body);
  const text = await response.text();
  assert.equal(response.status, 200, `${path}: ${text}`);
  const answer = JSON.parse(text);
  const sources: string[] = answer.provenance.sources.map(({ name }: { name: string }) => name);
  return { answer, text, asked: (chain: string) => sources.includes(chain) };
}

describe('every service that takes a chain', () => {
  test('is known: those that ask no node are named here', () => {
    const paths = services.map(({ path }) => path);
    for (const path of ASK_NO_NODE) assert(paths.includes(path), path);
    assert(paths.length > 15, paths.join());
  });

  for (const service of services) {
    test(`${service.path}: its example is answered on Ethereum, by what Ethereum says`, async () => {
      const there = await buy(service.path, onEthereum(service));
      const fits = service.output.safeParse(there.answer);
      assert(fits.success, fits.error?.message);
      const reads = !ASK_NO_NODE.includes(service.path);
      assert.equal(there.asked('ethereum'), reads, there.text);
      assert(!there.asked('base'), there.text);
      if (!reads) return;
      const here = await buy(service.path, service.example);
      assert(here.asked('base'), here.text);
      assert.notEqual(facts(here.answer), facts(there.answer));
    });
  }
});

/** What an answer says, but for when and from where. */
function facts({ provenance: _, timestamp: __, ...said }: Record<string, unknown>): string {
  return JSON.stringify(said);
}

describe('bodies of existing clients, which say Ethereum unless told otherwise', () => {
  const wallet = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65';
  const { usdc, weth } = ETHEREUM;
  const bodies: readonly (readonly [path: string, body: Record<string, unknown>])[] = [
    ['gas-price-oracle', { chains: ['ethereum', 'base'] }],
    ['token-metadata', { tokenAddress: usdc, chain: 'ethereum' }],
    ['token-metadata', { contractAddress: weth, chain: 'mainnet' }],
    ['token-price', { token_address: weth, chain: 'eth' }],
    ['token-sentiment', { token_address: weth, chain: 'ethereum' }],
    ['dex-liquidity', { token_address: weth, chain: 'ethereum' }],
    ['whale-alerts', { chains: ['ethereum'], threshold: 50_000 }],
    ['batch-quote', { tokens: [weth], chain: 'ethereum' }],
    ['multi-chain-balance', { address: wallet, chains: ['ethereum', 'base', 'polygon'] }],
    ['portfolio-tracker', { wallet_address: wallet, chains: ['ethereum'] }],
    ['wallet-risk', { wallet_address: wallet, chain: 'ethereum' }],
    ['approval-manager', { walletAddress: wallet, chain: 'ethereum', action: 'list' }],
    ['transaction-builder', { from: wallet, to: wallet, chain: 'ethereum', value: '0' }],
    ['contract-scan', { tokenAddress: weth, chain: 1 }],
    ['smart-contract-audit', { address: weth, chain: 'ethereum', scope: 'full' }],
    ['fraud-detection', { address: wallet, chain: 'ethereum' }],
    [
      'seamless-chain-bridge',
      { fromChain: 'ethereum', toChain: 'base', token: 'USDC', amount: '100', fromAddress: wallet },
    ],
  ];
  for (const [path, body] of bodies) {
    test(`${path} ${JSON.stringify(body)}`, async () => {
      await buy(path, body);
    });
  }
});

describe('a pool of two tokens', () => {
  test('stands where Uniswap has it on Ethereum, and its price is the one on Base though its depth is not', async () => {
    const quote = (chain: string) =>
      buy('batch-quote', { quotes: [{ fromToken: 'WETH', toToken: 'USDC', amount: '100', chain }] });
    const [there, here] = [(await quote('ethereum')).answer, (await quote('base')).answer];
    const [onEthereum, onBase] = [there.quotes[0], here.quotes[0]];
    assert(Math.abs(onEthereum.price / onBase.price - 1) < 0.05, JSON.stringify([there, here]));
    assert(onEthereum.priceImpactPct < onBase.priceImpactPct, JSON.stringify([there, here]));
    const pools = (await buy('dex-liquidity', { tokenAddress: ETHEREUM.weth, chain: 'ethereum' })).answer;
    const found = pools.pools.map(({ pairAddress }: { pairAddress: string }) => pairAddress.toLowerCase());
    // https://info.uniswap.org: USDC/WETH at 0.05 % and at 0.3 %.
    for (const pool of [
      '0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640',
      '0x8ad599c3a0ff1de082011efddc58f1908eb6e6d8',
    ])
      assert(found.includes(pool), found.join());
  });
});

test('nobody is asked to pay on Ethereum: in the body, the header and the documents there is no offer on it', async () => {
  const unpaid = await fetch(`${server.url}/x402/ping`, { method: 'POST' });
  const header = JSON.parse(
    Buffer.from(unpaid.headers.get('payment-required') ?? '', 'base64').toString('utf8'),
  );
  const body = await jsonOf(unpaid);
  const networks = [...body.accepts, ...header.accepts].map(({ network }: { network: string }) => network);
  assert.deepEqual([...new Set(networks)].sort(), ['base', 'eip155:8453']);
  const manifest = await jsonOf(fetch(`${server.url}/.well-known/x402.json`));
  assert(!JSON.stringify(manifest.payableNetworks).includes('eip155:1"'), JSON.stringify(manifest));
  const known = await jsonOf(fetch(`${server.url}/x402/payment-manifest.json`));
  assert(!JSON.stringify(known).includes('"eip155:1"'), JSON.stringify(known));
});
