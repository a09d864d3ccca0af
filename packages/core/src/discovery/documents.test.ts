import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { z } from 'zod';
import { loadServices } from '../../../catalogue/src/services/registry.ts';
import { ABOUT_TAGS } from '../../../catalogue/src/services/tags.ts';
import { outputSchemaOf } from '../service/json-schema.ts';
import { agentInstructionsDocument } from './agent-instructions.ts';
import { capabilitiesDocument } from './capabilities.ts';
import { catalogDocument } from './catalog.ts';
import { catalogSearchDocument } from './catalog-search.ts';
import {
  type DiscoveryContext,
  firstService,
  type MppOffer,
  type X402Network,
  type X402Offer,
} from './context.ts';
import { mppCatalogDocument } from './mpp-catalog.ts';
import { openapiDocument, openapiPart, openapiParts, operationIdOf } from './openapi.ts';
import { findingsOf } from './openapi-validators.fixture.ts';
import { firstServiceByMpp, mppProgramOf } from './pay-by-mpp.ts';
import { firstServiceByWallet, walletProgramOf } from './pay-by-wallet.ts';
import { paymentManifestDocument } from './payment-manifest.ts';
import { recipeDocument } from './recipe.ts';
import { SAMPLE_ROUTES, SAMPLE_SERVICES, sampleContext } from './sample.fixture.ts';
import { llmsText, robotsText } from './text-documents.ts';
import { welcomeDocument } from './welcome.ts';
import { mppDocument } from './well-known-mpp.ts';
import { x402Document, x402ResourcesDocument } from './well-known-x402.ts';

/**
 * The whole document is for programs: it has every schema of every body and answer. It is bounded as it lies in memory and as
 * it is sent. Models read a part, the catalog or a recipe.
 */
const OPENAPI_BYTES = {
  plain: { aService: 5_020, besideServices: 40_000 },
  gzipped: { aService: 900, besideServices: 10_000 },
};
const MAX_PART_BYTES = 74_000;

const X402: X402Offer = {
  facilitatorUrl: 'https://facilitator.test',
  networks: [
    {
      network: 'eip155:8453',
      name: 'base',
      payTo: '0x0000000000000000000000000000000000000001',
      asset: { symbol: 'USDC', address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', decimals: 6 },
      canRefund: true,
    },
    {
      network: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
      name: 'solana',
      payTo: '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T',
      asset: { symbol: 'USDC', address: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', decimals: 6 },
      canRefund: false,
    },
  ],
};
const USDC_E = '0x20C000000000000000000000b9537d11c60E8b50';
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const MPP: MppOffer = {
  methods: [
    {
      method: 'tempo',
      chainId: 4217,
      currency: USDC_E,
      recipient: '0x0000000000000000000000000000000000000002',
      canRefund: false,
    },
    {
      method: 'evm',
      chainId: 8453,
      currency: USDC,
      recipient: '0x0000000000000000000000000000000000000001',
      canRefund: true,
    },
  ],
};
const withMpp = (overrides: Partial<DiscoveryContext> = {}) =>
  sampleContext({ rails: { x402: X402, mpp: MPP }, ...overrides });
const withWallets = (overrides: Partial<DiscoveryContext> = {}) =>
  sampleContext({ rails: { x402: X402, mpp: null }, ...overrides });

/** Every document, each as the text that goes over the wire. */
function everything(context: DiscoveryContext): Map<string, string> {
  return new Map([
    ['openapi', JSON.stringify(openapiDocument(context))],
    ['catalog', JSON.stringify(catalogDocument(context))],
    ['capabilities', JSON.stringify(capabilitiesDocument(context))],
    ['instructions', JSON.stringify(agentInstructionsDocument(context))],
    ['welcome', JSON.stringify(welcomeDocument(context))],
    ['llms', llmsText(context)],
    ['robots', robotsText(context)],
    ['payment manifest', JSON.stringify(paymentManifestDocument(context))],
    ['x402.json', JSON.stringify(x402Document(context))],
    ['x402', JSON.stringify(x402ResourcesDocument(context))],
    ['mpp catalog', JSON.stringify(mppCatalogDocument(context))],
    ['mpp.json', JSON.stringify(mppDocument(context))],
    ...context.services.map(
      (service) => [`recipe ${service.path}`, JSON.stringify(recipeDocument(service, context))] as const,
    ),
  ]);
}

const securityShape = z.array(z.record(z.string(), z.array(z.string())));
/** The parts of an OpenAPI document that the tests read. */
const openapiShape = z.looseObject({
  security: securityShape,
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.looseObject({
        operationId: z.string(),
        security: securityShape.optional(),
        'x-price-usd': z.number().optional(),
        'x-availability': z.string().optional(),
        'x-x402-networks': z.array(z.string()).optional(),
        'x-payment-info': z
          .strictObject({
            price: z.strictObject({
              mode: z.literal('fixed'),
              currency: z.literal('USD'),
              amount: z.string(),
            }),
            protocols: z.array(z.record(z.string(), z.unknown())),
            offers: z
              .array(
                z.strictObject({
                  method: z.enum(['tempo', 'evm']),
                  intent: z.literal('charge'),
                  amount: z.string().regex(/^\d+$/),
                  currency: z.string(),
                }),
              )
              .optional(),
          })
          .optional(),
        requestBody: z
          .looseObject({
            content: z.object({
              'application/json': z.object({
                schema: z.record(z.string(), z.unknown()),
                example: z.unknown(),
              }),
            }),
          })
          .optional(),
        responses: z.record(z.string(), z.unknown()),
      }),
    ),
  ),
  components: z.looseObject({
    schemas: z.record(z.string(), z.unknown()),
    responses: z.record(z.string(), z.unknown()),
  }),
});

