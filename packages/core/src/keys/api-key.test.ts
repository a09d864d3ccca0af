import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { deriveApiKey, digestOf, looksLikeApiKey, newApiKey, presentedApiKey } from './api-key.ts';

test('what is stored of a key is its SHA-256, and the part that may be shown', () => {
  const { apiKey, prefix, digest, lookup } = newApiKey(0);
  assert.match(apiKey, /^fbx_live_[0-9a-f]{64}$/);
  const expected = createHash('sha256').update(apiKey).digest();
  assert.deepEqual([prefix, digest], [apiKey.slice(0, 12), expected]);
  assert.equal(lookup, expected.readBigInt64BE(0));
  assert.deepEqual(digestOf(apiKey), { prefix, digest, lookup });
  assert.notEqual(newApiKey(0).apiKey, apiKey);
});

test('a derived key follows from the secret, the purpose and every part, however they are cut', () => {
  const made = (...args: Parameters<typeof deriveApiKey>) => deriveApiKey(...args).apiKey;
  assert.equal(made('s', 'checkout', ['a', 'b']), made('s', 'checkout', ['a', 'b']));
  const keys = [
    made('s', 'checkout', ['a', 'b']),
    made('t', 'checkout', ['a', 'b']),
    made('s', 'link', ['a', 'b']),
    made('s', 'checkout', ['a', 'c']),
    made('s', 'checkout', ['ab']),
    made('s', 'checkout', ['b', 'a']),
    made('s', 'checkout', ['a,b']),
  ];
  assert.equal(new Set(keys).size, keys.length);
  assert(keys.every(looksLikeApiKey));
});

test('nothing but a whole key looks like one', () => {
  const { apiKey } = newApiKey(0);
  assert(looksLikeApiKey(apiKey));
  for (const other of [
    `${apiKey}0`,
    apiKey.slice(0, -1),
    apiKey.toUpperCase(),
    ` ${apiKey}`,
    `x${apiKey}`,
    '',
  ])
    assert(!looksLikeApiKey(other), other);
});

test('a key is presented in X-API-KEY, else as a bearer token, and nowhere else', () => {
  assert.equal(presentedApiKey({ 'x-api-key': ' k ', authorization: 'Bearer b' }), 'k');
  assert.equal(presentedApiKey({ 'x-api-key': '', authorization: 'bearer  b ' }), 'b');
  for (const headers of [
    {},
    { 'x-api-key': ['a', 'b'] },
    { authorization: ['Bearer a'] },
    { authorization: 'Basic YTpi' },
    { authorization: 'Bearer a b' },
    { authorization: 'Payment Bearer a' },
  ])
    assert.equal(presentedApiKey(headers), null, JSON.stringify(headers));
});
