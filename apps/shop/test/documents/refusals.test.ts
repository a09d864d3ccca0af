/** The table of docs/operating.md that says what a start refuses, and in which mode, held against the configuration. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ConfigError, readConfig } from '../../../../packages/core/src/config.ts';
import { DECLARED } from '../../src/app.ts';

const FAREBOX_SECRET = 'kT9fQ2mZ7xWb4LrN8vYc1HsD6pGa3JeU';
const PUBLIC_URL = 'https://fare.test';
const WALLET = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const WALLET_SOLANA = '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T';
/** The first account of every development node. */
const EVERYBODYS = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
const FACILITATOR_URL = 'https://facilitator.example';
const TOKEN = 'qW7tR2mK9xPz4LbN8vYc1HsD';
const NODE = { UPSTREAM_BASE_BASE_URL: 'https://node.example' };

type Environment = Readonly<Record<string, string>>;

/** For each row, by a part of what it finds, an environment that it refuses. */
const REFUSED: Readonly<Record<string, Environment>> = {
  'no `PUBLIC_URL`': { PUBLIC_URL: 'http://fare.test' },
  'that is guessable | the record': { FAREBOX_SECRET: 'ab'.repeat(20) },
  'TRIAL_ALLOW_INTERNAL=true': { TRIAL_ALLOW_INTERNAL: 'true' },
  'token that is guessable': { ADMIN_TOKENS: `desk:${'ab'.repeat(16)}` },
  'a sandbox part': { FAREBOX_SANDBOX_PARTS: 'mailbox=http://127.0.0.1:9' },
  'a test key': {
    CARD_PROVIDER_KEY: `sk_test_${'e'.repeat(20)}`,
    CARD_WEBHOOK_SECRET: `whsec_${'e'.repeat(20)}`,
  },
  'neither a facilitator': { X402_NETWORKS: 'base', X402_RECIPIENT: WALLET, ...NODE },
  'an unknown variable': { LOG_FORMAT: 'json' },
  'no `FAREBOX_SECRET`': { FAREBOX_SECRET: '' },
  'cannot be read': { PORT: '99999' },
  'without its recipient or its node': { X402_NETWORKS: 'base', FACILITATOR_URL },
  'MPP_METHODS` without': { MPP_METHODS: 'tempo', MPP_TEMPO_RECIPIENT: WALLET },
  'CARD_PROVIDER_KEY` without': { CARD_PROVIDER_KEY: `sk_live_${'e'.repeat(20)}` },
  'one of `SMTP_URL`': { SMTP_URL: 'smtps://mail.example' },
  'DEVICE_MQTT_PORT` without': { DEVICE_MQTT_PORT: '8883' },
  'a name or a token twice': { ADMIN_TOKENS: `desk:${TOKEN},desk:${TOKEN}x` },
  'SOLANA_YIELD_TREASURY` without': { SOLANA_YIELD_TREASURY: WALLET_SOLANA },
  'well-known development accounts': {
    X402_NETWORKS: 'base',
    X402_RECIPIENT: EVERYBODYS,
    FACILITATOR_URL,
    ...NODE,
  },
};

const rows = [
  ...readFileSync(new URL('../../../../docs/operating.md', import.meta.url), 'utf8').matchAll(
    /^\| (production|every mode\b[^|]*?) \| (.*) \|$/gm,
  ),
].map(([, where = '', text = '']) => ({ where, text }));

function problems(environment: Environment): readonly string[] {
  try {
    readConfig({ FAREBOX_SECRET, PUBLIC_URL, ...environment }, DECLARED);
    return [];
  } catch (error) {
    assert(error instanceof ConfigError);
    return error.problems;
  }
}

test('what a start refuses is refused in the mode that the table says, and each row has its example', () => {
  assert.deepEqual(problems({}), []);
  assert.deepEqual(problems({ FAREBOX_MODE: 'production' }), []);
  const shown = Object.entries(REFUSED).map(([part, environment]) => {
    const found = rows.filter(({ text }) => text.includes(part));
    assert.equal(found.length, 1, `${found.length} rows say: ${part}`);
    const modes = ['development', 'production'].filter(
      (FAREBOX_MODE) => problems({ ...environment, FAREBOX_MODE }).length > 0,
    );
    const [row] = found;
    assert.deepEqual(
      modes,
      row?.where === 'production' ? ['production'] : ['development', 'production'],
      part,
    );
    return row;
  });
  assert.equal(new Set(shown).size, rows.length, 'a row has no example');
});

test('the block for production is a configuration that is taken, with the secrets filled in', () => {
  const document = readFileSync(new URL('../../../../docs/operating.md', import.meta.url), 'utf8');
  const [, block = ''] = /^```sh\n(export FAREBOX_MODE=production\n[\s\S]*?)^```/m.exec(document) ?? [];
  const set = [...block.matchAll(/^export ([A-Z_]+)=(\S+)/gm)].map(([, name = '', value = '']) => [
    name,
    value,
  ]);
  assert(set.length > 4);
  const filled = { FAREBOX_SECRET, DATABASE_URL: 'postgres://farebox@127.0.0.1/farebox' };
  const environment: Environment = { ...Object.fromEntries(set), ...filled };
  assert.deepEqual(problems(environment), []);
  const { house } = readConfig(environment, DECLARED);
  // Such a proxy can connect: where nothing but this machine can, the proxy is on it.
  assert.equal(house.host, '127.0.0.1');
  assert.equal(environment.TRUSTED_PROXIES, '127.0.0.1');
});

test('the variables that the documents give to clients would end a production start, as they say', () => {
  for (const name of ['FAREBOX_URL', 'FAREBOX_API_KEY', 'WALLET_KEY', 'LOG_FORMAT', 'MAX_OLD'])
    assert.deepEqual(problems({ FAREBOX_MODE: 'production', [name]: 'x' }), [
      `${name}: there is no such variable`,
    ]);
  for (const name of ['DATABASE_SERVICE_HOST', 'DATABASE_PORT_5432_TCP', 'SOURCE_DATE_EPOCH'])
    assert.deepEqual(problems({ FAREBOX_MODE: 'production', [name]: 'x' }), []);
});
