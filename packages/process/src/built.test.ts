import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { build, builtProgram, isUnbuilt } from './built.mjs';

const PROGRAM = 'apps/shop/src/main.ts';
const BUNDLES = `import { mkdirSync, writeFileSync } from 'node:fs';
const [, , into, here] = process.argv;
mkdirSync(into + '/apps/shop/src', { recursive: true });
writeFileSync(into + '/apps/shop/src/main.js', here);`;

/** A repository with one program. @param bundling the code that bundles it @param scope what is installed */
function repository(t: TestContext, bundling: string, scope = 'product') {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-built-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const root = join(folder, 'clone');
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  write(PROGRAM, '// the source');
  write('apps/shop/src/main.test.ts', '// a test');
  write('packages/any/node_modules/other/index.js', '');
  for (const path of ['contracts/a.sol', 'docs/a.md', 'package-lock.json']) write(path, '');
  write('scripts/bundle.ts', bundling);
  write('node_modules/.farebox-installed.json', JSON.stringify({ scope }));
  const cache = join(root, 'node_modules/.cache');
  return { folder, root, write, cache };
}

test('a program is run from the bundle until its source changes', async (t) => {
  const { root, write, cache } = repository(t, BUNDLES);
  const source = join(root, PROGRAM);
  const built = join(cache, 'farebox-built/apps/shop/src/main.js');
  assert.deepEqual([isUnbuilt(root), builtProgram(root, PROGRAM)], [true, source]);
  await build(root, process.execPath);
  assert.deepEqual([isUnbuilt(root), builtProgram(root, PROGRAM)], [false, built]);
  assert.equal(
    builtProgram(root, 'scripts/bundle.ts'),
    join(root, 'scripts/bundle.ts'),
    'it is in no bundle',
  );
  write('apps/shop/src/main.test.ts', '// another test');
  symlinkSync(join(root, 'gone'), join(root, 'docs/nowhere.md'));
  write('packages/any/node_modules/other/index.js', 'changed');
  assert.equal(builtProgram(root, PROGRAM), built, 'neither is in the bundle');
  for (const path of [PROGRAM, 'docs/b.md', 'package-lock.json', 'apps/shop/src/new.ts']) {
    write(path, `a change of ${path}`);
    assert.equal(builtProgram(root, PROGRAM), source, path);
    await build(root, process.execPath);
    assert.equal(builtProgram(root, PROGRAM), built, path);
  }
});

test('a bundle that was moved with its repository is not run: it names the place where it was made', async (t) => {
  const { folder, root } = repository(t, BUNDLES);
  await build(root, process.execPath);
  const moved = join(folder, 'moved');
  renameSync(root, moved);
  assert.equal(builtProgram(moved, PROGRAM), join(moved, PROGRAM));
});

test('what changes while it is bundled counts as changed', async (t) => {
  const { root } = repository(
    t,
    `${BUNDLES}\nwriteFileSync(import.meta.dirname + '/../${PROGRAM}', '// changed meanwhile');`,
  );
  await build(root, process.execPath);
  assert.equal(builtProgram(root, PROGRAM), join(root, PROGRAM));
});

test('where it cannot be bundled the source is run, and it is not tried at each start', async (t) => {
  const { root, cache } = repository(t, `${BUNDLES}\nthrow new Error('no registry');`);
  await build(root, process.execPath);
  assert.deepEqual([isUnbuilt(root), builtProgram(root, PROGRAM)], [false, join(root, PROGRAM)]);
  assert.deepEqual(readdirSync(cache), ['farebox-built']);
});

test('a bundle that was stopped halfway is made again, and what is left of it is removed', async (t) => {
  const { root, cache } = repository(t, BUNDLES);
  // No process has this number: it is above what Linux gives.
  mkdirSync(join(cache, 'farebox-built-5000000'), { recursive: true });
  mkdirSync(join(cache, `farebox-built-${process.ppid}`));
  assert.equal(isUnbuilt(root), true);
  await build(root, process.execPath);
  assert.deepEqual(readdirSync(cache).sort(), ['farebox-built', `farebox-built-${process.ppid}`]);
});

test('what is bundled is what is installed', async (t) => {
  for (const [scope, here] of [
    ['serve', '--here=server'],
    ['product', '--here=sandbox'],
    ['everything', '--here=sandbox'],
  ] as const) {
    const said = `${BUNDLES}\nwriteFileSync(into + '/${here}', '');\nif (here !== '${here}') throw new Error(here);`;
    const { root, cache } = repository(t, said, scope);
    await build(root, process.execPath);
    assert(existsSync(join(cache, 'farebox-built', here)), scope);
  }
});
