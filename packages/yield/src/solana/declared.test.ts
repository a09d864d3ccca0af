import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SOLANA_YIELD } from './declared.ts';

const TREASURY = 'DYw8jCTfwHNRJhhmFcbXvVDTqWMEVFBX6ZKUmG5CNSKK';

test('a treasury wants a slot to begin in, and is no wallet that calls are paid to', () => {
  const problemsOf = (treasury: string | null, sinceSlot: number | null, recipient: string | null) =>
    SOLANA_YIELD.problems?.(
      { treasury, sinceSlot },
      {
        production: true,
        other: (name) => (name === 'X402_RECIPIENT_SOLANA' ? recipient : 'https://node.example'),
      },
    ) ?? [];
  assert.deepEqual(problemsOf(null, null, null), []);
  assert.deepEqual(problemsOf(TREASURY, 0, 'another'), []);
  assert.match(problemsOf(TREASURY, null, null).join(), /^SOLANA_YIELD_SINCE_SLOT: must be set/);
  assert.match(
    problemsOf(TREASURY, 0, TREASURY).join(),
    /^SOLANA_YIELD_TREASURY: must be another wallet than X402_RECIPIENT_SOLANA/,
  );
});
