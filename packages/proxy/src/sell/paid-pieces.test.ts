import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failure, type UpstreamFailure } from '../wire/outcome.ts';
import { UpstreamBroke } from '../wire/upstream.ts';
import { piecesOf } from './paid-pieces.ts';

const NEVER = new Promise<never>(() => {});

/** An answer of these pieces. @param ends whether its end is known before the last of them is read */
function answerOf(
  pieces: readonly (string | UpstreamFailure)[],
  { headers = {}, ends = false }: { headers?: Record<string, string>; ends?: boolean } = {},
) {
  const ended = Promise.withResolvers<null>();
  return {
    headers,
    ended: ended.promise,
    pieces: (async function* () {
      for (const [index, piece] of pieces.entries()) {
        if (typeof piece !== 'string') throw new UpstreamBroke(piece);
        if (ends && index === pieces.length - 1) ended.resolve(null);
        yield Buffer.from(piece);
      }
    })(),
  };
}

/** What left at once, and what waited. */
async function told(
  answer: Parameters<typeof piecesOf>[0],
  lastEvent: string | null = null,
): Promise<{ at: string[]; last: string }> {
  const pieces = piecesOf(answer, { lastEvent, failed: ({ reason }) => new Error(reason) });
  const at: string[] = [];
  for (;;) {
    const next = await pieces.next();
    if (next.done === true) return { at, last: next.value.toString() };
    at.push(next.value.toString());
  }
}

test('the piece waits that completes a known length, and the one that came with the end', async () => {
  assert.deepEqual(await told(answerOf(['ab', 'c'], { headers: { 'content-length': '3' } })), {
    at: ['ab'],
    last: 'c',
  });
  assert.deepEqual(await told(answerOf(['ab', 'c'], { ends: true })), { at: ['ab'], last: 'c' });
});

test('the last event waits, whatever pieces it comes in; a little that comes behind waits with it', async () => {
  const answer = (...pieces: string[]) => answerOf(['data: a\n\n', ...pieces]);
  assert.deepEqual(await told(answer('data: [DO', 'NE]\n\n'), '[DONE]'), {
    at: ['data: a\n\n', 'data: [DO'],
    last: 'NE]\n\n',
  });
  assert.deepEqual(await told(answer('data: [DONE]\n\n', ': x\n'), '[DONE]'), {
    at: ['data: a\n\n'],
    last: 'data: [DONE]\n\n: x\n',
  });
  const much = 'x'.repeat(65_536);
  assert.deepEqual(await told(answer('data: [DONE]\n\n', much), '[DONE]'), {
    at: ['data: a\n\n', 'data: [DONE]\n\n'],
    last: much,
  });
});

test('where nothing tells which piece is the last, none waits for another one', async () => {
  const waiting = {
    headers: {},
    ended: NEVER,
    pieces: (async function* () {
      yield Buffer.from('once');
      await NEVER;
    })(),
  };
  const pieces = piecesOf(waiting, { lastEvent: null, failed: () => new Error() });
  assert.deepEqual(await pieces.next(), { done: false, value: Buffer.from('once') });
  assert.deepEqual(await told(answerOf(['once'])), { at: ['once'], last: '' });
  assert.deepEqual(await told(answerOf([])), { at: [], last: '' });
});

test('what breaks off fails, and what waited does not leave', async () => {
  const broken = answerOf(['ab', failure('cut', 'by the test')], { headers: { 'content-length': '2' } });
  const pieces = piecesOf(broken, { lastEvent: null, failed: ({ reason }) => new Error(reason) });
  await assert.rejects(pieces.next(), /cut/);
});
