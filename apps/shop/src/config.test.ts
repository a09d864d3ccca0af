import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { inspect } from 'node:util';
import { privateKeyToAddress } from 'viem/accounts';
import { upstreamsOf } from '../../../packages/catalogue/src/upstreams/declared.ts';
import { ConfigError, readConfig, renewSecrets, variablesOf } from '../../../packages/core/src/config.ts';
import { DATABASE } from '../../../packages/core/src/db/declared.ts';
import { DECLARED } from './app.ts';

const VARIABLES = variablesOf(DECLARED);
const SECRET = 'kT9fQ2mZ7xWb4LrN8vYc1HsD6pGa3JeU';
const PRODUCTION = { FAREBOX_MODE: 'production', FAREBOX_SECRET: SECRET, PUBLIC_URL: 'https://fare.test' };

function problems(environment: Record<string, string>): readonly string[] {
  try {
    readConfig(environment, DECLARED);
    return [];
  } catch (error) {
    assert(error instanceof ConfigError);
    return error.problems;
  }
}

test('a secret is all that must be set; everything else has a value', () => {
  const config = readConfig({ FAREBOX_SECRET: SECRET, HOST: '' }, DECLARED);
  assert.deepEqual(
    [config.house.host, config.house.port, config.house.production],
    ['127.0.0.1', 8402, false],
  );
  assert.equal(upstreamsOf(config.sources, []).defillama.baseUrl, 'https://coins.llama.fi');
  assert.equal(upstreamsOf(config.sources, []).ai.baseUrl, null);
  assert.deepEqual(problems({}), ['FAREBOX_SECRET: must be set']);
});

test('everything that is wrong is said at once, each with the name of its variable', () => {
  const found = problems({
    FAREBOX_SECRET: 'short',
    PORT: '99999',
    HOST: 'nowhere at all',
    DATABASE_URL: 'mysql://x',
    TRUSTED_PROXIES: 'everybody',
    RATE_LIMIT_PER_KEY: '1.5',
    TRIAL_ALLOW_INTERNAL: 'yes',
    AI_BASE_URL: 'ftp://x',
    LOG_LEVEL: 'loud',
  });
  const names = found.map((line) => line.split(':')[0]).sort();
  assert.deepEqual(names, [
    ...['AI_BASE_URL', 'DATABASE_URL', 'FAREBOX_SECRET', 'HOST', 'LOG_LEVEL', 'PORT', 'RATE_LIMIT_PER_KEY'],
    ...['TRIAL_ALLOW_INTERNAL', 'TRUSTED_PROXIES'],
  ]);
  assert(!found.join().includes('short'), 'a value may be a secret and is not repeated');
});

test('history is kept unless it is said for how long, 400 days at least, and where to it goes', () => {
  const history = (given: Record<string, string>) =>
    problems({ FAREBOX_SECRET: SECRET, ...given }).map((line) => line.split(':')[0]);
  assert.deepEqual(history({ HISTORY_DAYS: '399', HISTORY_FOLDER: '/srv/history' }), ['HISTORY_DAYS']);
  assert.deepEqual(history({ HISTORY_DAYS: '400' }), ['HISTORY_FOLDER']);
  assert.deepEqual(history({ HISTORY_DAYS: '400', HISTORY_FOLDER: 'history' }), ['HISTORY_FOLDER']);
  assert.deepEqual(history({ HISTORY_DAYS: '400', HISTORY_FOLDER: '/srv/history' }), []);
  const { settings } = readConfig({ FAREBOX_SECRET: SECRET }, DECLARED).paidCall;
  assert.deepEqual([settings.historyDays, settings.historyFolder], [null, null]);
});

