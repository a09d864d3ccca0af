/** Tools that are fetched on first use: by one process at a time, whatever others have left behind. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { isClaimed } from './npm-packages.mjs';

const skip = process.platform === 'win32' && 'its npm is a script of a Unix shell';
const PROGRAM = `
  import { fetchTool } from ${JSON.stringify(new URL('npm-packages.mjs', import.meta.url).href)};
  process.stdout.write(await fetchTool(process.argv[1]));
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fetched-'));
  mkdirSync(join(folder, 'tool'));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'tool/package.json'), '{}');
  writeFileSync(join(folder, 'tool/package-lock.json'), '{ "packages": { "": {} } }');
  const npm = `#!/bin/sh\ncase "$*" in install*) mkdir -p node_modules; echo >> ${join(folder, 'installed')};; esac\n`;
  writeFileSync(join(folder, 'bin/npm'), npm, { mode: 0o755 });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const claim = () => join(folder, 'tool/.fetching');
const installed = () => readFileSync(join(folder, 'installed'), 'utf8').length;

/** Fetches in a process of its own. */
async function fetched(): Promise<string> {
  const run = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, join(folder, 'tool')], {
    env: { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}` },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let said = '';
  run.stdout.on('data', (piece) => {
    said += piece;
  });
  const [code] = await once(run, 'close');
  assert.equal(code, 0);
  return said;
}

test('several processes that ask at once have it fetched once', { skip }, async () => {
  assert.deepEqual(
    new Set(await Promise.all([fetched(), fetched(), fetched()])),
    new Set([join(folder, 'tool')]),
  );
  assert.deepEqual([installed(), existsSync(claim())], [1, false]);
});

test('who was killed while it fetched keeps nobody waiting', { skip }, async () => {
  const dead = spawn(process.execPath, ['-e', '']);
  await once(dead, 'close');
  writeFileSync(claim(), String(dead.pid));
  await fetched();
  assert.deepEqual([installed(), existsSync(claim())], [1, false]);
});

test('a claim is its process’s for as long as that lives, or has just made it and not yet written its id', () => {
  assert.equal(isClaimed(claim()), false);
  writeFileSync(claim(), String(process.pid));
  assert.equal(isClaimed(claim()), true);
  writeFileSync(claim(), '');
  assert.equal(isClaimed(claim()), true);
  const longAgo = Date.now() / 1_000 - 60;
  utimesSync(claim(), longAgo, longAgo);
  assert.equal(isClaimed(claim()), false);
});
