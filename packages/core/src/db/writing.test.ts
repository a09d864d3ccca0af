import assert from 'node:assert/strict';
import { test } from 'node:test';
import postgres from 'postgres';
import { createWriting } from './writing.ts';

function failure(code: string): Error {
  return Object.assign(new postgres.PostgresError('no'), { code });
}

test('a database that is full, broken or a standby takes no writes, until one works or ten seconds are over', () => {
  for (const code of ['53100', '58030', '58P01', 'XX001', '25006']) {
    let stopwatch = 1_000;
    const writing = createWriting(() => stopwatch);
    assert.equal(writing.isRefused, false);
    writing.failed(failure(code));
    assert.equal(writing.isRefused, true, code);
    stopwatch += 9_999;
    assert.equal(writing.isRefused, true);
    stopwatch += 1;
    assert.equal(writing.isRefused, false, 'the next write may try');
    writing.failed(failure(code));
    writing.worked();
    assert.equal(writing.isRefused, false);
  }
});

test('what fails for a reason of its own says nothing about other writes', () => {
  const writing = createWriting();
  for (const code of ['23505', '55P03', '57014', '53300', 'XX000']) writing.failed(failure(code));
  writing.failed(new Error('ECONNRESET'));
  writing.failed(Object.assign(new Error('no'), { code: '53100' }));
  assert.equal(writing.isRefused, false);
});

test('a heartbeat shows that a database is no standby any more, and nothing about its disk', () => {
  const writing = createWriting();
  writing.failed(failure('25006'));
  writing.beat();
  assert.equal(writing.isRefused, false);
  writing.failed(failure('53100'));
  writing.beat();
  assert.equal(writing.isRefused, true);
});