test('a source that is not there is told by its nearest names, and what its own terms allow needs no word', () => {
  const terms = (SOURCE_TERMS_ACCEPTED: string) =>
    problems({ FAREBOX_SECRET: SECRET, SOURCE_TERMS_ACCEPTED });
  assert.match(
    terms('coingeko, kraken').join(),
    /^SOURCE_TERMS_ACCEPTED: "coingeko" is no source.*coingecko/,
  );
  const { sources } = readConfig({ FAREBOX_SECRET: SECRET }, DECLARED);
  const reached = upstreamsOf(sources, ['kraken']);
  assert.deepEqual(
    [reached.kraken, reached.coingecko, reached.firms, reached.base].map(({ isTermsOpen }) => isTermsOpen),
    [false, true, false, false],
  );
  assert.deepEqual(
    problems({ ...PRODUCTION, SOURCE_DATE_EPOCH: '0' }),
    [],
    'whoever builds the image sets it',
  );
});

test('production starts with what it needs, and refuses sandbox parts, weak secrets and unknown names', () => {
  assert.deepEqual(problems(PRODUCTION), []);
  assert.equal(problems({ ...PRODUCTION, FAREBOX_SANDBOX_PARTS: 'upstreams=http://127.0.0.1:9' }).length, 1);
  assert.equal(problems({ ...PRODUCTION, FAREBOX_SECRET: 'a'.repeat(40) }).length, 1);
  assert.equal(problems({ ...PRODUCTION, PUBLIC_URL: 'http://fare.test' }).length, 1);
  assert.deepEqual(problems({ ...PRODUCTION, RATE_LIMIT_PER_KEYS: '5', PATH: '/bin' }), [
    'RATE_LIMIT_PER_KEYS: there is no such variable',
  ]);
  assert.deepEqual(problems({ ...PRODUCTION, TRIAL_ALLOW_INTERNAL: 'true' }), [
    'TRIAL_ALLOW_INTERNAL: must not be true in production',
  ]);
});

test('a misspelt variable is refused, whichever it is, and what a cluster sets is not', () => {
  const WALLET_ENCRYPTION_KEYS = '00'.repeat(32);
  const misspelt = {
    WALLET_ENCRYPTION_KEYS,
    METRICS_TOKENS: 'x',
    MAIL_FORM: 'a@b.test',
    DRAIN_TIMEOUT: '1',
    LOG_LVL: 'info',
    ...Object.fromEntries(
      VARIABLES.filter(({ name }) => name.includes('_')).map(({ name }) => [`${name}X`, 'anything']),
    ),
  };
  assert.deepEqual(
    problems({ ...PRODUCTION, ...misspelt }),
    Object.keys(misspelt).map((name) => `${name}: there is no such variable`),
  );
  const links = {
    SERVICE_HOST: '10.0.0.9',
    SERVICE_PORT: '80',
    PORT: 'tcp://10.0.0.9:80',
    PORT_80_TCP_ADDR: '10.0.0.9',
  };
  for (const service of ['DATABASE', 'FAREBOX', 'MAIL_RELAY'])
    for (const [name, value] of Object.entries(links))
      assert.deepEqual(problems({ ...PRODUCTION, [`${service}_${name}`]: value }), [], `${service}_${name}`);
});

test('a command that needs the database alone is not kept by what others are configured by', () => {
  const others = { ...PRODUCTION, FAREBOX_DATA_DIR: '/tmp', DATABASE_MAX_CONNECTIONS: '2', MPP_METHODS: '?' };
  const { database } = readConfig(others, [DATABASE], { all: false });
  assert.equal(database.settings.databaseMaxConnections, 2);
  assert.throws(() => readConfig(others, [DATABASE]), /FAREBOX_SECRET: there is no such variable/);
  assert.throws(
    () => readConfig({ ...others, DATABASE_MAX_CONNECTIONS: '1' }, [DATABASE], { all: false }),
    /DATABASE_MAX_CONNECTIONS/,
  );
});

