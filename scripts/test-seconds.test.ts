import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { findTestFiles } from './test-files.ts';
import { keepSeconds, keptSeconds, LONG_FROM_SECONDS, listedSeconds, listSeconds } from './test-seconds.ts';

const ROOT = join(import.meta.dirname, '..');
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-test-seconds-'));
  mkdirSync(join(folder, 'scripts'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const FILES = ['scripts/a.test.ts', 'scripts/b.test.ts', 'scripts/c.test.ts'];
const [A = '', B = '', C = ''] = FILES;
const writeFiles = () => {
  for (const path of FILES) writeFileSync(join(folder, path), '');
};
const write = (path: string, content: string) => writeFileSync(join(folder, path), content);
const order = () => findTestFiles(folder).map(({ path }) => path);

describe('the longest come first', () => {
  test('by the last run, before the checked-in list', () => {
    writeFiles();
    assert.deepEqual(order(), [A, B, C]);
    write('scripts/test-seconds.json', JSON.stringify({ [C]: 40, [B]: 30 }));
    assert.deepEqual(order(), [C, B, A]);
    keepSeconds(
      folder,
      new Map([
        [A, 90],
        [C, 1],
      ]),
      FILES,
    );
    assert.deepEqual(order(), [A, B, C]);
  });

  test('and with them those that start a server or a chain and were never timed', () => {
    writeFiles();
    mkdirSync(join(folder, 'apps/shop/test/fire'), { recursive: true });
    write('apps/shop/test/fire/new.test.ts', '');
    keepSeconds(
      folder,
      new Map([
        [B, LONG_FROM_SECONDS + 1],
        [C, 1],
      ]),
      FILES,
    );
    assert.deepEqual(order(), [B, 'apps/shop/test/fire/new.test.ts', C, A]);
  });

  test('while `--quick` leaves out the same on every machine', () => {
    writeFiles();
    write('scripts/test-seconds.json', JSON.stringify({ [C]: 40 }));
    keepSeconds(
      folder,
      new Map([
        [A, 90],
        [C, 1],
      ]),
      FILES,
    );
    const slow = findTestFiles(folder).filter(({ isSlow }) => isSlow);
    assert.deepEqual(
      slow.map(({ path }) => path),
      [C],
    );
  });
});

describe('what a run measured', () => {
  test('stands beside what earlier runs did, and only for files that there still are', () => {
    keepSeconds(
      folder,
      new Map([
        [A, 1.5],
        [B, 2],
      ]),
      FILES,
    );
    keepSeconds(
      folder,
      new Map([
        [C, 3],
        [B, 4],
      ]),
      [B, C],
    );
    assert.deepEqual(
      [...keptSeconds(folder)],
      [
        [B, 4],
        [C, 3],
      ],
    );
    assert.deepEqual(readdirSync(join(folder, 'node_modules/.cache')), ['test-seconds.json']);
  });

  test('does not fail the run where it cannot be kept', () => {
    write('node_modules', 'no folder');
    keepSeconds(folder, new Map([[A, 1]]), FILES);
    assert.equal(keptSeconds(folder).size, 0);
  });

  test('is forgotten where it cannot be read', () => {
    for (const damaged of ['', '{"scripts/a.te', 'null', '7', '[]', '"text"']) {
      mkdirSync(join(folder, 'node_modules/.cache'), { recursive: true });
      write('node_modules/.cache/test-seconds.json', damaged);
      assert.equal(keptSeconds(folder).size, 0, damaged);
    }
    write('node_modules/.cache/test-seconds.json', '{"a":"5","b":-1,"c":null,"__proto__":{"d":1},"e":2}');
    assert.deepEqual([...keptSeconds(folder)], [['e', 2]]);
  });

  test('renews the checked-in list, which keeps what was not run and drops what is gone or short', () => {
    write('scripts/test-seconds.json', JSON.stringify({ [A]: 70, [B]: 60, gone: 50 }));
    keepSeconds(
      folder,
      new Map([
        [B, LONG_FROM_SECONDS - 1],
        [C, 80.4],
      ]),
      FILES,
    );
    listSeconds(folder, FILES);
    assert.deepEqual(
      [...listedSeconds(folder)],
      [
        [C, 80],
        [A, 70],
      ],
    );
  });
});

test('the checked-in list names files that exist, the longest first', () => {
  const listed = [...listedSeconds(ROOT)];
  assert(listed.length > 20);
  for (const [path, seconds] of listed) {
    assert(
      existsSync(join(ROOT, path)),
      `${path} is gone: \`npm test -- --record ${path}\` takes it off the list`,
    );
    assert(seconds >= LONG_FROM_SECONDS, path);
  }
  assert.deepEqual(
    listed,
    listed.toSorted(([, a], [, b]) => b - a),
  );
  assert.match(readFileSync(join(ROOT, '.gitignore'), 'utf8'), /^node_modules\/$/m);
});
