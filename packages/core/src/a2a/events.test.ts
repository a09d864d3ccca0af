import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventsOf } from './events.ts';

test('only a line feed ends a line of a stream', () => {
  const said = 'one\u2028event: other\u2029data: {}\u0085end';
  const stream = `event: word\ndata: ${JSON.stringify({ said })}\n\nevent: result\ndata: 1\n\n`;
  assert.deepEqual(eventsOf(stream), [
    { event: 'word', data: { said } },
    { event: 'result', data: 1 },
  ]);
  assert.deepEqual(eventsOf(''), []);
});
