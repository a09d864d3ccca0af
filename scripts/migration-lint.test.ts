/** Migrations hold up no writer, and each rule finds what breaks it. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { BASELINE } from '../packages/core/src/db/before-baseline.ts';
import { type Breach, lintMigration, RULES } from './migration-lint.ts';

const FOLDER = join(import.meta.dirname, '../packages/core/src/db/migrations');
/** Breaches that do no harm, by file and rule: why. */
const EXCUSED: Readonly<Record<string, Partial<Record<Breach['rule'], string>>>> = {};

test('migrations of from now on keep the rules, and no excuse is left that nobody needs', async () => {
  const files = readdirSync(FOLDER);
  assert.ok(files.includes(BASELINE) && files.length >= 2);
  const found: string[] = [];
  const needed = new Set<string>();
  for (const name of files) {
    for (const { rule, table } of await lintMigration(readFileSync(join(FOLDER, name), 'utf8'))) {
      if (EXCUSED[name]?.[rule] === undefined) found.push(`${name}: ${rule} ${table}: ${RULES[rule]}`);
      needed.add(`${name} ${rule}`);
    }
  }
  assert.deepEqual(found, []);
  const excuses = Object.entries(EXCUSED).flatMap(([name, rules]) =>
    Object.keys(rules).map((rule) => `${name} ${rule}`),
  );
  assert.deepEqual(
    excuses.filter((excuse) => !needed.has(excuse)),
    [],
  );
});

const STEPS = '-- In steps.\n';
const BROKEN: readonly (readonly [sql: string, ...rules: Breach['rule'][]])[] = [
  ['CREATE INDEX a ON calls (id);', 'index-waits'],
  ['create unique index a on public.calls (id)', 'index-waits'],
  ['CREATE INDEX CONCURRENTLY a ON calls (id);', 'concurrently-in-transaction'],
  [`${STEPS}-- Step.\nCREATE INDEX CONCURRENTLY a ON calls (id);`, 'index-left-behind'],
  ['ALTER TABLE calls ALTER COLUMN id TYPE text;', 'rewrites-table'],
  ['ALTER TABLE calls ADD COLUMN a uuid DEFAULT gen_random_uuid();', 'rewrites-table'],
  ['ALTER TABLE calls ADD COLUMN a bigint GENERATED ALWAYS AS (1) STORED;', 'rewrites-table'],
  ['ALTER TABLE calls ADD COLUMN a bigint GENERATED ALWAYS AS IDENTITY;', 'rewrites-table'],
  ['ALTER TABLE calls SET UNLOGGED;', 'rewrites-table'],
  ['ALTER TABLE calls ADD CONSTRAINT a CHECK (price_micros > 0);', 'constraint-scans'],
  ['ALTER TABLE calls ADD COLUMN a bigint CHECK (a > 0);', 'constraint-scans'],
  ['ALTER TABLE calls ADD COLUMN a bigint UNIQUE;', 'constraint-scans'],
  ['ALTER TABLE calls ADD UNIQUE (id);', 'constraint-scans'],
  ['ALTER TABLE calls ADD FOREIGN KEY (account_id) REFERENCES ledger_accounts;', 'constraint-scans'],
  ['ALTER TABLE calls VALIDATE CONSTRAINT a;', 'validates-in-transaction'],
  ['ALTER TABLE calls ALTER COLUMN service SET NOT NULL;', 'not-null-scans'],
  ['ALTER TABLE calls ADD COLUMN a bigint NOT NULL;', 'not-null-scans'],
  ['UPDATE calls SET state = 1;', 'writes-without-batches'],
  ['DELETE FROM calls;', 'writes-without-batches'],
  ['INSERT INTO calls SELECT * FROM other;', 'writes-without-batches'],
  [`${STEPS}-- Step.\nUPDATE calls SET state = 1;`, 'writes-without-batches'],
  [`${STEPS}-- Batches.\nUPDATE calls SET state = 1 WHERE state = 0;`, 'unbounded-batch'],
  ['LOCK TABLE calls;', 'locks-table'],
  ['TRUNCATE calls;', 'locks-table'],
  ['DROP INDEX calls_time;', 'locks-table'],
  ['CLUSTER calls USING calls_pkey;', 'locks-table'],
  ['VACUUM FULL calls;', 'locks-table'],
  ['REINDEX TABLE calls;', 'locks-table'],
  ['ALTER TABLE calls DROP COLUMN outcome;', 'takes-away'],
  ['ALTER TABLE calls RENAME TO bought;', 'takes-away'],
  ['ALTER TABLE calls RENAME COLUMN outcome TO ending;', 'takes-away'],
  ['DROP TABLE calls;', 'takes-away'],
  ["SET lock_timeout = '1min';", 'sets-bounds'],
  ['SET LOCAL statement_timeout = 0;', 'sets-bounds'],
  ['CREATE TABLE a AS SELECT * FROM calls; ALTER TABLE calls ADD COLUMN b bigint;', 'reads-under-lock'],
];

test('each rule finds what breaks it', async () => {
  for (const [sql, ...rules] of BROKEN)
    assert.deepEqual(
      (await lintMigration(sql)).map(({ rule }) => rule),
      rules,
      sql,
    );
  const shown = new Set(BROKEN.flatMap(([, ...rules]) => rules));
  assert.deepEqual(
    Object.keys(RULES).filter((rule) => !shown.has(rule as Breach['rule'])),
    [],
  );
});

test('what holds up nobody is let through', async () => {
  for (const sql of [
    'CREATE TABLE a (id bigint PRIMARY KEY, b text UNIQUE CHECK (length(b) > 1)); CREATE INDEX c ON a (b); ALTER TABLE a ADD d int NOT NULL;',
    'CREATE TABLE a (id bigint); INSERT INTO a SELECT id FROM calls; UPDATE a SET id = 1;',
    "ALTER TABLE calls ADD COLUMN a bigint; ALTER TABLE calls ADD COLUMN b text NOT NULL DEFAULT 'x'; ALTER TABLE calls ADD COLUMN c date DEFAULT '-infinity'::date;",
    'ALTER TABLE calls ADD CONSTRAINT a CHECK (price_micros > 0) NOT VALID;',
    'INSERT INTO ledger_accounts (id, house) VALUES (14, true);',
    `${STEPS}-- Step.\nDROP INDEX CONCURRENTLY IF EXISTS a;\n-- Step.\nCREATE INDEX CONCURRENTLY a ON calls (id);`,
    `${STEPS}-- Batches.\nUPDATE calls SET state = 1 WHERE ctid = ANY (ARRAY(SELECT ctid FROM calls WHERE state = 9 LIMIT 1000));`,
    `${STEPS}-- Step.\nALTER TABLE calls VALIDATE CONSTRAINT a;\n-- Step.\nALTER TABLE calls ALTER COLUMN service SET NOT NULL;`,
    `${STEPS}-- Step.\nALTER TABLE calls ADD CONSTRAINT b UNIQUE USING INDEX a;`,
  ])
    assert.deepEqual(await lintMigration(sql), [], sql);
});

test('text that PostgreSQL would not take is an error, and not a migration without breaches', async () => {
  await assert.rejects(lintMigration('CREATE INDX a ON calls (id);'));
});
