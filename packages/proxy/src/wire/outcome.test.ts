import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  ANY_ANSWER,
  type AnswerRule,
  FAILURES,
  type FailureReason,
  type Framing,
  failure,
  isOutage,
  judgeBody,
  judgeEnd,
  judgeHead,
  readsBody,
} from './outcome.ts';

const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
const rule = (changed: Partial<AnswerRule> = {}): AnswerRule => ({ ...ANY_ANSWER, ...changed });

function head(status: number, headers: Record<string, string> = {}, changed: Partial<AnswerRule> = {}) {
  const judged = judgeHead({ status, headers, framing: 'length' }, rule(changed), NOW_MS);
  return typeof judged === 'string' ? judged : judged.reason;
}

describe('a status', () => {
  test('is an answer, the caller’s refusal, or a failure', () => {
    const rows: [statuses: number[], means: string][] = [
      [[200, 201, 202, 203, 204, 205, 207, 226, 299], 'answer'],
      [[400, 404, 405, 406, 409, 410, 412, 413, 415, 416, 418, 422, 451], 'refusal'],
      [[401, 402, 403, 407], 'refused_us'],
      [[300, 301, 302, 303, 307, 308], 'redirected'],
      [[206, 304], 'no_answer'],
      [[408], 'timed_out'],
      [[429], 'overloaded'],
      [[500, 501, 502, 503, 504, 599, 600, 999, 0], 'failed'],
    ];
    for (const [statuses, means] of rows)
      for (const status of statuses) assert.equal(head(status), means, String(status));
  });

  test('is what the route counts, which may not be what stands between the upstream and us', () => {
    assert.equal(head(200, {}, { statuses: [201] }), 'no_answer');
    assert.equal(head(404, {}, { statuses: [200, 404] }), 'answer');
    assert.equal(head(429, {}, { statuses: [429] }), 'answer');
    for (const status of [401, 402, 403, 407, 301, 304, 500, 503])
      assert.notEqual(head(status, {}, { statuses: [status] }), 'answer', String(status));
  });

  test('of a part counts only where one was asked for', () => {
    assert.equal(head(206, {}, { mayBePartial: true }), 'answer');
    assert.equal(head(206, {}, { statuses: [206] }), 'no_answer');
  });

  test('of too many requests says when to come again, within bounds', () => {
    const after = (value?: string) => {
      const headers = value === undefined ? {} : { 'retry-after': value };
      const judged = judgeHead({ status: 429, headers, framing: 'none' }, ANY_ANSWER, NOW_MS);
      assert(typeof judged !== 'string');
      return judged.retryAfterMs;
    };
    assert.equal(after('7'), 7_000);
    assert.equal(after('Thu, 01 Jan 2026 00:01:00 GMT'), 60_000);
    assert.equal(after('0'), 1_000);
    assert.equal(after('-5'), 10_000);
    assert.equal(after('999999999'), 3_600_000);
    assert.equal(after('soon'), 10_000);
    assert.equal(after(), 10_000);
  });
});

describe('a head', () => {
  test('counts by its media type where the route says one', () => {
    const contentTypes = ['application/json', 'image/*'];
    assert.equal(
      head(200, { 'content-type': 'Application/JSON; charset=utf-8' }, { contentTypes }),
      'answer',
    );
    assert.equal(head(200, { 'content-type': 'image/png' }, { contentTypes }), 'answer');
    for (const type of ['text/html', 'imagery/png', 'application/jsonp', ''])
      assert.equal(head(200, { 'content-type': type }, { contentTypes }), 'no_answer', type);
    assert.equal(head(200, {}, { contentTypes }), 'no_answer');
  });

  test('does not count compressed unless the caller asked for that', () => {
    for (const encoding of ['gzip', 'br', 'x, y', ''])
      assert.equal(head(200, { 'content-encoding': encoding }), 'no_answer', encoding);
    assert.equal(head(200, { 'content-encoding': 'Identity' }), 'answer');
    assert.equal(head(200, { 'content-encoding': 'gzip' }, { mayBeEncoded: true }), 'answer');
  });
});