test('who is believed about callers is one header of named proxies, and no token can be guessed', () => {
  const { proxyTrust } = readConfig(
    { FAREBOX_SECRET: SECRET, TRUSTED_PROXIES: '10.0.0.5', PROXY_HEADER: ' X-Real-IP ' },
    DECLARED,
  ).house;
  assert.deepEqual([proxyTrust.header, proxyTrust.proxies.length], ['x-real-ip', 1]);
  assert.equal(readConfig({ FAREBOX_SECRET: SECRET }, DECLARED).house.proxyTrust.header, 'x-forwarded-for');
  for (const PROXY_HEADER of ['x-a, x-b', 'X-API-KEY', 'host', 'a b', 'ä'])
    assert.match(problems({ FAREBOX_SECRET: SECRET, PROXY_HEADER }).join(), /^PROXY_HEADER: /, PROXY_HEADER);
  for (const TRUSTED_PROXIES of ['0.0.0.0/0', '10.0.0.1, ::/0'])
    assert.match(problems({ FAREBOX_SECRET: SECRET, TRUSTED_PROXIES }).join(), /^TRUSTED_PROXIES: /);
  const ADMIN_TOKENS = `desk:${'ab'.repeat(16)}`;
  assert.deepEqual(problems({ ...PRODUCTION, ADMIN_TOKENS }), [
    'ADMIN_TOKENS: a token is too regular to be a secret',
  ]);
  // Where a second operator must agree, one token by two names would count as two.
  const [one, other] = ['a-token-of-two-dozen-characters', 'another-token-of-that-length'];
  const twice = (text: string) => problems({ FAREBOX_SECRET: SECRET, ADMIN_TOKENS: text });
  assert.deepEqual(twice(`desk:${one}, desk:${other}`), ['ADMIN_TOKENS: must name everybody once']);
  assert.deepEqual(twice(`desk:${one}, night:${one}`), [
    'ADMIN_TOKENS: must give everybody a token of their own',
  ]);
  assert.deepEqual(twice(`desk:${one}, night:${other}`), []);
});

test('a provider for operators is one that nobody reads along with, and somebody must have a role', () => {
  const known = { FAREBOX_SECRET: SECRET, ADMIN_OIDC_CLIENT_ID: 'farebox' };
  const ADMIN_OIDC_ISSUER = 'https://accounts.example.com/';
  const ADMIN_ROLES = 'email=Ann@Example.com:admin, https://claims.example/roles=a:b:money';
  const provider = { ...known, ADMIN_OIDC_ISSUER, ADMIN_ROLES };
  assert.deepEqual(problems(provider), []);
  assert.deepEqual(readConfig(provider, DECLARED).operator.settings.roles, [
    { claim: 'email', value: 'ann@example.com', role: 'admin' },
    { claim: 'https://claims.example/roles', value: 'a:b', role: 'money' },
  ]);
  for (const issuer of [
    'http://accounts.example.com',
    'http://127.0.0.1.example.com',
    'ftp://a.example',
    'accounts',
  ])
    assert.match(problems({ ...provider, ADMIN_OIDC_ISSUER: issuer }).join(), /^ADMIN_OIDC_ISSUER: /, issuer);
  assert.deepEqual(problems({ ...provider, ADMIN_OIDC_ISSUER: 'http://127.0.0.1:9' }), []);
  for (const roles of [
    'ann@example.com:admin',
    'email=ann@example.com',
    'email=ann@example.com:root',
    '=a:read',
  ])
    assert.match(problems({ ...provider, ADMIN_ROLES: roles }).join(), /^ADMIN_ROLES: /, roles);
  assert.deepEqual(problems({ ...known, ADMIN_OIDC_ISSUER }), [
    'ADMIN_ROLES: must give somebody a role, since operators sign in at ADMIN_OIDC_ISSUER',
    'ADMIN_ROLES: must give somebody the role admin, since there are no ADMIN_TOKENS',
  ]);
  assert.deepEqual(problems(known), ['ADMIN_OIDC_ISSUER: is needed beside ADMIN_OIDC_CLIENT_ID']);
  assert.deepEqual(problems({ FAREBOX_SECRET: SECRET, ADMIN_OIDC_ISSUER, ADMIN_ROLES }), [
    'ADMIN_OIDC_CLIENT_ID: is needed beside ADMIN_OIDC_ISSUER',
  ]);
});

