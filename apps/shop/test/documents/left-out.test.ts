/** A part that is not listed in app.ts is off: its routes, documents, variables, rules of the books and figures with it. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { variablesOf } from '../../../../packages/core/src/config.ts';
import { booksOf } from '../../../../packages/core/src/declared.ts';
import * as product from '../../src/app.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { EVERYTHING_ON } from '../everything-on.fixture.ts';
import { jsonOf, startTestServer } from '../server.fixture.ts';
import { changed, shownChanges } from '../shown-change.fixture.ts';

const APP = new URL('../../src/app.ts', import.meta.url);
const TEXT = readFileSync(APP, 'utf8');
type Made = Pick<typeof product, 'createApp' | 'DECLARED'>;

interface Optional {
  /** Lines of the list, each by what it opens. */
  opens: readonly string[];
  /** What it declares before it is opened; null: nothing. */
  declares: string | null;
  /** What others make of it, and what they make without. */
  others?: readonly (readonly [made: string | RegExp, without: string])[];
  /** What its addresses begin with. */
  routes: readonly string[];
  /** An address below them that is another part's. */
  butNot?: string;
  variables: readonly string[];
  metrics: readonly string[];
  rules: number;
}
const NONE = { variables: [], metrics: [], rules: 0 };

const PARTS: Readonly<Record<string, Optional>> = {
  account: { ...NONE, opens: ['openAccount'], declares: null, routes: ['/api/keys/me', '/keys'] },
  custody: {
    ...NONE,
    opens: ['openCustody'],
    declares: 'CUSTODY',
    routes: ['/api/wallets/'],
    variables: ['WALLET_ENCRYPTION_KEY'],
  },
  devices: {
    opens: ['openDevices'],
    declares: 'DEVICES',
    rules: 0,
    routes: ['/api/devices', '/api/device-offers', '/api/device-exports/', '/devices'],
    variables: [
      ...[
        'DEVICE_RETENTION_DAYS',
        'DEVICE_BACKFILL_HOURS',
        'DEVICES_PER_ACCOUNT',
        'DEVICE_REPORTS_PER_MINUTE',
      ],
      ...['DEVICE_MQTT_PORT', 'DEVICE_MQTT_CERT_FILE', 'DEVICE_MQTT_KEY_FILE', 'DEVICE_MQTT_CONNECTIONS'],
      'DEVICE_OWNER_SHARE_PERCENT',
    ],
    metrics: [
      ...['farebox_device_readings_total', 'farebox_device_connections', 'farebox_device_reports_waiting'],
    ],
  },
  pictures: {
    opens: ['openPictures'],
    declares: 'PICTURES',
    rules: 0,
    routes: ['/api/pictures/'],
    variables: ['PICTURE_LINK_HOURS', 'PICTURE_CACHE_MB'],
    metrics: ['farebox_picture_looks_total'],
  },
  identity: {
    ...NONE,
    opens: ['openIdentity'],
    declares: 'IDENTITY',
    routes: [],
    variables: ['IDENTITY_REGISTRAR_KEY'],
  },
  evmYield: {
    ...NONE,
    opens: [],
    declares: 'EVM_YIELD',
    others: [
      [
        '  const vault = openEvmYield(house, config.evmYield, { upstreams, freeReads, check: checksOf(sources) });\n',
        '',
      ],
      ['    vault,\n', ''],
      ['freeReads, vault, check', 'freeReads, vault: null, check'],
      ['vault: vault.address', 'vault: null'],
    ],
    // Without a vault there is nothing to keep.
    metrics: ['farebox_yield_keeper_looks_total', 'farebox_yield_rate_percent'],
    // The page stays: it is the Solana portal's too.
    routes: ['/api/yield/'],
    variables: ['YIELD_VAULT_ADDRESS', 'YIELD_PERMIT_DEPOSIT_ADDRESS', 'YIELD_VAULT_SINCE_BLOCK'],
  },
  solanaYield: {
    ...NONE,
    opens: ['openSolanaYield'],
    declares: 'SOLANA_YIELD',
    routes: ['/api/solana-yield/'],
    variables: ['SOLANA_YIELD_TREASURY', 'SOLANA_YIELD_FURTHER_NODES', 'SOLANA_YIELD_SINCE_SLOT'],
  },
  'sold keys': {
    opens: ['openSoldKeys'],
    declares: 'SOLD_KEYS',
    routes: [],
    variables: ['NEW_CARD_KEYS_USD_PER_DAY'],
    metrics: ['farebox_sold_keys_total'],
    rules: 5,
  },
  yieldKeeper: {
    opens: ['openYieldKeeper'],
    declares: 'YIELD_KEEPER',
    routes: [],
    variables: ['YIELD_KEEPER_KEY', 'YIELD_KEEPER_MIN_GAIN_BPS'],
    metrics: ['farebox_yield_keeper_looks_total', 'farebox_yield_rate_percent'],
    rules: 0,
  },
  topup: {
    opens: ['openTopup'],
    declares: 'TOPUP',
    routes: ['/api/m2m/credits/topup'],
    variables: [],
    metrics: ['farebox_topups_total'],
    rules: 3,
  },
  operator: {
    opens: ['openOperator'],
    declares: 'OPERATOR',
    routes: ['/admin'],
    variables: [
      ...['ADMIN_OIDC_CLIENT_ID', 'ADMIN_OIDC_CLIENT_SECRET', 'ADMIN_OIDC_ISSUER', 'ADMIN_OIDC_SCOPES'],
      ...['ADMIN_ROLES', 'ADMIN_SECOND_ABOVE_USD', 'ADMIN_SESSION_HOURS', 'ADMIN_SESSION_IDLE_MINUTES'],
      ...['ADMIN_SESSION_RETENTION_DAYS', 'ADMIN_TOKENS', 'SERVICE_COSTS_USD'],
    ],
    metrics: [],
    rules: 4,
  },
  operations: {
    opens: ['openOperations'],
    declares: 'OPERATIONS',
    routes: ['/health/', '/metrics'],
    variables: ['METRICS_TOKEN', 'TRACES_OTLP_ENDPOINT', 'TRACES_OTLP_HEADERS', 'TRACES_SAMPLED'],
    metrics: [
      ...['farebox_clock_ahead_seconds', 'farebox_database_silences', 'farebox_rail_offered'],
      ...['farebox_queue_depth', 'farebox_queue_oldest_seconds'],
    ],
    rules: 0,
  },
  proxy: {
    ...NONE,
    opens: ['openProxy'],
    declares: 'PROXY',
    routes: [],
    variables: ['FAREBOX_CONFIG'],
  },
  legacy: { ...NONE, opens: ['openLegacy'], declares: null, routes: ['/api/gpt/'] },
  a2a: {
    opens: ['openA2a'],
    declares: 'A2A',
    routes: ['/a2a'],
    variables: ['A2A_ALLOWED_HOSTS', 'A2A_MAX_UNPAID_TASKS'],
    metrics: [],
    rules: 0,
  },
  mcp: {
    opens: ['openMcp'],
    declares: 'MCP',
    routes: ['/mcp'],
    butNot: '/mcp/services',
    variables: ['MCP_ALLOWED_HOSTS'],
    metrics: [],
    rules: 0,
  },
  receipts: { ...NONE, opens: ['openReceipts'], declares: null, routes: ['/x402/receipts/'] },
  discovery: {
    ...NONE,
    opens: ['openDiscovery'],
    declares: null,
    routes: [
      ...[
        '/openapi.json',
        '/openapi/',
        '/x402/catalog',
        '/api/x402/catalog',
        '/x402/recipes/',
        '/api/x402/recipes/',
      ],
      ...[
        '/x402/payment-manifest.json',
        '/x402/payment-docs',
        '/mcp/services',
        '/server.json',
        '/sitemap.xml',
        '/llms-full.txt',
        '/api/auth/capabilities',
        '/.well-known/',
        '/mpp/catalog',
        '/llms.txt',
      ],
      ...[
        '/robots.txt',
        '/docs',
        '/keys',
        '/yield',
        '/devices',
        '/credits/',
        '/favicon.',
        '/assets/',
        '/services',
        '/pricing',
        '/',
      ],
    ],
  },
  webhooks: {
    opens: [],
    declares: 'WEBHOOKS',
    rules: 0,
    others: [
      ['    webhooks,\n', ''],
      [/^ {2}const webhooks = .*\n/m, ''],
      ['keyUsed: webhooks.keyUsed', 'keyUsed: () => {}'],
    ],
    routes: ['/api/events', '/api/webhooks'],
    variables: ['KEY_ADDRESS_RETENTION_DAYS', 'WEBHOOK_PRIVATE_ADDRESSES', 'WEBHOOK_RETENTION_DAYS'],
    metrics: ['farebox_webhook_messages_total', 'farebox_webhook_events_missed'],
  },
  mpp: {
    ...NONE,
    opens: ['openMppDoor'],
    declares: 'MPP',
    others: [
      [', ...byMpp.elsewhere, credits]', ', credits]'],
      [', ...byMpp.rails]', ']'],
      ['mpp: byMpp.offer', 'mpp: () => null'],
      [', byMpp, sales }', ', sales }'],
      ['    byMpp,\n', ''],
      [/, mpp: byMpp\.mpp, x402/g, ', mpp: null, x402'],
    ],
    routes: ['/mpp/'],
    butNot: '/mpp/catalog',
    variables: [
      ...['MPP_METHODS', 'MPP_SECRET_KEY', 'MPP_TEMPO_RPC_URL', 'MPP_TEMPO_RECIPIENT', 'MPP_TEMPO_CURRENCY'],
      'MPP_TEMPO_REFUND_KEY',
    ],
    metrics: [],
    rules: 0,
  },
};

