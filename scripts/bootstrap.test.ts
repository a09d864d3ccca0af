/** The entry of every npm script where nothing is installed yet, with an npm that does as a test says. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const skip = process.platform === 'win32' && 'its npm is a script of a Unix shell';

/** Runs a command in a fresh clone of nothing but its entry. @param npm lines of a shell script, with the arguments in `$*`; null: there is none */
function started(
  t: { after(work: () => void): void },
  npm: string | null,
  environment: Readonly<Record<string, string>> = {},
) {
  const clone = mkdtempSync(join(tmpdir(), 'farebox-bootstrap-'));
  t.after(() => rmSync(clone, { recursive: true, force: true }));
  const program = join(clone, 'apps/shop/src/commands/import.ts');
  mkdirSync(dirname(program), { recursive: true });
  writeFileSync(program, "process.stdout.write('it ran');");
  const copied = [
    'bootstrap.mjs',
    'packages/process/src/npm-packages.mjs',
    'packages/process/src/built.mjs',
    'packages/process/src/is-alive.mjs',
    'packages/process/src/node-flags.mjs',
  ];
  for (const file of copied) {
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    cpSync(join(import.meta.dirname, '..', file), join(clone, file));
  }
  writeFileSync(join(clone, 'package-lock.json'), JSON.stringify(LOCK));
  mkdirSync(join(clone, 'bin'));
  const script = `#!/bin/sh\necho "$*" >> ${join(clone, 'asked')}\n${npm}\n`;
  if (npm !== null) writeFileSync(join(clone, 'bin/npm'), script, { mode: 0o755 });
  const PATH = npm === null ? join(clone, 'bin') : `${join(clone, 'bin')}:${process.env.PATH}`;
  const args = [join(clone, 'bootstrap.mjs'), 'import'];
  const options = { cwd: clone, env: { ...process.env, ...environment, PATH } };
  const run = () => spawnSync(process.execPath, args, { ...options, encoding: 'utf8' });
  const begin = () => spawn(process.execPath, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
  const asked = () =>
    existsSync(join(clone, 'asked')) ? readFileSync(join(clone, 'asked'), 'utf8').trim().split('\n') : [];
  const installed = () =>
    readdirSync(join(clone, 'node_modules'), { recursive: true, encoding: 'utf8' })
      .filter((path) => !path.startsWith('.') && /.\/./.test(path))
      .sort();
  return { clone, run, begin, asked, installed };
}

/** The shop needs two packages; the third is one that its author only tests with. */
const LOCK = {
  packages: {
    '': {},
    'apps/shop': { dependencies: { a: '1' } },
    'node_modules/a': {
      peerDependencies: { '@b/c': '1', d: '1' },
      peerDependenciesMeta: { d: { optional: true } },
    },
    'node_modules/@b/c': {},
    'node_modules/d': {},
  },
};
const INSTALLS = `case "$*" in install*)
  mkdir -p node_modules/a node_modules/@b/c node_modules/d && printf '%02000000d' 1 > node_modules/a/index.js
  for name in index.d.ts index.js.map LICENSE.md; do echo 1 > node_modules/a/$name; done;; esac`;

test('installs once, and says how much is there', { skip }, (t) => {
  const { run, asked, installed } = started(t, INSTALLS);
  const first = run();
  assert.deepEqual([first.status, first.stdout], [0, 'it ran'], first.stderr);
  assert.match(first.stderr, /installing the server, once .*\n.*installed: 2 packages, 2 MB\n$/);
  const [ping = '', install = '', ...others] = asked();
  assert.match(ping, /^ping --fetch-retries=0 --fetch-timeout=2500$/);
  assert.match(install, /^install .*--ignore-scripts --omit=dev --omit=optional --workspace=apps\/shop$/);
  assert.deepEqual(others, []);
  // What no program reads is taken out again; licences stay.
  assert.deepEqual(installed(), ['@b/c', 'a/LICENSE.md', 'a/index.js']);
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

test('knows a registry that takes connections and says nothing', { skip }, async (t) => {
  const silent = createServer();
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  const { port } = silent.address() as AddressInfo;
  const itself = spawnSync('which', ['npm'], { encoding: 'utf8' }).stdout.trim();
  const { run } = started(t, `case "$*" in ping*) exec ${itself} "$@";; esac\n${INSTALLS}`, {
    npm_config_registry: `http://127.0.0.1:${port}/`,
  });
  const { status, stderr } = run();
  assert.equal(status, 0, stderr);
  assert.match(stderr, /has not answered yet.*npm config set registry.*Trying all the same/);
});

test('says how far it has come while it installs', { skip }, async (t) => {
  const { clone, begin } = started(
    t,
    `${INSTALLS}\ncase "$*" in install*) while [ ! -e seen ]; do sleep 0.1; done;; esac`,
  );
  const child = begin();
  const ended = once(child, 'exit');
  let said = '';
  child.stderr.on('data', (bytes) => {
    said += bytes;
    if (/: 3 packages, 2 MB after \d+ s \.\.\.\n/.test(said)) writeFileSync(join(clone, 'seen'), '');
  });
  assert.deepEqual(await ended, [0, null], said);
});

test('does not take a registry that knows no ping for one that is away', { skip }, (t) => {
  const { run, asked } = started(
    t,
    `case "$*" in ping*) echo "npm error code E404" >&2; exit 1;; esac\n${INSTALLS}`,
  );
  assert.equal(run().status, 0);
  assert.ok(!asked()[1]?.includes('--offline'));
});

test('says so where there is no npm', { skip }, (t) => {
  const { status, stdout, stderr } = started(t, null).run();
  assert.deepEqual([status, stdout], [1, '']);
  assert.match(
    stderr,
    /npm is not on the PATH, and is needed once to fetch packages: it comes with Node\.$/m,
  );
});

test('fails aloud when the installation does', { skip }, (t) => {
  const { run } = started(t, 'case "$*" in install*) echo "npm error ENOSPC" >&2; exit 1;; esac');
  const { status, stderr } = run();
  assert.equal(status, 1);
  assert.match(stderr, /npm error ENOSPC\n.*installation in .* failed/);
});