function parsedOpenapi(context: DiscoveryContext) {
  return openapiShape.parse(JSON.parse(JSON.stringify(openapiDocument(context))));
}

/** The security of a service's operation, or else that of the whole document. */
function securityOf(context: DiscoveryContext, path: string) {
  const { paths, security } = parsedOpenapi(context);
  return paths[path]?.post?.security ?? security;
}

for (const [rails, context] of [
  ['credits alone', sampleContext()],
  ['x402 on', withWallets()],
  ['MPP on', withMpp()],
  ['cards', sampleContext({ cardCheckout: true })],
  ['MPP alone', sampleContext({ rails: { x402: null, mpp: MPP } })],
  [
    'no trial, no contact',
    sampleContext({ trial: null, shop: { name: 'Farebox', contactEmail: null, logoUrl: null } }),
  ],
] as const) {
  test(`no published validator finds anything in openapi.json (${rails})`, async () => {
    const document = JSON.parse(JSON.stringify(openapiDocument(context)));
    assert.deepEqual(await findingsOf(document), []);
    for (const [, pointer = ''] of JSON.stringify(document).matchAll(/"\$ref":"#([^"]+)"/g)) {
      const target = pointer
        .slice(1)
        .split('/')
        .reduce((node, name) => node?.[name], document);
      assert.equal(typeof target, 'object', `${pointer} leads nowhere`);
    }
  });
}

test('every document sells the same services at the same prices', () => {
  const context = sampleContext();
  const declared = new Map(SAMPLE_SERVICES.map(({ path, priceUsd }) => [`/x402/${path}`, priceUsd]));

  const catalog = catalogDocument(context);
  assert.deepEqual(new Map(catalog.services.map((entry) => [entry.path, entry.priceUSDC])), declared);
  assert.deepEqual(
    catalog.services.map((entry) => [entry['x-price-usd'], entry.priceUSD, entry.priceMicro]),
    [
      [0.05, 0.05, '50000'],
      [0.25, 0.25, '250000'],
      [0.25, 0.25, '250000'],
      [10, 10, '10000000'],
    ],
  );

  const paid = Object.entries(parsedOpenapi(context).paths).flatMap(([path, item]) =>
    item.post?.['x-payment-info'] === undefined ? [] : [{ path, operation: item.post }],
  );
  assert.deepEqual(
    new Map(paid.map(({ path, operation }) => [path, operation['x-payment-info']?.price.amount])),
    declared,
  );
  for (const { path, operation } of paid) assert.equal(operation['x-price-usd'], Number(declared.get(path)));

  const llms = [...llmsText(context).matchAll(/recipes\/([\w-]+)\): (\d+\.\d+) USD/g)];
  assert.deepEqual(new Map(llms.map(([, path, price]) => [`/x402/${path}`, price])), declared);

  const recipes = SAMPLE_SERVICES.map((service) => recipeDocument(service, context));
  assert.deepEqual(
    new Map(recipes.map(({ endpoint, priceUsd }) => [new URL(endpoint).pathname, priceUsd])),
    declared,
  );

  for (const count of [
    catalog.totalServices,
    capabilitiesDocument(context).supportedServices,
    welcomeDocument(context).services.total,
  ]) {
    assert.equal(count, SAMPLE_SERVICES.length);
  }
});