/** `app.ts` without a part: its lines in the list, its declaration, and what others take of it. */
function without({ opens, declares, others = [] }: Optional): string {
  let text = TEXT;
  const leave = (from: string | RegExp, to: string) => {
    const left = text.replace(from, to);
    assert.notEqual(left, text, `app.ts has nothing like ${from}`);
    text = left;
  };
  for (const open of opens)
    leave(new RegExp(`^    ${open}\\((?:.*\\),|[\\s\\S]*?\\n    \\}?\\),)\\n`, 'm'), '');
  if (declares === 'MPP') leave(/^ {2}const byMpp = .*\n/m, '');
  if (declares !== null) leave(new RegExp(`(\\[(?:\\w+, )*?)${declares}(?:, |(?=\\]))`), '$1');
  for (const [made, left] of others) leave(made, left);
  return text;
}

const folder = mkdtempSync(join(tmpdir(), 'farebox-left-out-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A file that finds what it imports from wherever it lies. */
function fromAnywhere(text: string, home: URL): string {
  return text
    .replaceAll(/from '(\.[^']+)'/g, (_, file: string) => `from '${new URL(file, home)}'`)
    .replaceAll(/from '(@farebox\/[^']+)'/g, (_, name: string) => `from '${import.meta.resolve(name)}'`);
}

