import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { readEvents } from './event-source.ts';
import { InvalidReply } from './wire-errors.ts';

const bounds = { maxBytes: 10_000, maxEventBytes: 1_000 };

async function* cutAt(bytes: Buffer, at: readonly number[]) {
  let from = 0;
  for (const to of [...at].sort((a, b) => a - b)) {
    yield bytes.subarray(from, to);
    from = to;
  }
  yield bytes.subarray(from);
}

async function read(bytes: Buffer | string, at: readonly number[] = [], given = bounds) {
  const events: string[] = [];
  for await (const event of readEvents(cutAt(Buffer.from(bytes), at), given)) events.push(event);
  return events;
}

it('reads the same events however they are split into chunks, with any line ends', async () => {
  const said = [
    ': hello',
    'event: x',
    'id: 1',
    'data: {"é":"日本"}',
    '',
    '',
    'data:a',
    'data:  b',
    '',
    'data: no end',
  ];
  for (const end of ['\n', '\r\n', '\r']) {
    const bytes = Buffer.from(said.join(end));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 12 }), async (at) => {
        assert.deepEqual(await read(bytes, at), ['{"é":"日本"}', 'a\n b']);
      }),
      { numRuns: 100 },
    );
  }
});

it('stops at its bounds, and at bytes that are not text', async () => {
  const event = `data: ${'x'.repeat(500)}\n\n`;
  assert.equal((await read(event.repeat(15))).length, 15);
  await assert.rejects(read(event.repeat(20)), InvalidReply);
  const endless = `data: ${'x'.repeat(3_000)}`;
  await assert.rejects(read(endless, [900, 1_100]), InvalidReply);
  await assert.rejects(read(Buffer.from([0x64, 0xff, 0xfe])), InvalidReply);
});
