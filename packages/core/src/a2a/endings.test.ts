/** Tests what an answer of the paid call does to its task: nobody is told that nothing was charged where that is not known. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fate } from '../paid-call/fate.ts';
import { endingOf } from './endings.ts';
import type { Credential } from './messages.ts';

const credential: Credential = { by: 'x402', headers: {}, digest: Buffer.from('a'), network: null };

function ended(
  status: number,
  { charged, fate, wasKept = false }: { charged?: boolean | null; fate: Fate; wasKept?: boolean },
) {
  const body = status === 499 ? '' : JSON.stringify({ code: 'CODE', message: 'It went so.', charged });
  const { state, keepsPayment, statusMessage } = endingOf(
    { status, headers: {}, body, fate },
    credential,
    wasKept,
  );
  return [state, keepsPayment, statusMessage?.data?.charged];
}

test('a caller who left keeps its payment with the task unless nothing was taken', () => {
  assert.deepEqual(ended(499, { fate: 'free' }), ['failed', false, undefined]);
  for (const fate of ['open', 'taken', 'not looked'] as const) {
    assert.deepEqual(ended(499, { fate }), ['input-required', true, null], fate);
    const { statusMessage } = endingOf({ status: 499, headers: {}, body: '', fate }, credential, false);
    assert.equal(statusMessage?.data?.code, 'CALLER_GONE');
  }
});

test('a service that fails after the payment was taken has not failed for good', () => {
  for (const status of [400, 404, 422, 429, 500, 503])
    assert.deepEqual(ended(status, { charged: true, fate: 'taken' }), ['input-required', true, true]);
  assert.deepEqual(ended(409, { charged: true, fate: 'spent' }), ['failed', false, true]);
  assert.deepEqual(ended(422, { charged: false, fate: 'free' }), ['failed', false, false]);
});

test('a message that does not fit lets no payment go that came before it', () => {
  for (const status of [400, 409]) {
    const statusMessage = { charged: false, fate: 'not looked' } as const;
    assert.deepEqual(ended(status, { ...statusMessage, wasKept: true }), ['input-required', true, null]);
    assert.equal(ended(status, statusMessage)[1], false);
  }
});
