import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { bundleServer } from './test-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'farebox-test-server-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A repository whose server is bundled by this code. */
function repository(name: string, bundling: string) {
  const cwd = join(folder, name);
  for (const [path, text] of [
    ['scripts/bundle.ts', bundling],
    ['packages/any/tools/press/package.json', '{}'],
  ] as const) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  return { cwd, environment: process.env, timeoutMs: 60_000, signal: new AbortController().signal };
}

test('a bundled server is named, and installs its tools in the repository that it was made of', async () => {
  const options = repository(
    'good',
    `import { cpSync } from 'node:fs';
    cpSync(import.meta.dirname + '/../packages', process.argv[2] + '/packages', { recursive: true });`,
  );
  const into = join(folder, 'server');
  const program = join(into, 'apps/shop/src/main.js');
  assert.deepEqual(await bundleServer(into, options), { TEST_SERVER_PROGRAM: program });
  writeFileSync(join(into, 'packages/any/tools/press/installed'), 'once');
  assert.equal(readFileSync(join(options.cwd, 'packages/any/tools/press/installed'), 'utf8'), 'once');
});

test('where it cannot be bundled none is named, so that it is started from its source', async () => {
  const into = join(folder, 'none');
  assert.deepEqual(await bundleServer(into, repository('bad', "throw new Error('no registry');")), {});
  assert(!existsSync(into));
});
