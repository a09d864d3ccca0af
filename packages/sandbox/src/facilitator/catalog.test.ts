import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { openCatalog } from './catalog.ts';

const info = { input: { type: 'http', method: 'GET', queryParams: { chain: 'base' } } };
const fits = { type: 'object', properties: { input: { type: 'object' } } };

/** A payment with this declaration, with as much of it as is read here. */
function paying(bazaar: object) {
  const resource = { url: 'https://sandbox.test/x402/token-price' };
  return {
    x402Version: 2 as const,
    payload: { x402Version: 2, resource, extensions: { bazaar } } as unknown as PaymentPayload,
    requirements: {} as PaymentRequirements,
  };
}

test('a declaration is judged by its own schema, whatever was declared before', () => {
  const { read } = openCatalog(Date.now);
  const wrong = { ...fits, required: ['output'] };
  for (const _ of [1, 2]) {
    assert.equal(typeof read(paying({ info, schema: fits })), 'object');
    assert.equal(read(paying({ info, schema: wrong })), "(root): must have required property 'output'");
  }
});

test('the schema of a declaration that was checked lately is not compiled again', () => {
  const { read } = openCatalog(Date.now);
  let looks = 0;
  const schema = {
    ...fits,
    get title() {
      looks += 1;
      return 'a schema that counts who reads it';
    },
  };
  const looksOf = (payment: ReturnType<typeof paying>) => {
    looks = 0;
    read(payment);
    return looks;
  };
  const first = looksOf(paying({ info, schema }));
  const again = looksOf(paying({ info, schema }));
  assert.ok(again < first, `looked at ${first} times, then ${again} times`);
  // Only so many are remembered.
  for (let at = 0; at < 100; at++) read(paying({ info, schema: { description: `${at}` } }));
  assert.equal(looksOf(paying({ info, schema })), first);
});
