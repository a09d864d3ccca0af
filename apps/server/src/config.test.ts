import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, readConfig, VARIABLES } from './config.ts';

const SECRET = 'kT9fQ2mZ7xWb4LrN8vYc1HsD6pGa3JeU';
const PRODUCTION = { FAREBOX_MODE: 'production', FAREBOX_SECRET: SECRET, PUBLIC_URL: 'https://fare.test' };

function problems(environment: Record<string, string>): readonly string[] {
  try {
    readConfig(environment);
    return [];
  } catch (error) {
    assert(error instanceof ConfigError);
    return error.problems;
  }
}

test('a secret is all that must be set; everything else has a value', () => {
  const config = readConfig({ FAREBOX_SECRET: SECRET, HOST: '' });
  assert.deepEqual([config.host, config.port, config.production], ['127.0.0.1', 8402, false]);
  assert.equal(config.upstreams.defillama.baseUrl, 'https://coins.llama.fi');
  assert.equal(config.upstreams.ai.baseUrl, null);
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

test('production starts with what it needs, and refuses sandbox parts, weak secrets and unknown names', () => {
  assert.deepEqual(problems(PRODUCTION), []);
  assert.equal(problems({ ...PRODUCTION, FAREBOX_SANDBOX_PARTS: 'upstreams' }).length, 1);
  assert.equal(problems({ ...PRODUCTION, FAREBOX_SECRET: 'a'.repeat(40) }).length, 1);
  assert.equal(problems({ ...PRODUCTION, PUBLIC_URL: 'http://fare.test' }).length, 1);
  assert.deepEqual(problems({ ...PRODUCTION, RATE_LIMIT_PER_KEYS: '5', PATH: '/bin' }), [
    'RATE_LIMIT_PER_KEYS: there is no such variable',
  ]);
  assert.deepEqual(problems({ ...PRODUCTION, TRIAL_ALLOW_INTERNAL: 'true' }), [
    'TRIAL_ALLOW_INTERNAL: must not be true in production',
  ]);
});

test('who is believed about callers is one header of named proxies, and no token can be guessed', () => {
  const { proxyTrust } = readConfig({
    FAREBOX_SECRET: SECRET,
    TRUSTED_PROXIES: '10.0.0.5',
    PROXY_HEADER: ' X-Real-IP ',
  });
  assert.deepEqual([proxyTrust.header, proxyTrust.proxies.length], ['x-real-ip', 1]);
  assert.equal(readConfig({ FAREBOX_SECRET: SECRET }).proxyTrust.header, 'x-forwarded-for');
  for (const PROXY_HEADER of ['x-a, x-b', 'X-API-KEY', 'host', 'a b', 'ä'])
    assert.match(problems({ FAREBOX_SECRET: SECRET, PROXY_HEADER }).join(), /^PROXY_HEADER: /, PROXY_HEADER);
  for (const TRUSTED_PROXIES of ['0.0.0.0/0', '10.0.0.1, ::/0'])
    assert.match(problems({ FAREBOX_SECRET: SECRET, TRUSTED_PROXIES }).join(), /^TRUSTED_PROXIES: /);
  const ADMIN_TOKENS = `desk:${'ab'.repeat(16)}`;
  assert.deepEqual(problems({ ...PRODUCTION, ADMIN_TOKENS }), [
    'ADMIN_TOKENS: a token is too regular to be a secret',
  ]);
});

test('every variable is named once and described', () => {
  assert.equal(new Set(VARIABLES.map(({ name }) => name)).size, VARIABLES.length);
  assert(VARIABLES.every(({ describe }) => describe.length > 10));
});