test('catalog and recipe tell how often an hour a service can answer anew', () => {
  const [first] = SAMPLE_SERVICES;
  assert(first !== undefined);
  const bounded = { ...sampleContext() };
  const { availability } = bounded;
  bounded.availability = (service) => ({
    ...availability(service),
    supply: service.path === first.path ? { answersPerHour: 360, source: 'news' } : null,
  });
  assert.deepEqual(
    catalogDocument(bounded).services.map(({ id, freshAnswersPerHour }) => [id, freshAnswersPerHour]),
    SAMPLE_SERVICES.map(({ path }) => [path, path === first.path ? 360 : null]),
  );
  assert.deepEqual(recipeDocument(first, bounded).freshAnswersPerHour, { most: 360, source: 'news' });
  assert.equal(recipeDocument(first, sampleContext()).freshAnswersPerHour, null);
});

test('a second name of a service is listed as such, and counted nowhere', () => {
  const [first] = SAMPLE_SERVICES;
  assert(first !== undefined);
  const alias = { ...first, path: 'second-name', aliasOf: first.path };
  const context = { ...sampleContext(), services: [...SAMPLE_SERVICES, alias] };
  const catalog = catalogDocument(context);
  assert.deepEqual(
    catalog.services.flatMap(({ id, aliasOf }) => (aliasOf === null ? [] : [[id, aliasOf]])),
    [['second-name', first.path]],
  );
  assert.deepEqual(
    [
      catalog.totalServices,
      catalogSearchDocument(context, { words: 'second-name', limit: 5 }).totalServices,
      capabilitiesDocument(context).supportedServices,
      welcomeDocument(context).services.total,
    ],
    new Array(4).fill(SAMPLE_SERVICES.length),
  );
  assert.equal(catalog.availableServices, catalogDocument(sampleContext()).availableServices);
});

test('a service that is not for sale is marked so in every list, and never recommended as the first call', () => {
  const context = sampleContext();
  const entry = catalogDocument(context).services.find(({ id }) => id === 'sea-temperature');
  assert.equal(entry?.available, false);
  assert.equal(entry?.unavailableReason, 'upstream_down');
  assert.equal(catalogDocument(context).availableServices, 3);
  assert.equal(
    parsedOpenapi(context).paths['/x402/sea-temperature']?.post?.['x-availability'],
    'upstream_down',
  );
  assert.match(llmsText(context), /sea-temperature\): .*Not for sale at the moment/);

  const resting = {
    available: false,
    reason: 'upstream_down',
    message: 'down',
    retryAfterMs: 1,
    chains: [],
  } as const;
  const selling = { available: true, reason: null, message: null, retryAfterMs: 0, chains: [] } as const;
  const only = (path: string) =>
    sampleContext({ availability: (service) => (service.path === path ? selling : resting) });
  assert.equal(firstService(only('token-price'))?.path, 'token-price');
  const nothing = sampleContext({ availability: () => resting });
  assert.equal(firstService(nothing), null);
  for (const [name, text] of everything(nothing)) assert.ok(text.length > 0, name);
});

test('what a wallet pays is the same in every document, and is the price', () => {
  const context = withWallets();
  const units = new Map([
    ['first-call', '50000'],
    ['ping', '250000'],
    ['token-price', '250000'],
    ['sea-temperature', '10000000'],
  ]);
  const manifest = paymentManifestDocument(context);
  assert.ok(manifest !== null);
  assert.deepEqual(new Map(manifest.resources.map(({ id, priceMicro }) => [id, priceMicro])), units);
  const { paths } = parsedOpenapi(context);
  for (const path of units.keys()) {
    const post = paths[`/x402/${path}`]?.post;
    assert.deepEqual(post?.['x-payment-info']?.protocols, [{ x402: {} }]);
    assert.equal(post?.['x-x402-networks'], undefined, 'every network of x-x402');
  }
  for (const service of context.services) {
    assert.equal(recipeDocument(service, context).payment.x402?.amount, units.get(service.path));
  }
  // The interface's payment information, field by field.
  const {
    protocol,
    x402Version,
    network,
    asset,
    assetAddress,
    recipientWallet,
    facilitator,
    supportedChains,
  } = manifest;
  assert.deepEqual(
    { protocol, x402Version, network, asset, assetAddress, recipientWallet, facilitator, supportedChains },
    {
      protocol: 'x402',
      x402Version: 2,
      network: 'eip155:8453',
      asset: 'USDC',
      assetAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      recipientWallet: '0x0000000000000000000000000000000000000001',
      facilitator: 'https://facilitator.test',
      supportedChains: ['base', 'solana'],
    },
  );
  // Indexers accept version 1 and strings, and nothing else.
  const resources = [...units.keys()].map((path) => `https://farebox.test/x402/${path}`);
  assert.deepEqual(x402ResourcesDocument(context), { version: 1, resources });
  assert.deepEqual(x402Document(context)?.resources, resources);
});

