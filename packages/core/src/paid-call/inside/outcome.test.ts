import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NotBegun, QueueFull } from '../../ledger/group-commit.ts';
import { noAnswer, sourceUnavailable } from '../../words/failure.ts';
import { saleOf } from '../sale.fixture.ts';
import { asProblem, type CallReport } from './outcome.ts';

/** The answer to what was thrown, and what the report says of the call. */
function told(error: unknown) {
  const report: CallReport = { ...saleOf({ identity: null }).report };
  const { status, code, message, details } = asProblem(error, report);
  return { told: [status, code, report.outcome], message, details, report };
}
const saying = (code: string) => Object.assign(new Error('the password is hunter2'), { code });

test('a ledger that could not take a call is a 503 that says why, and that nothing was charged', () => {
  for (const [error, ...expected] of [
    [new NotBegun('locked'), 503, 'ACCOUNT_BUSY', 'unavailable'],
    [new NotBegun('not sent'), 503, 'LEDGER_UNAVAILABLE', 'unavailable'],
    [new QueueFull(), 503, 'BUSY', 'failed'],
    [saying('CONNECTION_CLOSED'), 503, 'DATABASE_UNAVAILABLE', 'unavailable'],
    [saying('55P03'), 503, 'DATABASE_UNAVAILABLE', 'unavailable'],
  ] as const) {
    const { told: is, details } = told(error);
    assert.deepEqual(is, expected);
    assert.equal(details.charged, false);
    assert(Number(details.retryAfterSeconds) > 0);
  }
});

test('a fault of the service is told to the log alone', () => {
  const error = saying('23505');
  const { told: is, report, message, details } = told(error);
  assert.deepEqual(is, [500, 'SERVICE_ERROR', 'failed']);
  assert.equal(report.error, error);
  assert(!JSON.stringify([message, details]).includes('hunter2'));
});

test('what a service has no answer to, and what its source could not say, are no faults', () => {
  const none = told(noAnswer('ON_LAND', 'no sea here', 'lat'));
  assert.deepEqual(none.told, [422, 'ON_LAND', 'no_answer']);
  assert.deepEqual(none.details, { fields: [{ field: 'lat', message: 'no sea here' }], charged: false });
  const away = sourceUnavailable('somewhere', 'upstream_down', 'Somewhere is down', 9_000);
  const { told: is, details } = told(away);
  assert.deepEqual(is, [503, 'UPSTREAM_UNAVAILABLE', 'unavailable']);
  assert.deepEqual([details.retryAfterSeconds, details.charged], [9, false]);
});