test('sandbox money and real money are never mixed: each variable that would is named, with what to do', () => {
  const key = `0x${'1'.repeat(64)}` as const;
  const wallet = privateKeyToAddress(key);
  const sandbox = {
    FAREBOX_SECRET: SECRET,
    FAREBOX_SANDBOX_PARTS:
      'chain=http://127.0.0.1:8545,facilitator=http://127.0.0.1:4022,tempo=http://127.0.0.1:8546',
    FAREBOX_SANDBOX_WALLETS: wallet,
    X402_NETWORKS: 'base',
    UPSTREAM_BASE_BASE_URL: 'http://127.0.0.1:8545',
    FACILITATOR_URL: 'http://127.0.0.1:4022',
    X402_RECIPIENT: wallet,
    X402_REFUND_KEYS: key,
    MPP_METHODS: 'tempo,evm',
    MPP_SECRET_KEY: SECRET,
    MPP_TEMPO_RPC_URL: 'http://127.0.0.1:8546',
    MPP_TEMPO_RECIPIENT: wallet,
    CARD_PROVIDER_KEY: `sk_test_${'a'.repeat(24)}`,
    CARD_WEBHOOK_SECRET: `whsec_${'a'.repeat(24)}`,
  };
  assert.deepEqual(problems(sandbox), []);
  assert.equal(readConfig(sandbox, DECLARED).house.sandbox, true);
  assert.equal(readConfig({ FAREBOX_SECRET: SECRET }, DECLARED).house.sandbox, false);
  const theirs = { key: `0x${'2'.repeat(64)}` as const, wallet: privateKeyToAddress(`0x${'2'.repeat(64)}`) };
  const mixtures: Record<string, string> = {
    UPSTREAM_BASE_BASE_URL: 'https://mainnet.base.org',
    FACILITATOR_URL: 'https://facilitator.example,http://127.0.0.1:4022',
    MPP_TEMPO_RPC_URL: 'https://rpc.tempo.xyz',
    X402_RECIPIENT: theirs.wallet,
    MPP_TEMPO_RECIPIENT: theirs.wallet,
    X402_REFUND_KEYS: `${key},${theirs.key}`,
    X402_RELAYER_KEYS: theirs.key,
    MPP_TEMPO_REFUND_KEY: theirs.key,
    IDENTITY_REGISTRAR_KEY: theirs.key,
    CARD_PROVIDER_KEY: `sk_live_${'a'.repeat(24)}`,
  };
  for (const [name, value] of Object.entries(mixtures)) {
    const found = problems({ ...sandbox, [name]: value });
    assert.equal(found.length, 1, name);
    assert.match(found[0] ?? '', new RegExp(`^${name}: .*Remove the variable`));
    assert(!found.join().includes(value), 'a value may be a secret and is not repeated');
  }
  assert.equal(problems({ ...sandbox, ...mixtures }).length, Object.keys(mixtures).length, 'all at once');
});

test('nobody is paid at an account whose key stands in every manual', () => {
  const base = {
    FAREBOX_SECRET: SECRET,
    X402_NETWORKS: 'base',
    UPSTREAM_BASE_BASE_URL: 'https://node.example',
  };
  for (const X402_RECIPIENT of [
    '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720',
  ])
    assert.match(problems({ ...base, X402_RECIPIENT }).join(), /^X402_RECIPIENT: .*everybody knows/);
  assert.deepEqual(problems({ ...base, X402_RECIPIENT: privateKeyToAddress(`0x${'2'.repeat(64)}`) }), []);
});