const JSON_TYPE = { 'content-type': 'application/json' };
/** Null if the body counts, else why not. */
function body(
  text: string | Buffer,
  changed: Partial<AnswerRule>,
  { framing = 'length', headers = JSON_TYPE }: { framing?: Framing; headers?: Record<string, string> } = {},
) {
  const bytes = Buffer.from(text);
  const end = { bytes: bytes.length, sawLastEvent: false };
  return judgeBody({ status: 200, headers, framing }, bytes, end, rule(changed));
}

describe('a body', () => {
  test('that is called JSON is JSON, unless it is compressed or empty', () => {
    const type = { 'content-type': 'application/json; charset=utf-8' };
    assert.equal(body('{"a":1', {}, { headers: type })?.reason, 'no_answer');
    assert.equal(body(Buffer.from([0x22, 0xff, 0x22]), {}, { headers: type })?.reason, 'no_answer');
    for (const text of ['{"a":1}', '1', '']) assert.equal(body(text, {}, { headers: type }), null, text);
    assert.equal(body('not', {}, { headers: { ...type, 'content-encoding': 'gzip' } }), null);
    assert.equal(
      body('not', {}, { headers: { ...type, 'content-encoding': 'identity' } })?.reason,
      'no_answer',
    );
    assert.equal(body('not', {}, { headers: { 'content-type': 'text/plain' } }), null);
  });

  test('counts by the fields that it must have', () => {
    const has = [['data', 'list', '0', 'id'], ['ok']];
    assert.equal(body('{"ok":false,"data":{"list":[{"id":0}]}}', { has }), null);
    for (const text of [
      '{"ok":1}',
      '{"ok":null,"data":{"list":[{"id":0}]}}',
      '[]',
      'null',
      '1',
      '{"ok":1,"data":"list"}',
    ])
      assert.equal(body(text, { has })?.reason, 'no_answer', text);
    // What every object inherits is no field of it.
    assert.equal(body('{}', { has: [['constructor']] })?.reason, 'no_answer');
    assert.equal(body('{"a":"x"}', { has: [['a', 'length']] })?.reason, 'no_answer');
  });

  test('does not count with a field that it must not have, and what that says is for the caller', () => {
    const hasNot = [['errors']];
    for (const text of ['{}', '{"errors":null}', '{"errors":[]}'])
      assert.equal(body(text, { hasNot }), null, text);
    const failed = body('{"data":{"secret":1},"errors":[{"message":"no"}]}', { hasNot });
    assert.equal(failed?.reason, 'no_answer');
    assert.equal(failed?.said, '[{"message":"no"}]');
    assert.equal(body(`{"errors":["${'x'.repeat(3_000)}"]}`, { hasNot })?.said, null);
    // The errors say why what must be there is missing.
    const without = body('{"data":null,"errors":[{"message":"no"}]}', { has: [['data']], hasNot });
    assert.deepEqual([without?.reason, without?.said], ['no_answer', '[{"message":"no"}]']);
    for (const text of ['{"errors":false}', '{"errors":{}}', '{"errors":""}'])
      assert.equal(body(text, { hasNot })?.reason, 'no_answer', text);
  });

  test('counts by the values that it must have', () => {
    const equals = [{ path: ['status'], value: 'done' }];
    assert.equal(body('{"status":"done"}', { equals }), null);
    for (const text of ['{"status":"open"}', '{}', '{"status":["done"]}'])
      assert.equal(body(text, { equals })?.reason, 'no_answer', text);
  });

  test('does not count if a rule cannot read it', () => {
    for (const text of ['', '{"a":', '{"a":1}x', '<html>', Buffer.from([0x7b, 0xff, 0x7d])])
      assert.equal(body(text, { hasNot: [['errors']] })?.reason, 'no_answer', String(text));
    const noText = Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff]), Buffer.from('"}')]);
    assert.equal(body(noText, { has: [['a']] })?.reason, 'no_answer');
    const deep = '['.repeat(200_000);
    assert.equal(body(deep, { has: [['a']] })?.reason, 'no_answer');
  });

  test('counts by its least size', () => {
    assert.equal(body('10', { leastBytes: 2 }), null);
    assert.equal(body('1', { leastBytes: 2 })?.reason, 'no_answer');
  });

  test('whose end nobody can tell counts only if it shows by itself that it is whole, or the route takes the risk', () => {
    const close = { framing: 'close' as const };
    const text = { framing: 'close' as const, headers: { 'content-type': 'text/plain' } };
    assert.equal(body('{"a":1}', {}, close), null);
    assert.equal(body('[1]', {}, close), null);
    assert.equal(
      body('{"a":1}', {}, { ...close, headers: { 'content-type': 'application/problem+json' } }),
      null,
    );
    // A number may have had more digits.
    for (const cut of ['12', '{"a":1', '', 'null', '"x"'])
      assert.equal(body(cut, {}, close)?.reason, 'unproven', cut);
    assert.equal(body('{"a":1}', {}, text)?.reason, 'unproven');
    assert.equal(body('some text', { mayEndByClose: true }, text), null);
    assert.equal(body('{"errors":[1]}', { hasNot: [['errors']] }, close)?.reason, 'no_answer');
    assert.equal(body('some text', {}, { ...text, framing: 'chunked' }), null);
  });

  test('of events ends by its last one, where the route says which', () => {
    const end = (sawLastEvent: boolean, framing: Framing) =>
      judgeEnd(
        { status: 200, headers: {}, framing },
        { bytes: 1, sawLastEvent },
        rule({ lastEvent: '[DONE]' }),
      )?.reason;
    assert.equal(end(true, 'chunked'), undefined);
    assert.equal(end(true, 'close'), undefined);
    assert.equal(end(false, 'chunked'), 'cut');
    assert.equal(end(false, 'close'), 'cut');
  });

  test('is read only where a rule says so', () => {
    assert(!readsBody(ANY_ANSWER));
    assert(!readsBody(rule({ leastBytes: 5, contentTypes: ['a/b'] })));
    for (const changed of [
      { has: [['a']] },
      { hasNot: [['a']] },
      { equals: [{ path: ['a'], value: 1 }] },
      { lastEvent: 'x' },
    ])
      assert(readsBody(rule(changed)));
  });
});

