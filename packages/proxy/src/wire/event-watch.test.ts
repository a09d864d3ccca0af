import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LastEventWatch } from './event-watch.ts';

/** Whether the stream has the event, whatever pieces it comes in. */
function has(stream: string, wanted = '[DONE]'): boolean {
  const bytes = Buffer.from(stream);
  const seen = [1, 2, 3, 7, bytes.length].map((size) => {
    const watch = new LastEventWatch(wanted);
    for (let at = 0; at < bytes.length; at += size) watch.see(bytes.subarray(at, at + size));
    return watch.hasSeen;
  });
  assert.equal(new Set(seen).size, 1, `${JSON.stringify(stream)} in pieces: ${seen}`);
  return seen[0] === true;
}

describe('the event that ends a stream', () => {
  test('is seen whatever ends its lines, and whatever else it has', () => {
    for (const stream of [
      'data: [DONE]\n\n',
      'data:[DONE]\n\n',
      'data: {"a":1}\n\ndata: [DONE]\n\n',
      'data: {"a":1}\r\n\r\ndata: [DONE]\r\n\r\n',
      'data: 1\r\rdata: [DONE]\r\r',
      '\ufeffdata: [DONE]\n\n',
      ': note\nid: 4\nevent: end\ndata: [DONE]\nretry: 1\n\n',
      'data: [DONE]\n\ndata: more\n\n',
      `data: ${'x'.repeat(9_000)}\n\n${'y'.repeat(9_000)}\n\ndata: [DONE]\n\n`,
    ])
      assert(has(stream), JSON.stringify(stream));
    assert(has('data: a\ndata: b\n\n', 'a\nb'));
  });

  test('is not seen before it has ended, inside of another, or in another field', () => {
    for (const stream of [
      '',
      'data: [DONE]',
      'data: [DONE]\n',
      'data: [DONE]\r\n',
      'data: [DONE] \n\n',
      'data:  [DONE]\n\n',
      'data: x[DONE]\n\n',
      'data: {"text":"data: [DONE]"}\n\n',
      'data: [DONE]\ndata: more\n\n',
      'event: [DONE]\n\n',
      'Data: [DONE]\n\n',
      ': data: [DONE]\n\n',
      `data: [DONE]\ndata: ${'x'.repeat(9_000)}\n\n`,
      `data: [DONE]\n${'x'.repeat(9_000)}\n\n`,
      '\n\n',
    ])
      assert(!has(stream), JSON.stringify(stream));
    assert(!has('\n\nevent: x\n\n', ''), 'an event without data is none');
  });
});