test('production does not start with a chain on which nobody could settle', () => {
  const production = {
    FAREBOX_MODE: 'production',
    PUBLIC_URL: 'https://calls.example',
    FAREBOX_SECRET: SECRET,
    UPSTREAM_BASE_BASE_URL: 'https://node.example',
    UPSTREAM_SOLANA_BASE_URL: 'https://solana.example',
    X402_RECIPIENT: privateKeyToAddress(`0x${'2'.repeat(64)}`),
    X402_RECIPIENT_SOLANA: 'AYejDAQFTx5mkHsNpM4uWkdJKv1YPm1oXw1Jrc6hnYGX',
    X402_NETWORKS: 'base,solana',
  };
  const missing = (chain: string, key: string) =>
    `FACILITATOR_URL: must be set to settle payments on ${chain}, unless ${key} is`;
  const onSolana = missing('solana', 'X402_RELAYER_KEY_SOLANA');
  assert.deepEqual(problems(production), [missing('base', 'X402_RELAYER_KEYS'), onSolana]);
  assert.deepEqual(problems({ ...production, X402_RELAYER_KEYS: `0x${'3'.repeat(64)}` }), [onSolana]);
  assert.deepEqual(problems({ ...production, FACILITATOR_URL: 'https://facilitator.example' }), []);
  assert.deepEqual(problems({ ...production, X402_NETWORKS: '' }), []);
  // A sandbox is built up step by step.
  assert.deepEqual(problems({ ...production, FAREBOX_MODE: 'development' }), []);
});

test('every variable is named once and described', () => {
  assert.equal(new Set(VARIABLES.map(({ name }) => name)).size, VARIABLES.length);
  assert(VARIABLES.every(({ describe }) => describe.length > 10));
});

