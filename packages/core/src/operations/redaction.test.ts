import assert from 'node:assert/strict';
import { test } from 'node:test';
import pino from 'pino';
import { redaction, scrub } from './redaction.ts';

const KEY = `fbx_live_${'ab'.repeat(32)}`;

test('no secret reaches a line, whatever brings it along', () => {
  let written = '';
  const write = (line: string) => {
    written += line;
  };
  const logger = pino({ ...redaction }, { write });
  const error = Object.assign(new Error(`key ${KEY} refused by postgres://farebox:hunter2@host/db`), {
    code: 'E1',
  });
  error.cause = new Error('inner');
  logger.error({ err: error }, 'failed');
  logger.info(
    { apiKey: KEY, request: { headers: { authorization: `Bearer ${KEY}`, 'x-api-key': KEY } } },
    'seen',
  );
  logger.info({ headers: { 'payment-signature': 'signed', 'x-payment': 'paid', cookie: 'c=1' } }, 'seen');
  for (const secret of [KEY, 'abab', 'hunter2', 'signed', 'paid', 'c=1']) {
    assert(!written.includes(secret), `${secret} in ${written}`);
  }
  assert(written.includes('E1') && written.includes('refused by'), 'what is no secret stays');
});

test('free text loses keys, credentials and passwords, and nothing else', () => {
  assert.equal(scrub('Authorization: Payment eyJjaGFsbGVuZ2UiOnt9fQ'), 'Authorization: Payment [redacted]');
  assert.equal(scrub('https://api.test/v1?x=1 took 5 ms'), 'https://api.test/v1?x=1 took 5 ms');
});
