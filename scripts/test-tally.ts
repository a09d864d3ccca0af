/** A reporter of `node:test` for scripts/test-process.ts: one line of JSON for each finished test. */
import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';

/**
 * The report of a test. A file is reported as a test of its own only when something outside of its tests failed, or
 * when it ran in one process with others.
 */
export interface Told {
  name: string;
  passed: boolean;
  /** How many tests it stands in. */
  nesting: number;
  durationMs: number;
  /** Whether it failed for what it has within, which is reported too. */
  failedWithin: boolean;
  /** The text of what was thrown, for one that failed. */
  why?: string;
}

const WHY_CHARACTERS = 2_000;

export default async function* tally(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const failedWithin = type === 'test:fail' && isOfWithin(data.details.error);
    // A suite is no test, and fails by itself where one of its hooks does.
    if (data.details.type === 'suite' && (type === 'test:pass' || failedWithin)) continue;
    const { name, nesting } = data;
    const told: Told = {
      name,
      nesting,
      passed: type === 'test:pass',
      durationMs: data.details.duration_ms,
      failedWithin,
    };
    if (type === 'test:fail')
      told.why = inspect(data.details.error.cause ?? data.details.error).slice(0, WHY_CHARACTERS);
    yield `${JSON.stringify(told)}\n`;
  }
}

function isOfWithin(error: Error): boolean {
  return 'failureType' in error && error.failureType === 'subtestsFailed';
}
