import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { findTestFiles, LONGEST_SECONDS, partsOf } from './test-files.ts';
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

  test('every file that opens a database is known to need one', () => {
    for (const { path, needsDatabase } of files) {
      const text = readFileSync(join(ROOT, path), 'utf8');
      if (/\bawait openTestDatabase\(/.test(text)) assert(needsDatabase, path);
    }
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

  test('the files listed as longest exist, and come first', () => {
    const longest = Object.keys(LONGEST_SECONDS);
    const first = files.slice(0, longest.length).map(({ path }) => path);
    assert.deepEqual(first.toSorted(), longest.toSorted());
    const seconds = first.map((path) => LONGEST_SECONDS[path] ?? 0);
    assert.deepEqual(
      seconds,
      seconds.toSorted((a, b) => b - a),
    );
  });
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
