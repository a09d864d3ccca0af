import assert from 'node:assert/strict';
import { test } from 'node:test';
import { databaseLost } from './problem.ts';

const saying = (code: string) => Object.assign(new Error('not now'), { code });

test('what the database could not do at this moment is a 503, and never the fault of the request', () => {
  const notNow = ['CONNECTION_CLOSED', 'CONNECT_TIMEOUT', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'];
  // Going, cut off, full, too slow, locked, idle for too long within a transaction.
  const sqlStates = ['57P01', '57P03', '08006', '53300', '57014', '55P03', '25P03'];
  for (const code of [...notNow, ...sqlStates]) {
    assert.equal(databaseLost(saying(code))?.status, 503, code);
  }
});

test('what the database refused is no 503', () => {
  for (const code of ['23505', '22P02', '42P01', '']) assert.equal(databaseLost(saying(code)), null, code);
  assert.equal(databaseLost(new Error('ECONNRESET')), null);
  assert.equal(databaseLost(null), null);
});