test('each failure has a status for the caller, and outages are told apart from what one request causes', () => {
  const by = (of: (reason: FailureReason) => boolean) =>
    (Object.keys(FAILURES) as FailureReason[]).filter(of).sort();
  assert.deepEqual(
    by((reason) => FAILURES[reason].status === null),
    ['abandoned'],
  );
  assert.deepEqual(
    by((reason) => FAILURES[reason].status === 504),
    ['timed_out'],
  );
  assert.deepEqual(
    by((reason) => FAILURES[reason].status === 503),
    ['busy', 'closing', 'down', 'overloaded'],
  );
  assert.deepEqual(
    by((reason) => FAILURES[reason].isOutage),
    ['broken', 'cut', 'timed_out', 'unreachable'],
  );
  const forOperator = ['broken', 'cut', 'redirected', 'refused_us', 'too_large', 'unproven', 'unreachable'];
  assert.deepEqual(
    by((reason) => FAILURES[reason].isForOperator),
    forOperator,
  );
  for (const [status, expected] of [
    [500, false],
    [501, false],
    [502, true],
    [503, true],
    [504, true],
  ] as const)
    assert.equal(isOutage(failure('failed', '', { upstreamStatus: status })), expected, String(status));
  assert(isOutage(failure('timed_out', '')));
  assert(!isOutage(failure('timed_out', '', { upstreamStatus: 408 })));
  assert(isOutage(failure('cut', '', { upstreamStatus: 200 })));
});
