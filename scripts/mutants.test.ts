import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Mutant, planted } from './mutant.ts';
import { MUTANTS } from './mutants.ts';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

test('each bug can be planted at one place, changes it, and leaves a program', () => {
  for (const mutant of MUTANTS) {
    const bug = planted(read(mutant.file), mutant);
    assert.notEqual(mutant.find, mutant.replace, mutant.file);
    // Whether SQL is right is for the database to say.
    if (mutant.file.endsWith('.sql')) continue;
    assert.doesNotThrow(() => stripTypeScriptTypes(bug), `${mutant.file}: ${mutant.replace}`);
  }
});

test('each bug has tests that exist, and no bug is planted twice', () => {
  const seen = new Set<string>();
  for (const { file, find, replace, tests, accepted } of MUTANTS) {
    assert(tests.length > 0, file);
    for (const path of tests) assert(path.endsWith('.test.ts') && existsSync(join(ROOT, path)), path);
    assert(accepted === undefined || accepted.length > 20, `${file}: an accepted survivor has a reason`);
    const name = JSON.stringify([file, find, replace]);
    assert(!seen.has(name), name);
    seen.add(name);
  }
});

test('text that stands nowhere, or twice, is no place for a bug', () => {
  const mutant: Mutant = { file: 'a.ts', find: 'b', replace: 'c', tests: [] };
  assert.equal(planted('a b a', mutant), 'a c a');
  assert.throws(() => planted('a', mutant), /does not hold/);
  assert.throws(() => planted('b a b', mutant), /more than once/);
});
