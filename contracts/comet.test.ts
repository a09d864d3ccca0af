import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { cometCompiler, compileComet, hasComet } from './comet.ts';

test('the run against the real Comet asks for a checkout where the folder has none', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-comet-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const more of [[], [folder]]) {
    const command = [join(import.meta.dirname, 'command.ts'), 'deep', '--comet', ...more];
    const run = spawn(process.execPath, command, { stdio: ['ignore', 'ignore', 'pipe'] });
    const [said, [exitCode]] = await Promise.all([text(run.stderr), once(run, 'close')]);
    assert.equal(exitCode, 2);
    assert.match(said, /--comet <a checkout of github\.com\/compound-finance\/comet>/);
  }
});

test('what the compiler says of a Comet that it refuses is told', (t) => {
  const compiler = cometCompiler();
  if (compiler === undefined) return t.skip('solc-comet is not installed');
  const folder = mkdtempSync(join(tmpdir(), 'farebox-comet-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'contracts'));
  writeFileSync(join(folder, 'contracts/Comet.sol'), 'pragma solidity 0.8.14; contract Comet {}');
  assert.equal(hasComet(folder), false);
  writeFileSync(join(folder, 'contracts/CometExt.sol'), 'pragma solidity 0.8.15; contract CometExt {}');
  assert.equal(hasComet(folder), true);
  assert.throws(() => compileComet(compiler, folder), /requires different compiler version/);
});
