import assert from 'node:assert/strict';
import { test } from 'node:test';

const {
  agoWords,
  dayWords,
  momentWords,
}: {
  momentWords(iso: string): string;
  dayWords(iso: string): string;
  agoWords(iso: string, nowMs: number): string;
} = await import(new URL('./moments.js', import.meta.url).href);

test('a time is shown in UTC, whatever the language and the place of the reader', () => {
  assert.equal(momentWords('2026-11-03T09:05:59.000Z'), '3 Nov 2026, 09:05 UTC');
  assert.equal(dayWords('2026-12-31T23:30:00-02:00'), '1 Jan 2027');
});

test('how fresh something is, is told in its largest unit, and nothing is in the future', () => {
  const nowMs = Date.UTC(2026, 10, 23, 12);
  const told = (beforeMs: number) => agoWords(new Date(nowMs - beforeMs).toISOString(), nowMs);
  assert.deepEqual([-5_000, 59_000, 60_000, 3_599_000, 7_200_000, 86_400_000, 200_000_000].map(told), [
    'just now',
    'just now',
    '1 min ago',
    '59 min ago',
    '2 h ago',
    '1 day ago',
    '2 days ago',
  ]);
});