test('a service that is charged before it runs is offered only where money can be refunded', () => {
  const [first, ...others] = SAMPLE_SERVICES;
  assert.ok(first !== undefined);
  const services = [{ ...first, effect: 'write' } as const, ...others];
  const context = withWallets({ services });
  const { paths } = parsedOpenapi(context);
  assert.deepEqual(paths['/x402/first-call']?.post?.['x-x402-networks'], ['eip155:8453']);
  const entry = (of: DiscoveryContext) =>
    paymentManifestDocument(of)?.resources.find(({ id }) => id === 'first-call');
  assert.deepEqual(entry(context)?.networks, ['eip155:8453']);

  const [, solana] = X402.networks;
  assert.ok(solana !== undefined);
  const nowhere = sampleContext({ services, rails: { x402: { ...X402, networks: [solana] }, mpp: null } });
  const post = parsedOpenapi(nowhere).paths['/x402/first-call']?.post;
  assert.deepEqual(post?.['x-payment-info']?.protocols, []);
  assert.deepEqual(securityOf(nowhere, '/x402/first-call').at(-1), { BearerKey: [] });
  assert.equal(entry(nowhere)?.available, false);
  assert.ok(!x402ResourcesDocument(nowhere)?.resources.some((url) => url.endsWith('/first-call')));
  assert.notEqual(firstServiceByWallet(nowhere)?.path, 'first-call');
});

