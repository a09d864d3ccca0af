import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
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

test('processes that make the database of one new folder at once make one, which takes the password that stands there', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-database-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const home = join(folder, 'postgres');
  // What two leave behind that were killed: a half-made database, and a password that was not written yet.
  mkdirSync(join(home, `data.new-${NOBODYS_PID}`, 'base'), { recursive: true });
  writeFileSync(join(home, 'password'), '');
  const program = `await (await import(${JSON.stringify(MODULE)})).prepareEmbeddedPostgres(${JSON.stringify(folder)})`;
  const prepare = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  await prepare();
  rmSync(join(home, 'data'), { recursive: true });
  await Promise.all([prepare(), prepare()]);
  assert.deepEqual(readdirSync(home).sort(), ['data', 'password']);
  const server = await startEmbeddedPostgres(folder);
  try {
    const sql = postgres(server.url, { max: 1 });
    assert.deepEqual([...(await sql`select 1 as one`)], [{ one: 1 }]);
    await sql.end();
  } finally {
    await server.stop();
  }
});