async function appWithout(name: string, part: Optional): Promise<Made> {
  const path = join(folder, `${name}.ts`);
  writeFileSync(path, fromAnywhere(without(part), APP));
  return import(pathToFileURL(path).href);
}

let database: TestDatabase;
let whole: There;
before(async () => {
  database = await openTestDatabase();
  whole = await whatIsThere(product);
});
after(() => database.close());

/** Everything that a server of these parts has. */
async function whatIsThere(made: Made) {
  const server = await startTestServer({ pools: database, environment: EVERYTHING_ON, made });
  try {
    const { parts, routes } = server.app;
    const document = await fetch(`${server.url}/openapi.json`);
    return {
      routes: routes.map(({ method, path }) => `${method} ${path}`),
      documented: document.ok ? Object.keys((await jsonOf(document)).paths) : [],
      metrics: parts.flatMap(({ metrics }) => metrics?.getMetricsAsArray().map(({ name }) => name) ?? []),
      variables: variablesOf(made.DECLARED).map(({ name }) => name),
      rules: booksOf(made.DECLARED).flatMap(({ rules }) => rules.map(({ name }) => name)),
    };
  } finally {
    await server.close();
  }
}
type There = Awaited<ReturnType<typeof whatIsThere>>;

for (const [name, part] of Object.entries(PARTS)) {
  test(`the server starts without ${name}, and has nothing of it`, async () => {
    const left = await whatIsThere(await appWithout(name, part));
    const gone = <Kind extends keyof There>(kind: Kind) =>
      whole[kind].filter((each) => !left[kind].includes(each));
    for (const kind of ['routes', 'documented', 'metrics', 'variables', 'rules'] as const)
      assert.deepEqual(
        left[kind].filter((each) => !whole[kind].includes(each)),
        [],
        `more ${kind} than with it`,
      );
    assert.deepEqual(gone('variables').sort(), [...part.variables].sort());
    assert.deepEqual(gone('metrics').sort(), [...part.metrics].sort());
    assert.equal(gone('rules').length, part.rules);
    const its = (path: string) =>
      path !== part.butNot &&
      part.routes.some((each) => (each === '/' ? path === each : path.startsWith(each)));
    const pathOf = (route: string) => route.slice(route.indexOf(' ') + 1);
    const own = whole.routes.filter((route) => its(pathOf(route)));
    assert.deepEqual(gone('routes').sort(), own.sort());
    assert(part.routes.length === 0 || own.length > 0);
    // A document of another part's about it is not shown any more either.
    const about = whole.documented.filter((path) => part.routes.some((each) => path.startsWith(each)));
    if (name !== 'discovery') assert.deepEqual(gone('documented').sort(), about.sort());
  });
}