test('what MPP buys, for how much and in what, is the same in every document', () => {
  const context = withMpp();
  const units = new Map([
    ['first-call', '50000'],
    ['ping', '250000'],
  ]);
  const offersFor = (amount: string) => [
    { intent: 'charge', method: 'tempo', amount, currency: USDC_E },
    { intent: 'charge', method: 'evm', amount, currency: USDC },
  ];
  const catalog = mppCatalogDocument(context);
  const manifest = mppDocument(context);
  assert.ok(catalog !== null && manifest !== null);
  for (const { services } of [catalog, manifest]) {
    assert.deepEqual(
      services.map(({ id }) => id),
      [...units.keys()],
    );
    for (const { id, path, offers, amount } of services) {
      assert.equal(path, `/mpp/${id}`);
      assert.deepEqual(offers, offersFor(units.get(id) ?? ''));
      assert.equal(amount, id === 'ping' ? '0.25' : '0.05');
    }
  }
  assert.deepEqual(
    manifest.methods.map(({ method, network, symbol, recipient }) => [method, network, symbol, recipient]),
    [
      ['tempo', 'eip155:4217', 'USDC.e', '0x0000000000000000000000000000000000000002'],
      ['evm', 'eip155:8453', 'USDC', '0x0000000000000000000000000000000000000001'],
    ],
  );
  // Names that readers of the interface look for, and names of the standard.
  const { protocol, realm, scheme, settlementCurrency, settlementNetwork, tempoRecipient } = manifest;
  assert.deepEqual(
    { protocol, realm, scheme, settlementCurrency, settlementNetwork, tempoRecipient },
    {
      protocol: 'mpp',
      realm: 'farebox.test',
      scheme: 'Payment',
      settlementCurrency: 'USDC.e',
      settlementNetwork: 'eip155:4217',
      tempoRecipient: '0x0000000000000000000000000000000000000002',
    },
  );
  const { paths } = parsedOpenapi(context);
  assert.deepEqual(
    Object.keys(paths).filter((path) => path.startsWith('/mpp/') && path !== '/mpp/catalog'),
    [...units.keys()].map((path) => `/mpp/${path}`),
  );
  for (const [path, amount] of units) {
    const info = paths[`/mpp/${path}`]?.post?.['x-payment-info'];
    assert.deepEqual(info?.offers, offersFor(amount));
    assert.deepEqual(info?.protocols, [
      { mpp: { method: 'tempo', intent: 'charge', currency: 'USD' } },
      { x402: {} },
    ]);
  }
  for (const service of context.services) {
    const amount = units.get(service.path);
    const { mpp } = recipeDocument(service, context).payment;
    assert.deepEqual(mpp?.offers, amount === undefined ? undefined : offersFor(amount));
    const entry = catalogDocument(context).services.find(({ id }) => id === service.path);
    assert.equal(entry?.mpp, amount !== undefined);
    assert.equal(
      entry?.mppEndpoint,
      amount === undefined ? null : `https://farebox.test/mpp/${service.path}`,
    );
  }
  const [, evm] = MPP.methods;
  assert.ok(evm !== undefined);
  const alone = sampleContext({ rails: { x402: null, mpp: { methods: [evm] } } });
  assert.equal(mppDocument(alone)?.tempoRecipient, null);
  assert.doesNotMatch(everything(alone).get('llms') ?? '', /[Tt]empo/);
  const first = firstServiceByMpp(alone);
  assert.equal(first?.path, 'first-call');
  assert.ok(first !== null);
  assert.match(mppProgramOf(first, alone) ?? '', /evm\.charge\(/);
});

test('each document that explains paying by MPP also says what not to do', () => {
  const told = everything(withMpp());
  for (const name of [
    ...['capabilities', 'instructions', 'llms', 'mpp catalog', 'mpp.json', 'recipe ping'],
  ]) {
    const text = told.get(name) ?? '';
    for (const rule of [/same credential again, and answer no new challenge/, /25 s/, /fresh challenge/])
      assert.match(text, rule, name);
  }
  assert.match(told.get('welcome') ?? '', /answer no new challenge/);
  assert.match(told.get('openapi') ?? '', /same credential again/);
  assert.match(
    JSON.stringify(openapiDocument(sampleContext({ rails: { x402: null, mpp: MPP } }))),
    /answer no new challenge/,
  );
});

test('each document that explains paying from a wallet also says what not to do', () => {
  const told = everything(withWallets());
  for (const name of [
    'capabilities',
    'instructions',
    'llms',
    'payment manifest',
    'x402.json',
    'recipe ping',
  ]) {
    const text = told.get(name) ?? '';
    for (const rule of [/cap is raised/, /same payment header again/, /payment-identifier/, /sign-in-with-x/])
      assert.match(text, rule, name);
  }
  for (const name of ['welcome', 'openapi', 'catalog'])
    assert.match(told.get(name) ?? '', /cap is raised/, name);
  for (const name of ['welcome', 'openapi'])
    assert.match(told.get(name) ?? '', /same payment header again/, name);
  const dear = SAMPLE_SERVICES.find(({ path }) => path === 'sea-temperature');
  assert.ok(dear !== undefined);
  assert.match(
    walletProgramOf(dear, withWallets()) ?? '',
    /setSpendControls\(\{ maxAmountPerPayment: '\$10' \}\)/,
  );
});

test('ways to pay are published when they work, and only then', () => {
  const now = everything(sampleContext());
  for (const name of ['openapi', 'capabilities', 'instructions', 'welcome', 'catalog', 'llms']) {
    const text = now.get(name) ?? '';
    assert.doesNotMatch(
      text,
      /X-PAYMENT|PAYMENT-|x402_onchain|eip155|payment-manifest|facilitator\.test|credits\/checkout|"mpp"(?!:(null|false))|\/mpp\/|Payment <|tempo/,
      name,
    );
  }
  assert.deepEqual(securityOf(sampleContext(), '/x402/ping'), [{ ApiKeyHeader: [] }, { BearerKey: [] }]);

  for (const name of ['payment manifest', 'x402.json', 'x402', 'mpp catalog', 'mpp.json'])
    assert.equal(now.get(name), 'null');

  const byCard = everything(sampleContext({ cardCheckout: true }));
  assert.match(byCard.get('openapi') ?? '', /credits\/checkout\/session.*credits\/purchase/);
  assert.match(byCard.get('capabilities') ?? '', /credits\/checkout\/session.*"tiers":\[\{/);
  const later = withWallets({ cardCheckout: true });
  const ping = parsedOpenapi(later).paths['/x402/ping']?.post;
  assert.deepEqual(ping?.['x-payment-info']?.protocols, [{ x402: {} }]);
  assert.deepEqual(securityOf(later, '/x402/ping').at(-1), {});
  const modes = capabilitiesDocument(later).authModes.map(({ mode }) => mode);
  assert.deepEqual(modes, ['api_key', 'x402_onchain']);
  assert.equal(catalogDocument(later).x402Network, 'eip155:8453');

  const mppAlone = sampleContext({ rails: { x402: null, mpp: MPP } });
  assert.deepEqual(securityOf(mppAlone, '/mpp/ping').at(-1), {});
  assert.deepEqual(securityOf(mppAlone, '/x402/ping').at(-1), { BearerKey: [] });
  const byMpp = capabilitiesDocument(withMpp()).authModes.map(({ mode }) => mode);
  assert.deepEqual(byMpp, ['api_key', 'x402_onchain', 'mpp']);
  assert.deepEqual(catalogDocument(withMpp()).paymentMethods, ['api_key', 'x402', 'mpp']);
});

test('no document mentions an address that the app does not serve', () => {
  const known = SAMPLE_ROUTES.map(
    ({ path }) => new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/:\w+/g, '[^/]+')}$`),
  );
  for (const context of [
    sampleContext(),
    sampleContext({ trial: null }),
    withWallets(),
    withMpp({ cardCheckout: true }),
  ]) {
    for (const [name, text] of everything(context)) {
      const urls = [...text.matchAll(/https:\/\/farebox\.test(\/[^\s"'`)\\]*)?/g)].map(
        ([, path]) => path ?? '/',
      );
      const bare = [
        ...text.matchAll(/(?:^|[\s"'`(])(\/(?:api|x402|mpp|health|\.well-known|docs|keys)\/[^\s"'`)\\,;]*)/g),
      ];
      for (const path of [...urls, ...bare.map(([, path = '']) => path)]) {
        if (name === 'robots' || path === '/x402/' || path === '/mpp/') continue;
        const [address = ''] = path.split('?');
        assert.ok(
          known.some((route) => route.test(address)),
          `${name} mentions ${path}`,
        );
      }
    }
  }
});

