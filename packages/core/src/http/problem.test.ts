import assert from 'node:assert/strict';
import { test } from 'node:test';
import { databaseAway } from './problem.ts';

const saying = (code: string) => Object.assign(new Error('not now'), { code });

test('what the database could not do at this moment is a 503, and never the fault of the request', () => {
  // Lost, not found, too slow, locked, idle for too long within a transaction.
  for (const code of ['CONNECTION_CLOSED', 'EAI_AGAIN', '57014', '55P03', '25P03']) {
    const away = databaseAway(saying(code));
    assert.deepEqual([away?.status, away?.code], [503, 'DATABASE_UNAVAILABLE'], code);
  }
});

test('what the database refused is no 503', () => {
  for (const code of ['23505', '22P02', '42P01', '']) assert.equal(databaseAway(saying(code)), null, code);
});