test('what an operator is told to set for a capability is a variable', async () => {
  const server = await startTestServer({ pools: database });
  const { parts } = server.app;
  await server.close();
  const told = parts.flatMap(({ capabilities = [] }) => capabilities.map(({ setBy }) => setBy));
  const names: readonly string[] = variablesOf(product.DECLARED).map(({ name }) => name);
  // A part that is always configured once it is listed says so.
  const needsNone = 'it needs no variable';
  assert.equal(told.filter((setBy) => setBy !== needsNone).length, 7);
  assert.deepEqual(
    told.filter((setBy) => setBy !== needsNone && !names.includes(setBy)),
    [],
  );
});

test('the part that the documents show is added by the change that they show, and serves', async () => {
  const document = readFileSync(new URL('../../../../docs/architecture.md', import.meta.url), 'utf8');
  const [change = ''] = shownChanges(document);
  const [, part = ''] = /^```ts\n([\s\S]*?)^```/m.exec(document) ?? [];
  const source = new URL('./greetings/part.ts', APP);
  const shown = join(folder, 'greetings-part.ts');
  writeFileSync(shown, fromAnywhere(part, source));
  const text = changed(change).get('apps/shop/src/app.ts') ?? '';
  const path = join(folder, 'with-greetings.ts');
  writeFileSync(path, fromAnywhere(text, APP).replace(source.href, pathToFileURL(shown).href));
  const made: Made = await import(pathToFileURL(path).href);
  const server = await startTestServer({ pools: database, made });
  try {
    const answer = await fetch(`${server.url}/greetings`);
    assert.equal(answer.status, 200);
    assert.deepEqual(await answer.json(), { version: '0.0.0-test' });
  } finally {
    await server.close();
  }
});