test('an operation is described only when its route exists', () => {
  const without = sampleContext({
    routes: SAMPLE_ROUTES.filter(({ path }) => !path.startsWith('/api/keys')),
  });
  assert.equal(parsedOpenapi(without).paths['/api/keys/me'], undefined);
  assert.doesNotMatch(JSON.stringify(agentInstructionsDocument(without)), /api\/keys/);
  assert.deepEqual(Object.keys(parsedOpenapi(sampleContext()).paths['/api/keys/me'] ?? {}), [
    'get',
    'patch',
    'delete',
  ]);
});

test('every operation has its own id, says who may call it, shows an example and can refuse for money', () => {
  const { paths, components } = parsedOpenapi(withMpp());
  const ids: string[] = [];
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item)) {
      ids.push(operation.operationId);
      const where = `${method} ${path}`;
      const text = JSON.stringify(operation).replace(
        /\{"\$ref":"#\/components\/responses\/(\w+)"/g,
        (_, name: string) => JSON.stringify(components.responses[name]),
      );
      assert.match(text, /"example":/, where);
      if (operation['x-payment-info'] === undefined) continue;
      for (const status of ['200', '402', 'default']) {
        assert.ok(status in operation.responses, `${where} has no ${status}`);
      }
    }
  }
  assert.equal(new Set(ids).size, ids.length);
  assert.equal(operationIdOf('first-call'), 'first-call');
  assert.equal(operationIdOf('prediction-market-spread'), 'predictionMarketSpread');
});

test('the published example of a service fits the published schema', () => {
  const { paths, components } = parsedOpenapi(withMpp());
  // References are resolved by hand: `components` is another part of the same document.
  const resolved = (text: string): string =>
    text.includes('$ref')
      ? resolved(
          text.replace(/\{"\$ref":"#\/components\/schemas\/(\w+)"\}/g, (_, name: string) =>
            JSON.stringify(components.schemas[name]),
          ),
        )
      : text;
  const addresses = SAMPLE_SERVICES.flatMap((service) => [
    { service, path: `/x402/${service.path}` },
    ...(service.mpp ? [{ service, path: `/mpp/${service.path}` }] : []),
  ]);
  assert.equal(addresses.length, 6);
  for (const { service, path } of addresses) {
    const body = paths[path]?.post?.requestBody?.content['application/json'];
    assert.ok(body !== undefined, path);
    const schema = JSON.parse(resolved(JSON.stringify(body.schema)));
    assert.ok(Object.keys(schema.properties).length > 0, path);
    assert.equal(z.fromJSONSchema(schema).safeParse(body.example).success, true, path);
    assert.equal(service.input.safeParse(body.example).success, true, path);
  }
  assert.ok('tokenAddress' in components.schemas, 'a field that two services share is written once');
});

