import assert from 'node:assert/strict';
import { test } from 'node:test';
import pingService from '../../../catalogue/src/services/discovery/ping.ts';
import { content, type Source } from '../words/answer.ts';
import { contentOf } from './content.ts';

const csv = { ...pingService, contentType: 'text/csv; charset=utf-8', mediaType: 'text/csv' };
const source = (index: number): Source => ({
  name: `source ${index}`,
  url: `https://example.com/${'x'.repeat(150)}`,
  asOf: null,
  retrievedAt: '2026-01-02T03:04:05.000Z',
  cached: true,
  sandbox: index === 59,
});

test('provenance is one header of ASCII, and what does not fit is counted', () => {
  const sources = Array.from({ length: 60 }, (_, index) => source(index));
  const { headers } = contentOf(csv, content('a', { method: 'σ\r\nx: y', sources, notes: ['…'.repeat(90)] }));
  const header = headers['x-provenance'] ?? '';
  assert.match(header, /^[\x20-\x7e]{1,4096}$/);
  const read = JSON.parse(header);
  assert.equal(read.method, 'σ\r\nx: y');
  assert.equal(read.mode, 'sandbox', 'of a source that is not shown');
  assert.deepEqual(read.sources, sources.slice(0, read.sources.length));
  assert.ok(read.sources.length > 5);
  assert.equal(read.omitted.sources, 60 - read.sources.length);
});

test('notes too long for the header are left out and counted, and so is a method that is too long', () => {
  const notes = ['n'.repeat(5_000)];
  const { headers } = contentOf(
    csv,
    content('a', { method: '€'.repeat(10_000), sources: [source(1)], notes }),
  );
  const read = JSON.parse(headers['x-provenance'] ?? '');
  assert.deepEqual(read.omitted, { sources: 0, notes: 1 });
  assert.equal(read.method.length, 500);
});

test('a service that declares content and answers fields has failed', () => {
  assert.throws(() => contentOf(csv, { fields: {}, method: '', sources: [], notes: [] }), /no text\/csv/);
});

test('bytes are those of the view alone, and a header has no letter beyond ASCII', () => {
  const whole = Uint8Array.from(Buffer.from('not yours: a,b: nor this'));
  const made = contentOf(csv, content(whole.subarray(11, 14), { method: 'é, ÿ' }));
  assert.equal(String(made.body), 'a,b');
  assert.match(made.headers['x-provenance'] ?? '', /^[\x20-\x7e]+$/);
});
