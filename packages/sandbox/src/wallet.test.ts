/** A wallet that is asked for wrongly: its usage in place of a stack, and no wallet is made. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

test('an unknown option and two chains at once are answered with the usage', () => {
  for (const asked of [['--foo'], ['--solana', '--tempo'], ['base']]) {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(import.meta.dirname, 'wallet.ts'), ...asked],
      { encoding: 'utf8' },
    );
    assert.deepEqual([status, stdout], [2, ''], stderr);
    assert.match(stderr, /\nusage: npm run sandbox:wallet/);
    assert.doesNotMatch(stderr, /\n {4}at /);
  }
});