test('an operation stays small enough for a list of many', () => {
  const { paths } = parsedOpenapi(sampleContext());
  for (const { path } of SAMPLE_SERVICES) {
    assert.ok(JSON.stringify(paths[`/x402/${path}`]).length < 2_000, path);
  }
});

test('every answer has an example, and that of a service fits its own schema', async () => {
  const services = await loadServices();
  const context = withMpp({ services, cardCheckout: true });
  const document = parsedOpenapi(context);
  const responses = document.components.responses as Record<string, unknown>;
  const answerShape = z.looseObject({
    content: z.object({ 'application/json': z.object({ example: z.looseObject({}) }) }),
  });
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const good = Object.entries(operation.responses).filter(([status]) => status.startsWith('2'));
      assert.equal(good.length, 1, `${method} ${path}`);
      for (const [, response] of good) {
        const reference = z.object({ $ref: z.string() }).safeParse(response);
        const found = reference.success ? responses[reference.data.$ref.split('/').at(-1) ?? ''] : response;
        const { example } = answerShape.parse(found, { error: () => `${method} ${path} has no example` })
          .content['application/json'];
        const service = services.find((each) => path.endsWith(`/${each.path}`));
        if (service === undefined || operation['x-price-usd'] === undefined) continue;
        assert.equal(example.success, true);
        const fits = service.output.safeParse(example);
        assert(fits.success, `${path}: ${fits.error?.message}`);
      }
    }
  }
});

test('an answer is described whole, and every list in the document says what its items are', async () => {
  const services = await loadServices();
  const document = JSON.parse(JSON.stringify(openapiDocument(withMpp({ services }))));
  const whole = (node: unknown): unknown => {
    if (typeof node !== 'object' || node === null) return node;
    if (Array.isArray(node)) return node.map(whole);
    if ('$ref' in node) return whole(at(document, String(node.$ref)));
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, whole(value)]));
  };
  for (const service of services.filter(({ mediaType }) => mediaType === 'application/json')) {
    for (const door of service.mpp ? ['x402', 'mpp'] : ['x402']) {
      const answer = Object(whole(document.paths[`/${door}/${service.path}`].post.responses[200]));
      const [, own] = answer.content['application/json'].schema.allOf;
      assert.deepEqual(own, JSON.parse(JSON.stringify(outputSchemaOf(service))), `${door} ${service.path}`);
    }
  }
  const withoutItems: string[] = [];
  JSON.stringify(document, (key, value) => {
    const isList = typeof value === 'object' && value !== null && [value.type].flat().includes('array');
    if (isList && (typeof value.items !== 'object' || 'prefixItems' in value)) withoutItems.push(key);
    return value;
  });
  assert.deepEqual(withoutItems, []);
  const names = Object.keys(document.components.schemas).map((name) => name.toLowerCase());
  assert.equal(new Set(names).size, names.length, 'generated types have names in a case of their own');
});

function at(document: unknown, reference: string): unknown {
  return reference
    .slice(2)
    .split('/')
    .reduce((node, name) => Object(node)[name], document);
}

test('robots.txt names the sitemap, and leaves the catalog open at both of its addresses', () => {
  const lines = robotsText(sampleContext()).split('\n');
  assert.ok(lines.includes('Sitemap: https://farebox.test/sitemap.xml'));
  for (const path of ['/x402/catalog', '/api/x402/catalog'])
    assert.ok(lines.includes(`Allow: ${path}`), path);
});

test('the version of the document is the interface’s, and ours stands beside it', () => {
  const { info } = openapiDocument(sampleContext({ version: '0.1.7' }));
  assert.deepEqual([info.version, info['x-server-version']], ['3.0.0', '0.1.7']);
});

test('the operation of buying by card states how it can be refused', () => {
  const { paths } = parsedOpenapi(sampleContext({ cardCheckout: true }));
  const statuses = Object.keys(paths['/api/m2m/credits/purchase']?.post?.responses ?? {});
  assert.deepEqual(statuses, ['200', '400', '402', '409', '429', '503']);
});

