import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { isAlive } from './is-alive.mjs';
import { isWritten, replaceFile, writeFileOnce } from './whole-file.ts';

const MODULE = pathToFileURL(join(import.meta.dirname, 'whole-file.ts')).href;
const FILES = 200;

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-whole-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('a file is written once, for its owner alone, whatever a killed process has left', (t) => {
  const folder = folderOf(t);
  const file = join(folder, 'secret');
  writeFileSync(file, '');
  writeFileSync(`${file}.${process.pid}`, 'ha', { mode: 0o644 });
  assert(!isWritten(file) && !isWritten(join(folder, 'none')));
  writeFileOnce(file, () => 'first');
  writeFileOnce(file, () => assert.fail('it is there'));
  assert.equal(readFileSync(file, 'utf8'), 'first');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  replaceFile(file, 'second');
  assert.equal(readFileSync(file, 'utf8'), 'second');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ['secret']);
});

test('processes that write the same files at once agree, and none reads a half', async (t) => {
  const folder = folderOf(t);
  const program = `
    const { readFileSync } = await import('node:fs');
    const { writeFileOnce } = await import(${JSON.stringify(MODULE)});
    const read = [];
    for (let index = 0; index < ${FILES}; index += 1) {
      const file = ${JSON.stringify(`${folder}/`)} + index;
      writeFileOnce(file, () => String(process.pid).padStart(64, '0'));
      read.push(readFileSync(file, 'utf8'));
    }
    process.stdout.write(JSON.stringify(read));`;
  const write = () =>
    promisify(execFile)(process.execPath, [
      '--disable-warning=ExperimentalWarning',
      ...['--input-type=module', '-e', program],
    ]);
  const [first, ...others] = (await Promise.all([write(), write(), write()])).map(({ stdout }): string[] =>
    JSON.parse(stdout),
  );
  assert.equal(first?.length, FILES);
  for (const text of first) assert.match(text, /^\d{64}$/);
  for (const other of others) assert.deepEqual(other, first);
  assert.equal(readdirSync(folder).length, FILES, 'nothing else is left');
});

test('an empty file names no process that runs', () => {
  assert(!isAlive(Number('')));
  assert(!isAlive(-1));
  assert(isAlive(process.pid));
});
