/** The watch over every test server's log, watched. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer } from '../server.fixture.ts';
import { secretIn } from './log-secrets.fixture.ts';

let database: TestDatabase;
before(async () => {
  database = await openTestDatabase();
});
after(() => database.close());

const HEX_64 = '0123456789abcdef'.repeat(4);

test('what is secret is found, wherever in a line it stands', () => {
  for (const secret of [
    `fbx_live_${HEX_64}`,
    `/api/m2m/credits/checkout/status/cs_test_1?token=${HEX_64.slice(0, 32)}`,
    'sk_test_of_somebody',
    'sk_live_of_somebody',
    'whsec_of_somebody',
    `"privateKey":"0x${HEX_64}"`,
    `"key":"${HEX_64}"`,
    '4242424242424242',
    '4242 4242 4242 4242',
    '4000-0025-0000-3155',
    '378282246310005',
    '5555555555554444',
  ]) {
    const line = `{"level":30,"time":1795280306000,"msg":"paid with ${secret} yesterday"}`;
    const leak = secretIn(line);
    assert(leak !== null, secret);
    assert(!leak.head.includes(secret), `the message repeats ${secret}`);
  }
});

test('what looks like a secret is not one', () => {
  for (const harmless of [
    'fbx_live_0123',
    '?token=<retrievalToken>',
    `"transaction":"0x${HEX_64}"`,
    `"publicKey":"0x${HEX_64}"`,
    // Not by its check digit; a time; an amount; parts of other words.
    '4242424242424241',
    '"time":1795280306000',
    '"micros":"4000000000000"',
    `0x${'4242424242424242'}`,
    '019f3a52-4242-7242-8242-424242424242',
    'the key of 0x8335…',
  ]) {
    assert.equal(secretIn(`{"msg":"${harmless}"}`), null, harmless);
  }
});

test('a server whose log has a secret does not close in peace', async () => {
  const token = 'operators-token-of-this-test-alone';
  const environment = { ADMIN_TOKENS: `desk:${token}` };
  const options = { pools: database, services: [], environment };
  const quiet = await startTestServer(options);
  await quiet.close();

  const keys = await startTestServer(options);
  const key = await keys.key('1');
  keys.app.http.log.info({ presented: key }, 'a call');
  await assert.rejects(keys.close(), (error: Error) => {
    assert.match(error.message, /logged an API key: .*"presented":"<…>"/);
    assert(!error.message.includes(key));
    return true;
  });

  const tokens = await startTestServer(options);
  tokens.app.http.log.info(`Bearer ${token}`);
  await assert.rejects(tokens.close(), /logged a secret of the configuration/);
});
