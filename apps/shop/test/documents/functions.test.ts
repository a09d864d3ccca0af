/** The functions of the database: they are what the files say, whatever versions, kills and strangers do to them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { connectDatabase, type Database } from '../../../../packages/core/src/db/connection.ts';
import {
  bringSqlTexts,
  SQL_TEXTS,
  type SqlTexts,
  sqlFunction,
  sqlTextsOf,
} from '../../../../packages/core/src/db/functions.ts';
import { migrate } from '../../../../packages/core/src/db/migrate.ts';
import { StartError } from '../../../../packages/process/src/start-error.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { makeEmptyDatabase } from '../empty-database.fixture.ts';

const VERSIONED = [...SQL_TEXTS.functions.values()].map(({ name }) => name).sort();
const NAMES = [...SQL_TEXTS.functions.keys()].sort();
const OF_TRIGGERS = SQL_TEXTS.triggers.map(({ name }) => name).sort();

let server: TestDatabase;
const opened: (() => Promise<unknown>)[] = [];
before(async () => {
  server = await openTestDatabase();
});
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});
after(async () => server.close());

/** An empty database, and a way to it. */
async function emptyDatabase(): Promise<{ sql: Database; url: string }> {
  const url = await makeEmptyDatabase(server, (drop) => opened.push(drop));
  return { sql: connect(url), url };
}

function connect(url: string): Database {
  const sql = connectDatabase(url, 4);
  opened.push(() => sql.end({ timeout: 1 }));
  return sql;
}

/** The functions but those of weeks, which are as many as there are weeks ahead. */
const functionsIn = async (sql: Database) =>
  (
    await sql<{ name: string }[]>`
      select proname as name from pg_proc
      where pronamespace = 'public'::regnamespace and proname !~ '_w[0-9]{8}$' order by proname`
  ).map(({ name }) => name);