test('no secret is shown by whoever writes the configuration into a log', () => {
  const key = `0x${'1'.repeat(64)}`;
  const environment = {
    FAREBOX_SECRET: SECRET,
    DATABASE_URL: 'postgres://us:a-password-of-ours@db.test/fare',
    X402_RELAYER_KEYS: key,
    MPP_SECRET_KEY: `${SECRET}-mpp`,
    CARD_PROVIDER_KEY: `sk_test_${'a'.repeat(24)}`,
    CARD_WEBHOOK_SECRET: `whsec_${'b'.repeat(24)}`,
    ADMIN_TOKENS: 'desk:a-token-of-two-dozen-characters',
    UPSTREAM_COINGECKO_API_KEY: 'a-key-of-an-upstream',
  };
  const config = readConfig(environment, DECLARED);
  const shown = [
    JSON.stringify(config, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
    inspect(config, { depth: 9, showHidden: true }),
    `${config.x402.secrets} ${config.mpp.secrets} ${config.operator.secrets}`,
    inspect(config.secrets.secrets.reveal(), { depth: 9 }),
    JSON.stringify(config.secrets.secrets.reveal()),
  ];
  for (const value of [
    'a-password-of-ours',
    key,
    SECRET,
    'a'.repeat(24),
    'b'.repeat(24),
    'a-token',
    'a-key-of',
  ])
    for (const text of shown) assert(!text.includes(value), value);
  assert.deepEqual(config.x402.secrets.reveal().relayerKeys, [key]);
  const secret = VARIABLES.filter((variable) => variable.secret === true).map(({ name }) => name);
  assert.deepEqual(
    Object.keys(environment).filter((name) => !secret.includes(name)),
    [],
  );
});

describe('a secret in a file', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'secrets-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));
  const write = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const secrets = VARIABLES.filter(({ secret }) => secret === true);

  test('is read without the end of its line, and any secret may stand in one', () => {
    const config = readConfig(
      {
        FAREBOX_SECRET_FILE: write('secret', `${SECRET}\r\n`),
        METRICS_TOKEN_FILE: write('m', 'm'.repeat(16)),
      },
      DECLARED,
    );
    assert.equal(config.secrets.secrets.reveal().versions.current.value, SECRET);
    assert.equal(config.operations.secrets.reveal().metricsToken, 'm'.repeat(16));
    assert(secrets.length > 20);
    const missing = Object.fromEntries(secrets.map(({ name }) => [`${name}_FILE`, join(folder, 'gone')]));
    assert.deepEqual(
      problems({ ...PRODUCTION, FAREBOX_SECRET: '', ...missing }).toSorted(),
      secrets.map(({ name }) => `${name}_FILE: names a file that cannot be read (ENOENT)`).toSorted(),
    );
    const names = new Set(VARIABLES.map(({ name }) => name));
    assert.deepEqual(
      secrets.filter(({ name }) => names.has(`${name}_FILE`)),
      [],
    );
  });

  test('is refused beside the secret itself, and so is a file that holds none, or is none', () => {
    const refusal = (file: string, more = {}) =>
      problems({ FAREBOX_SECRET: SECRET, METRICS_TOKEN_FILE: file, ...more }).join();
    const good = write('good', 'a token of the tests');
    assert.equal(refusal(good), '');
    assert.equal(
      refusal(good, { METRICS_TOKEN: 'a token of the tests' }),
      'METRICS_TOKEN_FILE: is set, and so is METRICS_TOKEN. Set one of them',
    );
    assert.equal(refusal(good, { METRICS_TOKEN: '' }), '', 'an empty value counts as not set');
    assert.match(refusal(write('empty', ' \n')), /^METRICS_TOKEN_FILE: names an empty file$/);
    assert.match(refusal(write('lines', 'first line\nsecond line')), /: names a file of several lines/);
    assert.match(refusal(write('large', 'x'.repeat(65_537))), /: names a file of more than 65536 bytes$/);
    assert.match(refusal(folder), /: names no file$/);
    assert.match(refusal(write('short', 'short')), /^METRICS_TOKEN: must have at least 16 characters$/);
    assert.deepEqual(problems({ ...PRODUCTION, RATE_LIMIT_PER_KEY_FILE: good }), [
      'RATE_LIMIT_PER_KEY_FILE: there is no such variable',
    ]);
  });

  test('is in force at once where its part takes it, and changes nothing while anything is wrong', () => {
    const environment = {
      FAREBOX_SECRET_FILE: write('secret', SECRET),
      METRICS_TOKEN_FILE: write('metrics', 'the first token of the tests'),
      UPSTREAM_COINGECKO_API_KEY_FILE: write('coingecko', 'first'),
      CARD_PROVIDER_KEY_FILE: write('card', 'sk_test_0123456789'),
      CARD_WEBHOOK_SECRET: 'whsec_0123456789',
    };
    const config = readConfig(environment, DECLARED);
    const { coingecko } = upstreamsOf(config.sources, []);
    const renew = () => renewSecrets(config, environment, DECLARED);
    assert.deepEqual(renew(), { renewed: [], waiting: [] });

    write('metrics', 'the second token of the tests');
    write('coingecko', '');
    assert.throws(renew, ConfigError);
    assert.equal(config.operations.secrets.reveal().metricsToken, 'the first token of the tests');

    write('coingecko', 'second');
    write('card', 'sk_test_9876543210');
    write('secret', `${SECRET},${[...SECRET].toReversed().join('')}`);
    assert.deepEqual(renew(), {
      renewed: ['UPSTREAM_COINGECKO_API_KEY', 'METRICS_TOKEN', 'CARD_PROVIDER_KEY'],
      waiting: ['FAREBOX_SECRET'],
    });
    assert.equal(config.operations.secrets.reveal().metricsToken, 'the second token of the tests');
    assert.equal(coingecko.apiKey, 'second');
    assert.equal(config.cards.secrets.reveal().secretKey, 'sk_test_9876543210');
    assert.equal(config.secrets.secrets.reveal().versions.all.length, 1);
  });
});
