import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { startEmbeddedPostgres } from './embedded-postgres.ts';

const MODULE = pathToFileURL(join(import.meta.dirname, 'embedded-postgres.ts')).href;
/** Above what any system gives a process. */
const NOBODYS_PID = 2 ** 31 - 1;

async function takesPassword(folder: string): Promise<void> {
  const server = await startEmbeddedPostgres(folder);
  try {
    const sql = postgres(server.url, { max: 1 });
    assert.deepEqual([...(await sql`select 1 as one`)], [{ one: 1 }]);
    await sql.end();
  } finally {
    await server.stop();
  }
}

test('processes that make the database of one new folder at once make one, which takes the password that stands there', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-database-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const home = join(folder, 'postgres');
  // What two leave behind that were killed: a half-made database, and a password that was not written yet.
  mkdirSync(join(home, `data.new-${NOBODYS_PID}`, 'base'), { recursive: true });
  writeFileSync(join(home, 'password'), '');
  writeFileSync(join(home, `password.${NOBODYS_PID}`), 'not in use');
  const program = `await (await import(${JSON.stringify(MODULE)})).prepareEmbeddedPostgres(${JSON.stringify(folder)})`;
  const prepare = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  await prepare();
  const password = readFileSync(join(home, 'password'), 'utf8');
  assert.match(password, /^[0-9a-f]{48}\n$/);
  rmSync(join(home, 'data'), { recursive: true });
  await Promise.all([prepare(), prepare()]);
  assert.deepEqual(readdirSync(home).sort(), ['data', 'password']);
  assert.equal(readFileSync(join(home, 'password'), 'utf8'), password);
  await takesPassword(folder);

  // Nor is there one yet: they propose one each, and agree.
  for (const name of ['data', 'password']) rmSync(join(home, name), { recursive: true });
  await Promise.all([prepare(), prepare(), prepare()]);
  assert.deepEqual(
    readdirSync(home)
      .filter((name) => !name.startsWith('postgres.log'))
      .sort(),
    ['data', 'password'],
  );
  await takesPassword(folder);
});
