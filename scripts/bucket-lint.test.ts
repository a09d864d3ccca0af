/** The functions that begin and end calls touch one bucket, and the rule finds each way to touch another. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { lintBuckets, takesBucket } from './bucket-lint.ts';

const CORE = join(import.meta.dirname, '../packages/core/src');
const HOT = [
  'calls_apply',
  'calls_begin',
  'calls_finish',
  'calls_finish_apart',
  'ledger_apply',
  'ledger_apply_planned',
];
/** What they touch beside: queries within WITH, and tables that have no bucket: why. */
const BESIDE: Readonly<Record<string, string>> = {
  x: 'Named by WITH.',
  ended: 'Named by WITH.',
  made: 'Named by WITH.',
  free_calls: 'Counted by root buyer, whose accounts may lie in several buckets.',
};

/** The tables with a bucket. */
const tables = new Set(
  [
    ...readFileSync(join(CORE, 'db/migrations/280_baseline.sql'), 'utf8').matchAll(
      /^CREATE TABLE (\w+) \((?:(?!^\)).*\n)*? {2}bucket /gm,
    ),
  ].map(([, table = '']) => table),
);

const functions = new Map(
  readdirSync(CORE, { recursive: true, encoding: 'utf8' })
    .filter((path) => /functions\/[a-z_]+\.sql$/.test(path))
    .map((path) => [basename(path, '.sql'), readFileSync(join(CORE, path), 'utf8')] as const),
);

test('every statement of the functions that begin and end calls names one bucket', async () => {
  assert.ok(tables.has('calls') && tables.has('ledger_accounts') && tables.size >= 10);
  const beside = new Set<string>();
  for (const name of HOT) {
    const text = functions.get(name) ?? '';
    assert.ok(await takesBucket(text), `${name} takes the bucket first`);
    const { breaches, others } = await lintBuckets(text, tables);
    assert.deepEqual(breaches, [], name);
    for (const other of others) beside.add(other);
  }
  assert.deepEqual([...beside].sort(), Object.keys(BESIDE).sort());
});

test('a function that takes a bucket is among them', async () => {
  const taking: string[] = [];
  for (const [name, text] of functions) if (await takesBucket(text)) taking.push(name);
  assert.deepEqual(taking.sort(), HOT);
});

const BROKEN = [
  'PERFORM 1 FROM calls c WHERE c.id = p_id;',
  'PERFORM 1 FROM calls c WHERE c.bucket = p_bucket OR c.id = p_id;',
  'PERFORM 1 FROM calls c WHERE c.bucket <> p_bucket;',
  'PERFORM 1 FROM calls c WHERE c.bucket = 1;',
  'PERFORM 1 FROM calls c JOIN settlements s ON s.call_id = c.id WHERE c.bucket = p_bucket;',
  'PERFORM 1 FROM calls c JOIN settlements s ON s.bucket = p_bucket AND s.call_id = c.id WHERE bucket = p_bucket;',
  'PERFORM 1 FROM calls c WHERE c.bucket = p_bucket UNION ALL SELECT 1 FROM calls c WHERE c.id = p_id;',
  'PERFORM 1 FROM calls c WHERE c.bucket = p_bucket AND (SELECT count(*) FROM api_keys) > 0;',
  'PERFORM 1 FROM calls c LEFT JOIN LATERAL (SELECT 1 FROM api_keys k WHERE k.id = c.key_id OFFSET 0) k ON true WHERE c.bucket = p_bucket;',
  'n := (SELECT count(*) FROM calls__week c);',
  'IF EXISTS (SELECT 1 FROM calls c WHERE c.id = p_id) THEN n := 1; END IF;',
  'FOR r IN SELECT 1 FROM calls c LOOP n := 1; END LOOP;',
  'UPDATE calls SET state = 1 WHERE id = p_id;',
  'UPDATE calls c SET state = 1 FROM settlements s WHERE c.bucket = p_bucket AND s.call_id = c.id;',
  'DELETE FROM call_answers a USING unnest(p_ids) AS x (id) WHERE a.id = x.id;',
  'INSERT INTO calls (id) VALUES (p_id);',
  'INSERT INTO calls (bucket, id) VALUES (p_bucket, p_id), (0, p_id);',
  'INSERT INTO calls (bucket, id) SELECT p_bucket, p_id UNION ALL SELECT 1, p_id;',
  'WITH gone AS (DELETE FROM calls RETURNING id) SELECT count(*) INTO n FROM gone;',
];
const KEPT = [
  'PERFORM 1 FROM calls WHERE bucket = p_bucket AND id = p_id;',
  'PERFORM 1 FROM calls c JOIN settlements s ON s.bucket = p_bucket AND s.call_id = c.id WHERE c.bucket = p_bucket;',
  'UPDATE calls__week c SET state = 1 FROM unnest(p_ids) AS x (id) WHERE c.bucket = p_bucket AND c.id = x.id;',
  'INSERT INTO calls (id, bucket) SELECT p_id, p_bucket ON CONFLICT (account_id, id) DO NOTHING;',
  'n := n + 1;',
];
const functionOf = (body: string) =>
  `CREATE FUNCTION f(p_bucket smallint, p_id uuid, p_ids uuid[]) RETURNS void LANGUAGE plpgsql AS $$
   DECLARE n integer; r record; BEGIN ${body} END $$;`;

test('the rule finds each statement that touches more, and no other', async () => {
  for (const body of BROKEN)
    assert.equal((await lintBuckets(functionOf(body), tables)).breaches.length, 1, body);
  for (const body of KEPT) assert.deepEqual((await lintBuckets(functionOf(body), tables)).breaches, [], body);
  assert.equal(await takesBucket(functionOf('n := 1;').replace('p_bucket smallint, ', '')), false);
});