test('recipes can be pasted: quotes are right for a shell and for Python', () => {
  const [first] = SAMPLE_SERVICES;
  assert.ok(first !== undefined);
  const recipe = recipeDocument(first, sampleContext());
  assert.match(recipe.curl, /-d '\{"agentId":"Ada'\\''s agent"\}'$/);
  assert.match(recipe.curl, /-H "X-API-KEY: \$FAREBOX_API_KEY"/);
  const nested = { ...first, example: { yes: true, none: null, list: [1, 'a"b'] } };
  assert.match(
    recipeDocument(nested, sampleContext()).python,
    /json\.dumps\(\{"yes": True, "none": None, "list": \[1, "a\\"b"\]\}\)/,
  );
});

test('openapi.json of everything that is sold, on every chain and with every source down, can be read whole', async () => {
  const services = await loadServices();
  const networks = [...X402.networks, ...['eip155:1', 'eip155:137', 'eip155:42161'].map(anotherChain)];
  const [first, ...rest] = networks;
  assert.ok(first !== undefined && services.length > 20);
  const context = withMpp({
    baseUrl: 'https://a-rather-long-name-of-a-host.farebox.test',
    services,
    cardCheckout: true,
    rails: { x402: { ...X402, networks: [first, ...rest] }, mpp: MPP },
    availability: () => ({
      available: false,
      reason: 'not_configured',
      message: 'not configured',
      retryAfterMs: 1,
      chains: [],
    }),
  });
  const document = JSON.stringify(openapiDocument(context));
  const sizes = { plain: Buffer.byteLength(document), gzipped: gzipSync(document).length };
  for (const way of ['plain', 'gzipped'] as const) {
    const { aService, besideServices } = OPENAPI_BYTES[way];
    const most = besideServices + services.length * aService;
    assert.ok(sizes[way] < most, `${sizes[way]} bytes ${way} for ${services.length} services`);
  }
  const ids = Object.values(parsedOpenapi(context).paths).flatMap((item) =>
    Object.values(item).map(({ operationId }) => operationId),
  );
  assert.equal(new Set(ids).size, ids.length);
});

test('each part of openapi.json is a document of less than 74 KB, and together they are the whole', async () => {
  const services = await loadServices();
  const networks = [...X402.networks, ...['eip155:1', 'eip155:137', 'eip155:42161'].map(anotherChain)];
  const [first, ...rest] = networks;
  assert.ok(first !== undefined);
  const context = withMpp({
    baseUrl: 'https://a-rather-long-name-of-a-host.farebox.test',
    services,
    tags: ABOUT_TAGS,
    cardCheckout: true,
    rails: { x402: { ...X402, networks: [first, ...rest] }, mpp: MPP },
  });
  const whole = parsedOpenapi(context).paths;
  const parts = openapiParts(context);
  const together: Record<string, unknown> = {};
  for (const tag of parts.values()) {
    const document = JSON.parse(JSON.stringify(openapiPart(context, tag)));
    const bytes = Buffer.byteLength(JSON.stringify(document));
    assert.ok(bytes < MAX_PART_BYTES, `${tag}: ${bytes} bytes`);
    assert.deepEqual(await findingsOf(document), [], tag);
    Object.assign(together, document.paths);
  }
  assert.deepEqual(Object.keys(together).sort(), Object.keys(whole).sort());
  const beside = [...parts.values()].filter((tag) => !services.some((service) => service.tag === tag));
  assert.deepEqual([...parts.values()].slice(0, beside.length), beside);
  assert.deepEqual(beside.slice(0, 2), ['Free', 'Credits']);
  assert.ok(parts.has('trading-intelligence'));
});

function anotherChain(network: string): X402Network {
  const [first] = X402.networks;
  return { ...first, network, name: network };
}

test('the daily limit of a new card customer is stated wherever a card can be charged, and nowhere else', () => {
  const rule = /at most 25 USD of it can be spent a day, until a card payment of the account is 7 days old/;
  const cards = sampleContext({ cardCheckout: true });
  for (const text of [
    JSON.stringify(capabilitiesDocument(cards)),
    JSON.stringify(agentInstructionsDocument(cards)),
    JSON.stringify(openapiDocument(cards)),
    llmsText(cards),
  ])
    assert.match(text, rule);
  const { obtain, dailyLimits } = Object(capabilitiesDocument(cards).authModes[0]);
  assert.deepEqual([obtain.hosted_checkout.dailyLimit, dailyLimits.hosted_checkout], [null, null]);
  const none = sampleContext();
  for (const text of [capabilitiesDocument(none), agentInstructionsDocument(none)].map((each) =>
    JSON.stringify(each),
  ))
    assert.doesNotMatch(text, rule);
  assert.doesNotMatch(llmsText(none), rule);
});
