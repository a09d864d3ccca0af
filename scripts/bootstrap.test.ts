/** The entry of every npm script where nothing is installed yet, with an npm that does as a test says. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const skip = process.platform === 'win32' && 'its npm is a script of a Unix shell';

/** Runs a command in a fresh clone of nothing but its entry. @param npm lines of a shell script, with the arguments in `$*` */
function started(t: { after(work: () => void): void }, npm: string) {
  const clone = mkdtempSync(join(tmpdir(), 'farebox-bootstrap-'));
  t.after(() => rmSync(clone, { recursive: true, force: true }));
  const program = join(clone, 'apps/shop/src/commands/import.ts');
  mkdirSync(dirname(program), { recursive: true });
  writeFileSync(program, "process.stdout.write('it ran');");
  cpSync(join(import.meta.dirname, '../bootstrap.mjs'), join(clone, 'bootstrap.mjs'));
  writeFileSync(join(clone, 'package-lock.json'), '{}');
  mkdirSync(join(clone, 'bin'));
  const script = `#!/bin/sh\necho "$*" >> ${join(clone, 'asked')}\n${npm}\n`;
  writeFileSync(join(clone, 'bin/npm'), script, { mode: 0o755 });
  const run = () =>
    spawnSync(process.execPath, [join(clone, 'bootstrap.mjs'), 'import'], {
      cwd: clone,
      encoding: 'utf8',
      env: { ...process.env, PATH: `${join(clone, 'bin')}:${process.env.PATH}` },
    });
  const asked = () =>
    existsSync(join(clone, 'asked')) ? readFileSync(join(clone, 'asked'), 'utf8').trim().split('\n') : [];
  return { run, asked };
}

const INSTALLS = `case "$*" in install*)
  mkdir -p node_modules/a node_modules/@b/c && printf '%02000000d' 1 > node_modules/a/index.js;; esac`;

test('installs once, and says how much is there', { skip }, (t) => {
  const { run, asked } = started(t, INSTALLS);
  const first = run();
  assert.deepEqual([first.status, first.stdout], [0, 'it ran'], first.stderr);
  assert.match(first.stderr, /installing, once .*\n.*installed: 2 packages, 2 MB\n$/);
  const [ping = '', install = '', ...others] = asked();
  assert.match(ping, /^ping --fetch-retries=0 --fetch-timeout=2500$/);
  assert.match(install, /^install .*--ignore-scripts --omit=dev$/);
  assert.deepEqual(others, []);
  assert.equal(run().stderr, '');
  assert.equal(asked().length, 2);
});

test('says what to set where the registry cannot be reached', { skip }, (t) => {
  const closed = started(t, 'echo "npm error code ENOTFOUND" >&2; exit 1');
  const { status, stdout, stderr } = closed.run();
  assert.deepEqual([status, stdout], [1, '']);
  assert.match(stderr, /registry cannot be reached.*HTTPS_PROXY.*npm config set registry/);
  assert.match(closed.asked()[1] ?? '', /^install .*--offline/);
});

test('takes what npm has kept where the registry cannot be reached', { skip }, (t) => {
  const kept = started(
    t,
    `case "$*" in ping*) echo "npm error code ECONNREFUSED" >&2; exit 1;; esac\n${INSTALLS}`,
  );
  const { status, stdout, stderr } = kept.run();
  assert.deepEqual([status, stdout], [0, 'it ran'], stderr);
});

test('says what to set where the registry is silent, and tries all the same', { skip }, (t) => {
  const { run, asked } = started(
    t,
    `case "$*" in ping*) echo "npm error errno FETCH_ERROR
npm error network timeout at: https://registry.example/-/ping" >&2; exit 1;; esac\n${INSTALLS}`,
  );
  const { status, stderr } = run();
  assert.equal(status, 0, stderr);
  assert.match(stderr, /has not answered yet.*HTTPS_PROXY.*Trying all the same/);
  assert.ok(!asked()[1]?.includes('--offline'));
});

test('does not take a registry that knows no ping for one that is away', { skip }, (t) => {
  const { run, asked } = started(
    t,
    `case "$*" in ping*) echo "npm error code E404" >&2; exit 1;; esac\n${INSTALLS}`,
  );
  assert.equal(run().status, 0);
  assert.ok(!asked()[1]?.includes('--offline'));
});

test('fails aloud when the installation does', { skip }, (t) => {
  const { run } = started(t, 'case "$*" in install*) echo "npm error ENOSPC" >&2; exit 1;; esac');
  const { status, stderr } = run();
  assert.equal(status, 1);
  assert.match(stderr, /npm error ENOSPC\n.*installation in .* failed/);
});
