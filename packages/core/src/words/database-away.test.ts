import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDatabaseAway, isDatabaseLost } from './database-away.ts';

const saying = (code: string) => Object.assign(new Error('not now'), { code });

test('a database that nobody reaches, that cuts connections off, or that is going, starting or full is lost', () => {
  const system = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EAI_AGAIN'];
  const driver = ['CONNECTION_CLOSED', 'CONNECTION_ENDED', 'CONNECT_TIMEOUT'];
  for (const code of [...system, ...driver, '57P01', '57P03', '08006', '53300']) {
    assert(isDatabaseLost(saying(code)), code);
    assert(isDatabaseAway(saying(code)), code);
  }
});

test('a database that answers, and not in time, is away and not lost', () => {
  for (const code of ['57014', '55P03', '25P03']) {
    assert(isDatabaseAway(saying(code)), code);
    assert(!isDatabaseLost(saying(code)), code);
  }
});

test('what the database refused, and what is no error of its, is neither', () => {
  const others = ['23505', '22P02', '42P01', '3D000', '28P01', ''].map(saying);
  for (const error of [...others, new Error('ECONNRESET'), { code: 'ECONNRESET' }, null]) {
    assert(!isDatabaseAway(error));
    assert(!isDatabaseLost(error));
  }
});
