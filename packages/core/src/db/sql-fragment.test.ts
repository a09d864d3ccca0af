import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import postgres from 'postgres';
import { applyCalls, type CallWork } from '../paid-call/inside/call-batch.ts';
import type { Database } from './connection.ts';
import { fragment, templateOf } from './sql-fragment.ts';

const COMMITS = 100_000;
const MOST_KEPT_BYTES = 5_000_000;

test('a statement is its texts and, in their order, the values of it and of its fragments', () => {
  const columns = fragment`a = ${'1'}, b = ${null}`;
  const statement = fragment`select ${columns} from t where c = ${'2'} and ${fragment`true`}`;
  const [texts, ...values] = templateOf(statement);
  assert.deepEqual([...texts], ['select a = ', ', b = ', ' from t where c = ', ' and true']);
  assert.deepEqual([...texts.raw], [...texts]);
  assert.deepEqual(values, ['1', null, '2']);
});

test('statements of the same texts are one template, and of others another', () => {
  const of = (value: string) => templateOf(fragment`select ${value}`)[0];
  assert.equal(of('1'), of('2'));
  assert.equal(of('1'), templateOf(fragment`${fragment`select ${'3'}`}`)[0]);
  assert.notEqual(of('1'), templateOf(fragment`select ${'1'} as x`)[0]);
  // The same text in all, with its values elsewhere.
  assert.notEqual(templateOf(fragment`a${'1'}b`)[0], templateOf(fragment`${'1'}ab`)[0]);
});

test('a hundred thousand commits one after the other leave next to nothing in the memory of the driver', async () => {
  setFlagsFromString('--expose_gc');
  const collect = runInNewContext('gc') as () => void;
  // A query of the driver that nobody waits for is made, and never sent.
  const driver = postgres('postgres://nobody@127.0.0.1:1/none', { max: 1 });
  const answered = { begin_status: [0], begin_available: [1n], finish_status: [0], finish_available: [1n] };
  const general = {
    b_status: [0],
    b_available: [1n],
    b_answered: [''],
    b_in_flight: ['-1'],
    b_known: [false],
    k_status: [0],
    f_status: [0],
    f_available: [1n],
  };
  const sql = ((texts: TemplateStringsArray, ...values: (string | null)[]) => {
    driver(texts, ...values);
    return Promise.resolve([{ ...answered, ...general }]);
  }) as unknown as Database;
  const call = {
    id: '0',
    accountId: 1_000n,
    bucket: 0,
    service: 'ping',
    priceMicros: 1n,
    revenue: 'revenue_credits' as const,
    keyId: 1n,
    rail: 'credits',
    identity: null,
    onChainIdentity: null,
    fingerprint: null,
    ttlMs: 1,
  };
  const begin: CallWork = { kind: 'begin', call };
  const named: CallWork = {
    kind: 'begin',
    call: { ...call, identity: 'order', fingerprint: Buffer.alloc(32) },
  };
  const finish: CallWork = {
    kind: 'finish',
    call: { ...call, capture: true, outcome: 'answered', answer: null },
  };
  const onChain: CallWork = { kind: 'begin', call: { ...call, onChainIdentity: 'nonce' } };
  const batches = [[begin], [named], [finish], [begin, finish], [onChain], [onChain, begin]];
  const commit = (index: number) =>
    applyCalls(sql, batches[index % batches.length] ?? [], { answerTtlMs: 1, nowMs: index, holder: null });

  for (let warm = 0; warm < 1_000; warm++) await commit(warm);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let made = 0; made < COMMITS; made++) await commit(made);
  collect();
  const kept = process.memoryUsage().heapUsed - before;
  assert(kept < MOST_KEPT_BYTES, `${kept} bytes were kept`);
});
