import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { COMET, cometCompiler, compileComet } from './comet.ts';

test("the Comet that is kept is Compound's, unchanged, with its licence", () => {
  const names = readdirSync(COMET).filter((name) => name.endsWith('.sol'));
  const sources = names.sort().map((name) => readFileSync(join(COMET, name), 'utf8'));
  assert.equal(names.length, 10);
  assert.equal(
    createHash('sha256').update(sources.join('')).digest('hex'),
    // Of these files in the commit that NOTICE.md names, one behind the other.
    '137652b067af06b494a1a89861b6eeb31e2f79514f11fee5db1c7a21b52db613',
  );
  assert.match(readFileSync(join(COMET, 'LICENSE'), 'utf8'), /Change Date: {10}The earlier of 2025-12-31/);
  assert.match(readFileSync(join(COMET, 'COPYING'), 'utf8'), /GNU GENERAL PUBLIC LICENSE/);
  const notice = readFileSync(join(import.meta.dirname, 'NOTICE.md'), 'utf8');
  assert.match(notice, /\| `comet\/`.*d5a30b0aaeff7755f1431e87f818990902237b03.*GPL-2\.0-or-later/);
});

test('a compiler that is not installed is none, and no failure', () => {
  assert.equal(cometCompiler('solc-that-nobody-has'), undefined);
});

test('what the compiler says of a Comet that it refuses is told', (t) => {
  const compiler = cometCompiler();
  if (compiler === undefined) return t.skip('solc-comet is not installed');
  const folder = mkdtempSync(join(tmpdir(), 'farebox-comet-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'Comet.sol'), 'pragma solidity 0.8.14; contract Comet {}');
  writeFileSync(join(folder, 'CometExt.sol'), 'pragma solidity 0.8.15; contract CometExt {}');
  assert.throws(() => compileComet(compiler, folder), /requires different compiler version/);
});
