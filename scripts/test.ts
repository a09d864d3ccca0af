/**
 * `npm test`: everything, from a fresh clone. The static checks, then every test file, against a PostgreSQL of its
 * own; with TEST_DATABASE_URL set, what touches the database runs once more on that one. Ends with a line
 * `N passed, N failed`. `--quick` leaves out what takes long; further arguments pick files by a part of their path.
 */
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { startEmbeddedPostgres } from '../apps/server/src/db/embedded.ts';

const ROOT = join(import.meta.dirname, '..');
/** Tests that take more than a few seconds, by a part of their path. */
const SLOW = [
  '/test/fire/',
  '/test/browser',
  '/test/legacy-client/',
  '/test/x402-',
  '/test/mpp-',
  '/sandbox/src/start',
];
/** Tests that touch the database. */
const ON_DATABASE = [
  ...['apps/server/test/', '/ledger/', '/keys/', '/paid-call/', '/jobs/', '/db/', '/custody/', '/identity/'],
  ...['/relayer/', '/rails/'],
];

const quick = process.argv.includes('--quick');
const picked = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));

const files = globSync('{apps,packages,bench,scripts}/**/*.test.ts', { cwd: ROOT })
  .filter((file) => !file.includes('node_modules'))
  .filter((file) => !quick || !SLOW.some((part) => `/${file}`.includes(part)))
  .filter((file) => picked.length === 0 || picked.some((part) => file.includes(part)))
  .sort();

let passed = 0;
let failed = 0;

if (picked.length === 0) {
  const checks = spawnSync(process.execPath, [join(ROOT, 'scripts/check.ts')], {
    stdio: 'inherit',
    cwd: ROOT,
  });
  if (checks.status === 0) passed += 1;
  else failed += 1;
}

const folder = mkdtempSync(join(tmpdir(), 'farebox-tests-'));
const embedded = await startEmbeddedPostgres(folder);
try {
  const other = process.env.TEST_DATABASE_URL;
  await runTests(files, embedded.url);
  if (other !== undefined) {
    process.stdout.write('\nThe same on TEST_DATABASE_URL\n');
    await runTests(
      files.filter((file) => ON_DATABASE.some((part) => file.includes(part))),
      other,
    );
  }
} finally {
  await embedded.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;

async function runTests(some: readonly string[], databaseUrl: string): Promise<void> {
  process.env.TEST_DATABASE_URL = databaseUrl;
  const events = run({
    files: some.map((file) => join(ROOT, file)),
    concurrency: Math.max(1, availableParallelism() - 1),
    cwd: ROOT,
    // The longest files take three minutes; a busy machine takes its time.
    timeout: 600_000,
    // A replica that a test let die holds on to its sockets: when the tests of a file are done, so is its process.
    execArgv: ['--disable-warning=ExperimentalWarning', '--test-force-exit'],
  });
  // A file is told as a test of its own: it counts only when it fails as a whole.
  events.on('test:pass', (test) => {
    if (test.details.type !== 'suite' && test.name !== test.file) passed += 1;
  });
  events.on('test:fail', (test) => {
    if (test.details.type !== 'suite') failed += 1;
  });
  await new Promise<void>((resolve, reject) => {
    events.compose(spec).on('end', resolve).on('error', reject).pipe(process.stdout, { end: false });
  });
}
