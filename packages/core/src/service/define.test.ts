import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { content } from '../words/answer.ts';
import { defineContentService } from './define.ts';

const declared = (contentType: string, timeoutMs = 20_000) =>
  defineContentService({
    path: 'p',
    name: 'P',
    tag: 'Discovery',
    priceUsd: '0.01',
    summary: '',
    input: z.object({}),
    example: {},
    contentType,
    timeoutMs,
    run: async () => content('', { method: '' }),
  });

test('a text is in UTF-8 unless its service says otherwise, and bytes have no charset', () => {
  const types = ['text/csv', 'text/plain; charset=iso-8859-1', 'image/svg+xml'].map((type) => declared(type));
  assert.deepEqual(
    types.map(({ contentType, mediaType }) => [contentType, mediaType]),
    [
      ['text/csv; charset=utf-8', 'text/csv'],
      ['text/plain; charset=iso-8859-1', 'text/plain'],
      ['image/svg+xml', 'image/svg+xml'],
    ],
  );
});

test('an invalid media type, one that breaks a header, and JSON are refused', () => {
  for (const type of [
    'csv',
    'text/csv\r\nx: y',
    'Text/CSV',
    'text/',
    'application/json',
    'text/event-stream',
    'a/b é',
  ])
    assert.throws(() => declared(type), /p: /, type);
});

test('no service may hold its price for longer than five minutes', () => {
  assert.equal(declared('image/png', 300_000).timeoutMs, 300_000);
  for (const timeoutMs of [0, 300_001, Number.NaN])
    assert.throws(() => declared('image/png', timeoutMs), /timeoutMs/);
});
