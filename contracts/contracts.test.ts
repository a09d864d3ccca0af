/** The contracts' own tests, which forge runs: each of them is one here. They are compiled first, which takes a minute. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildLending } from '../packages/sandbox/src/chain/lending/build.ts';
import { readManifest, readSnapshot } from '../packages/sandbox/src/chain/lending/snapshot.ts';
import { runForge } from './forge.ts';

/** Of forge's report: what became of each test, by suite and name. */
type Report = Record<string, { test_results: Record<string, { status: string; reason: string | null }> }>;

test('the vault keeps its promises over the real protocols', async (t) => {
  const { output } = await runForge(['test', '--json', '--no-match-contract', 'GasMeasure'], {
    shows: 'nothing',
  });
  const start = output.indexOf('{');
  assert(start >= 0, `forge reported nothing: ${output.slice(-2_000)}`);
  const report: Report = JSON.parse(output.slice(start));
  let count = 0;
  for (const [suite, { test_results }] of Object.entries(report)) {
    for (const [name, { status, reason }] of Object.entries(test_results)) {
      count += 1;
      await t.test(`${suite.split(':').at(-1)}: ${name}`, () =>
        assert.equal(status, 'Success', reason ?? ''),
      );
    }
  }
  assert(count > 80, `only ${count} tests were run`);
});

test('what the sandbox has of lending protocols and vault is what these sources make', async () => {
  const { exitCode } = await runForge(['build', 'contracts/src', 'contracts/sandbox'], { shows: 'nothing' });
  assert.equal(exitCode, 0);
  const { snapshot, manifest } = await buildLending();
  const remedy = 'write it anew with npm run sandbox:build-chain';
  assert.deepEqual(readManifest(), manifest, remedy);
  assert.deepEqual(readSnapshot(), snapshot, remedy);
});

test('the contracts are formatted', async () => {
  const { exitCode, output } = await runForge(
    ['fmt', '--check', 'contracts/src', 'contracts/test', 'contracts/sandbox'],
    { shows: 'nothing' },
  );
  assert.equal(exitCode, 0, output);
});
