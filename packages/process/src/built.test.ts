import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
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
  const cache = join(root, 'node_modules/.cache/farebox-built');
  const bundles = () => readdirSync(cache).filter((name) => name !== 'tried');
  return { folder, root, write, cache, bundles };
}

test('a program is run from the bundle until its source changes', async (t) => {
  const { root, write, cache, bundles } = repository(t, BUNDLES);
  const source = join(root, PROGRAM);
  assert.deepEqual([isUnbuilt(root), builtProgram(root, PROGRAM)], [true, source]);
  await build(root, process.execPath);
  const built = join(cache, bundles()[0] ?? '', 'apps/shop/src/main.js');
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
    assert.match(builtProgram(root, PROGRAM), /farebox-built.[0-9a-f]{16}.apps.shop.src.main\.js$/, path);
  }
});

test('a program that runs from a bundle finds it as it was after the next one is made, and older ones are removed', async (t) => {
  const { root, write, bundles } = repository(t, BUNDLES);
  const started: string[] = [];
  for (const text of ['one', 'another', 'a third']) {
    write(PROGRAM, text);
    await build(root, process.execPath);
    started.push(builtProgram(root, PROGRAM));
  }
  assert.equal(new Set(started).size, 3);
  assert.deepEqual(
    started.map((program) => existsSync(program)),
    [false, true, true],
  );
  assert.equal(bundles().length, 2);
});

test('bundled twice at once, and again, it is there', async (t) => {
  const { root, bundles } = repository(t, BUNDLES);
  const program = `import { build } from ${JSON.stringify(new URL('built.mjs', import.meta.url).href)};
    await build(${JSON.stringify(root)}, process.execPath);`;
  const bundle = async () => {
    const run = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'ignore' });
    assert.equal((await once(run, 'close'))[0], 0);
  };
  await Promise.all([bundle(), bundle(), bundle()]);
  await bundle();
  assert.deepEqual([existsSync(builtProgram(root, PROGRAM)), bundles().length], [true, 1]);
  assert.match(builtProgram(root, PROGRAM), /main\.js$/);
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
  const { root, bundles } = repository(t, `${BUNDLES}\nthrow new Error('no registry');`);
  await build(root, process.execPath);
  assert.deepEqual([isUnbuilt(root), builtProgram(root, PROGRAM)], [false, join(root, PROGRAM)]);
  assert.deepEqual(bundles(), []);
});

test('a bundle that was stopped halfway is made again, and what is left of it is removed', async (t) => {
  const { root, cache, bundles } = repository(t, BUNDLES);
  // No process has this number: it is above what Linux gives.
  mkdirSync(join(cache, 'unfinished-5000000'), { recursive: true });
  mkdirSync(join(cache, `unfinished-${process.ppid}`));
  assert.equal(isUnbuilt(root), true);
  await build(root, process.execPath);
  const left = bundles().filter((name) => name.startsWith('unfinished'));
  assert.deepEqual([left, bundles().length], [[`unfinished-${process.ppid}`], 2]);
});

test('what is bundled is what is installed', async (t) => {
  for (const [scope, here] of [
    ['serve', '--here=server'],
    ['product', '--here=sandbox'],
    ['everything', '--here=sandbox'],
  ] as const) {
    const said = `${BUNDLES}\nwriteFileSync(into + '/${here}', '');\nif (here !== '${here}') throw new Error(here);`;
    const { root, cache, bundles } = repository(t, said, scope);
    await build(root, process.execPath);
    assert(existsSync(join(cache, bundles()[0] ?? '', here)), scope);
  }
});