/** The files of this version, with some texts changed. */
function textsWith(changed: Readonly<Record<string, (text: string) => string>>): SqlTexts {
  const folder = join(import.meta.dirname, '../../../../packages/core/src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /functions[/\\][\w.]+\.sql$/.test(path))
    .map((path): [string, string] => [
      path.replace(/^.*[/\\]/, ''),
      readFileSync(join(folder, path), 'utf8'),
    ]);
  const changes = new Map(Object.entries(changed));
  const result = files.map(([name, text]): [string, string] => {
    const change = changes.get(name);
    changes.delete(name);
    return change === undefined ? [name, text] : [name.replace('.v1.', '.v2.'), change(text)];
  });
  assert.equal(changes.size, 0);
  return sqlTextsOf(result);
}

const NEXT = textsWith({ 'ledger_apply_planned.sql': (text) => `-- Another text.\n${text}` });

test('a database has exactly the functions and triggers of the files', async () => {
  const { sql } = await emptyDatabase();
  await migrate(sql);
  assert.deepEqual(await functionsIn(sql), [...VERSIONED, ...OF_TRIGGERS].sort());

  await sql.begin(async (transaction) => {
    const defined = async () => ({
      functions: await transaction`
        select proname, pg_get_functiondef(oid) as text, proacl from pg_proc
        where pronamespace = 'public'::regnamespace and proname !~ '_w[0-9]{8}$' order by proname`,
      triggers: await transaction`
        select tgname, tgenabled, pg_get_triggerdef(oid) as text from pg_trigger where not tgisinternal
        order by tgname, text`,
    });
    const before = await defined();
    assert.equal(before.functions.length, VERSIONED.length + OF_TRIGGERS.length);
    assert(before.triggers.length >= 4);
    for (const name of [...VERSIONED, ...OF_TRIGGERS])
      await transaction.unsafe(`drop function ${name} cascade`);
    assert.deepEqual((await defined()).triggers.length, 0, 'no trigger has a function without a file');
    for (const { text } of [...SQL_TEXTS.functions.values(), ...SQL_TEXTS.triggers])
      await transaction.unsafe(text);
    assert.deepEqual(await defined(), before);
  });
});

test('a function is named for what it calls too, and no other is', () => {
  const differ = NAMES.filter(
    (name) => NEXT.functions.get(name)?.name !== SQL_TEXTS.functions.get(name)?.name,
  );
  assert.deepEqual(differ, ['calls_apply', 'ledger_apply', 'ledger_apply_planned']);
  for (const { text } of NEXT.functions.values())
    for (const name of NAMES) assert.doesNotMatch(text, new RegExp(`\\b${name}\\s*\\(`));
  assert.throws(
    () =>
      sqlTextsOf([
        ['a.sql', 'select b()'],
        ['b.sql', 'select a()'],
      ]),
    /functions call each other: a, b, a/,
  );
  assert.throws(
    () =>
      sqlTextsOf([
        ['a.sql', ''],
        ['a.v1.sql', ''],
      ]),
    /two files are the function a/,
  );
});

describe('two versions on one database:', () => {
  test('a version that nobody calls any more is dropped after thirty days, and no sooner', async () => {
    const { sql } = await emptyDatabase();
    await migrate(sql);
    await bringSqlTexts(sql, NEXT);
    const both = [...new Set([...VERSIONED, ...[...NEXT.functions.values()].map(({ name }) => name)])];
    const all = [...both, ...OF_TRIGGERS].sort();
    assert.deepEqual(await functionsIn(sql), all);
    await sql`update sql_functions set wanted_at = wanted_at - interval '29 days'`;
    await bringSqlTexts(sql, NEXT);
    assert.deepEqual(await functionsIn(sql), all);

    // One of the version before still lives: it does not say what it calls.
    await sql`insert into replicas (started_at, seen_at) values (now() - interval '40 days', now())`;
    await sql`update sql_functions set wanted_at = wanted_at - interval '2 days'`;
    await bringSqlTexts(sql, NEXT);
    assert.deepEqual(await functionsIn(sql), all);

    await sql`update replicas set ended_at = now()`;
    await bringSqlTexts(sql, NEXT);
    const left = [...NEXT.functions.values()].map(({ name }) => name);
    assert.deepEqual(await functionsIn(sql), [...left, ...OF_TRIGGERS].sort());
    assert.equal((await sql`select 1 from sql_functions`).length, left.length);
    // The older version starts once more.
    await bringSqlTexts(sql);
    assert.deepEqual(await functionsIn(sql), [...both, ...OF_TRIGGERS].sort());
  });

  test('the newest text of a trigger stays, whichever version starts last', async () => {
    const { sql } = await emptyDatabase();
    await migrate(sql);
    const said = (text: string) => text.replace('acts of operators are only ever added', 'not these');
    const next = textsWith({ 'operator_acts_only_grow.v1.sql': said });
    const message = async () =>
      sql`delete from operator_acts`.then(
        () => 'nothing',
        (error: Error) => error.message,
      );
    assert.equal(await message(), 'acts of operators are only ever added');
    await bringSqlTexts(sql, next);
    assert.equal(await message(), 'not these');
    await bringSqlTexts(sql);
    assert.equal(await message(), 'not these');
  });

  test('they may start at once', async () => {
    const { sql } = await emptyDatabase();
    await Promise.all([migrate(sql), migrate(sql)]);
    for (const name of VERSIONED) await sql.unsafe(`drop function ${name}`);
    await Promise.all([
      bringSqlTexts(sql),
      bringSqlTexts(sql, NEXT),
      bringSqlTexts(sql),
      bringSqlTexts(sql, NEXT),
    ]);
    const found = await functionsIn(sql);
    for (const texts of [SQL_TEXTS, NEXT])
      for (const { name } of texts.functions.values()) assert(found.includes(name), name);
  });
});

test('a start that was killed between migrations and functions is made good by the next, and none leaves half of them', async () => {
  const { sql } = await emptyDatabase();
  await migrate(sql);
  for (const name of VERSIONED) await sql.unsafe(`drop function ${name}`);
  await sql`delete from sql_functions`;
  const broken = sqlTextsOf([
    ['first.sql', 'create function first() returns integer language sql as $$ select 1 $$;'],
    ['second.sql', 'create function second() returns nothing_there language sql as $$ select 1 $$;'],
  ]);
  await assert.rejects(bringSqlTexts(sql, broken), /nothing_there/);
  assert.deepEqual(await functionsIn(sql), [...OF_TRIGGERS].sort());
  assert.deepEqual(await migrate(sql), []);
  assert.deepEqual(await functionsIn(sql), [...VERSIONED, ...OF_TRIGGERS].sort());
});

test('a text that somebody changed by hand is put right', async () => {
  const { sql } = await emptyDatabase();
  await migrate(sql);
  const name = sqlFunction('calls_settle_past');
  const body = async () =>
    (await sql<{ prosrc: string }[]>`select prosrc from pg_proc where proname = ${name}`)[0]?.prosrc;
  const before = await body();
  await sql.unsafe(
    `create or replace function ${name}() returns boolean language plpgsql as $$BEGIN RETURN false; END$$`,
  );
  assert.notEqual(await body(), before);
  await bringSqlTexts(sql);
  assert.equal(await body(), before);
});

test('a user without the rights is told what is missing, and needs none when nothing is', async () => {
  const { sql, url } = await emptyDatabase();
  await migrate(sql);
  const role = `farebox_role_${randomBytes(6).toString('hex')}`;
  await sql.unsafe(`create role ${role} login password 'of-a-test'`);
  opened.push(() => server.sql.unsafe(`drop role ${role}`));
  opened.push(() => sql.unsafe(`drop owned by ${role}`));
  await sql.unsafe(`grant select, insert, update, delete on all tables in schema public to ${role}`);
  const address = new URL(url);
  address.username = role;
  address.password = 'of-a-test';
  const theirs = connect(address.toString());
  await bringSqlTexts(theirs);
  const refused = (what: RegExp) => (error: unknown) =>
    error instanceof StartError && what.test(error.message);
  await assert.rejects(bringSqlTexts(theirs, NEXT), refused(/permission denied for schema public/));
  await assert.rejects(migrate(theirs), refused(/permission denied for schema public/));

  // What another user made is not dropped, and does not hold up the start.
  await sql`update sql_functions set wanted_at = wanted_at - interval '31 days'`;
  await bringSqlTexts(theirs);
  // The functions of weeks are the only ones that nobody has asked for since.
  const ofWeeks = await sql`select 1 from pg_proc where proname ~ '_w[0-9]{8}$'`;
  assert(ofWeeks.length > 0);

  await sql.unsafe(`revoke execute on function ${sqlFunction('open_calls')} from public`);
  await assert.rejects(bringSqlTexts(theirs), refused(/may not call the function open_calls_/));
});
