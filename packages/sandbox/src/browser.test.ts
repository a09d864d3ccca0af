import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { unpackBrowser } from './browser.fixture.ts';

test('two processes that unpack the browser at once find a whole one, and leave nothing else', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'browsers-'));
  try {
    const look = () =>
      promisify(execFile)(join(folder, 'chromium'), ['--version']).then(({ stdout }) => stdout);
    const both = await Promise.all([0, 1].map(() => unpackBrowser(folder).then(look)));
    for (const version of both) assert.match(version, /Chrom/);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith('chromium')),
      ['chromium'],
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
