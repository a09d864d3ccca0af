import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type OpenSpan, traced, tracedCall, traceWith } from './traced.ts';

test('a span that failed tells the kind of the error and nothing of its words, which may hold what a caller sent', async () => {
  const ended: [string, string | undefined][] = [];
  const spanOf = (name: string): OpenSpan => ({
    begin: spanOf,
    end: (_facts, failed) => void ended.push([name, failed]),
  });
  traceWith(spanOf);
  try {
    const step = () => Promise.reject(new TypeError('the key of a caller'));
    const call = tracedCall(
      'call',
      () => traced('step', step),
      () => ({}),
    );
    await assert.rejects(call, TypeError);
  } finally {
    traceWith(null);
  }
  assert.deepEqual(ended, [
    ['step', 'TypeError'],
    ['call', 'TypeError'],
  ]);
});

test('a call that is not traced gives its steps to no call around it', async () => {
  const begun: string[] = [];
  const spanOf = (name: string): OpenSpan => {
    begun.push(name);
    return { begin: spanOf, end() {} };
  };
  traceWith((name) => (name === 'outer' ? spanOf(name) : null));
  const noFacts = () => ({});
  const stepOf = (name: string) => traced(name, async () => {});
  try {
    const inner = () => tracedCall('inner', () => stepOf('step of the inner one'), noFacts);
    await tracedCall('outer', () => inner().then(() => stepOf('step')), noFacts);
    await inner();
  } finally {
    traceWith(null);
  }
  assert.deepEqual(begun, ['outer', 'step']);
});
