import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { MeterRule } from '../config/proxy-config.ts';
import { openMeter } from './meter.ts';

const CEILING = 10_000n;
const UNMEASURED = 4_000n;

const ruleOf = (measure: MeterRule['measure'], price: { micros: bigint; per: bigint }): MeterRule => ({
  measure,
  priceMicros: price.micros,
  per: price.per,
  atMostMicros: CEILING,
  whenUnmeasuredMicros: UNMEASURED,
});
const EACH = { micros: 10n, per: 1n };
const USAGE = ruleOf({ kind: 'usage', path: ['usage', 'total_tokens'] }, EACH);
const ITEMS = ruleOf({ kind: 'items', path: ['results'] }, EACH);
const JSON_TYPE = 'application/json';
const EVENTS = 'text/event-stream';

function costOf(rule: MeterRule, type: string | null, ...pieces: string[]): bigint {
  const meter = openMeter(rule, type);
  for (const piece of pieces) meter.see(Buffer.from(piece));
  return meter.costMicros();
}

test('bytes are counted as they come, rounded up, and never cost more than the ceiling', () => {
  const perThousand = ruleOf({ kind: 'bytes' }, { micros: 5n, per: 1_000n });
  assert.equal(costOf(perThousand, null), 0n);
  assert.equal(costOf(perThousand, null, 'x'), 1n);
  assert.equal(costOf(perThousand, null, 'x'.repeat(100), 'x'.repeat(100)), 1n);
  assert.equal(costOf(perThousand, null, 'x'.repeat(201)), 2n);
  assert.equal(costOf(ruleOf({ kind: 'bytes' }, EACH), null, 'x'.repeat(1_000)), CEILING);
  assert.equal(costOf(ruleOf({ kind: 'bytes' }, EACH), null, 'x'.repeat(1_001)), CEILING);
  const meter = openMeter(ruleOf({ kind: 'bytes' }, EACH), EVENTS);
  meter.see(Buffer.from('é'));
  assert.equal(meter.costMicros(), 20n, 'what was measured so far');
});

test('items of a list are counted where it is, and an answer without one has its own price', () => {
  assert.equal(costOf(ITEMS, JSON_TYPE, '{"results":', '[1,2,3]}'), 30n);
  assert.equal(costOf(ITEMS, JSON_TYPE, '{"results":[]}'), 0n);
  const whole = ruleOf({ kind: 'items', path: [] }, EACH);
  assert.equal(costOf(whole, JSON_TYPE, '[1,2]'), 20n);
  for (const none of ['{"results":{"length":2}}', '{"results":"ab"}', '{}', 'null', '{"results":[1', ''])
    assert.equal(costOf(ITEMS, JSON_TYPE, none), UNMEASURED, none);
});

test('the usage of a JSON answer is its field, and nothing that only looks like a count', () => {
  const told = (value: string) => costOf(USAGE, JSON_TYPE, `{"usage":{"total_tokens":${value}}}`);
  assert.equal(told('12'), 120n);
  assert.equal(told('0'), 0n);
  assert.equal(told('1e3'), CEILING);
  assert.equal(told('9007199254740991'), CEILING);
  for (const absurd of [
    '-1',
    '1.5',
    '1e400',
    '9007199254740992',
    '"12"',
    'null',
    'true',
    '[12]',
    '{"valueOf":12}',
  ])
    assert.equal(told(absurd), UNMEASURED, absurd);
  assert.equal(costOf(USAGE, JSON_TYPE, '{"total_tokens":12}'), UNMEASURED);
  assert.equal(costOf(USAGE, JSON_TYPE, '{"usage":{"total_tokens":12}'), UNMEASURED, 'it is not whole');
});

test('the usage of a stream is what its last event with the field tells, wherever its pieces are cut', () => {
  const stream = [
    'data: {"choices":[{"delta":{"content":"{\\"usage\\":{\\"total_tokens\\":1}}"}}],"usage":null}\n\n',
    'data: {"choices":[],"usage":{"total_tokens":3}}\r\n\r\n',
    ': a remark\n\n',
    'data: {"choices":[],\ndata: "usage":{"total_tokens":12}}\n\n',
    'data: [DONE]\n\n',
  ].join('');
  assert.equal(costOf(USAGE, EVENTS, stream), 120n);
  fc.assert(
    fc.property(fc.array(fc.nat(stream.length), { maxLength: 20 }), (cuts) => {
      const ends = [...cuts, stream.length].sort((a, b) => a - b);
      assert.equal(
        costOf(USAGE, EVENTS, ...ends.map((end, at) => stream.slice(ends[at - 1] ?? 0, end))),
        120n,
      );
    }),
  );
});

test('a stream that tells no usage, or an absurd one last, has the price that its route names', () => {
  const event = (data: string) => `data: ${data}\n\n`;
  const usage = (value: string) => event(`{"usage":{"total_tokens":${value}}}`);
  assert.equal(costOf(USAGE, EVENTS, event('{"choices":[]}'), event('[DONE]')), UNMEASURED);
  assert.equal(costOf(USAGE, EVENTS, usage('5'), usage('-5')), UNMEASURED);
  assert.equal(costOf(USAGE, EVENTS, usage('5'), usage('null')), 50n);
  assert.equal(costOf(USAGE, EVENTS, 'data: {"usage":{"total_tokens":5}}\n'), UNMEASURED, 'it has not ended');
  assert.equal(
    costOf(USAGE, EVENTS, event(`{"usage":{"total_tokens":5},"x":"${'x'.repeat(70_000)}"}`)),
    UNMEASURED,
  );
  assert.equal(costOf(USAGE, EVENTS, event('"usage"'), event('{"usage":5}')), UNMEASURED);
});

test('JSON that is larger than is kept tells nothing, and is not held', () => {
  const large = `{"usage":{"total_tokens":12},"x":"${'x'.repeat(1_400_000)}"}`;
  assert.equal(costOf(USAGE, JSON_TYPE, large.slice(0, 700_000), large.slice(700_000)), UNMEASURED);
});

test('no count costs more than the ceiling, nor less than a count before it', () => {
  fc.assert(
    fc.property(
      fc.nat(1_000_000),
      fc.nat(1_000_000),
      fc.bigInt(1n, 1_000_000n),
      fc.bigInt(1n, 1_000_000_000n),
      (one, two, micros, per) => {
        const rule = ruleOf({ kind: 'usage', path: ['n'] }, { micros, per });
        const [less, more] = [one, two]
          .sort((a, b) => a - b)
          .map((count) => costOf(rule, JSON_TYPE, `{"n":${count}}`));
        assert(less !== undefined && more !== undefined);
        assert(0n <= less && less <= more && more <= CEILING);
      },
    ),
  );
});
