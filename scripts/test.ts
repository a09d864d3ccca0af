/**
 * `npm test`: everything, from a fresh clone. It runs the static checks and every test file, as many at once as there
 * are processors, each lane with its own PostgreSQL. With TEST_DATABASE_URL set, the tests that need a database run
 * once more on that one. It ends with the line `N passed, N failed`. `--quick` leaves out what takes long; `--deep`
 * runs only what can be run for hours; further arguments select files by a part of their path.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeTemplate } from '../apps/shop/test/database.fixture.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { findTestFiles, type TestFile } from './test-files.ts';
import { type Ran, runProgram, runTestFile } from './test-process.ts';

const ROOT = join(import.meta.dirname, '..');
/**
 * Each lane runs two servers and chain nodes beside its tests; more lanes than this would fill the memory of a small
 * machine.
 */
const MAX_LANES = 4;
/** A test file may run twenty servers of ours at once, each with its pools. */
const CONNECTIONS_OF_A_LANE = 400;
/** The longest files take three minutes, and a small machine that does much else meanwhile is several times slower. */
const FILE_TIMEOUT_MS = 1_800_000;
/** The longest that is run, of a million steps, takes about 36 hours. */
const DEEP_TIMEOUT_MS = 72 * 3_600_000;

const flags = process.argv.slice(2).filter((argument) => argument.startsWith('--'));
const picked = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const isQuick = flags.includes('--quick');
const isDeep = flags.includes('--deep');
const timeoutMs = isDeep ? DEEP_TIMEOUT_MS : FILE_TIMEOUT_MS;

const files = findTestFiles(ROOT)
  .filter(({ isSlow }) => !isQuick || !isSlow)
  .filter((file) => !isDeep || file.isDeep)
  .filter(({ path }) => picked.length === 0 || picked.some((part) => path.includes(part)));

const startedAtMs = performance.now();
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort());
const folder = mkdtempSync(join(tmpdir(), 'farebox-tests-'));
let passed = 0;
const failed: string[] = [];
let tallies = 0;

interface Job {
  name: string;
  run(environment: Readonly<Record<string, string | undefined>>): Promise<Ran>;
}

try {
  const checks: Job = {
    name: 'npm run check',
    run: (environment) =>
      runProgram(join(ROOT, 'scripts/check.ts'), { cwd: ROOT, environment, timeoutMs, signal: stop.signal }),
  };
  const queue = [...(picked.length === 0 && !isDeep ? [checks] : []), ...files.map(jobOf)];
  const lanes = Math.max(1, Math.min(MAX_LANES, availableParallelism(), queue.length));
  const runLane = files.some(({ needsDatabase }) => needsDatabase) ? runOnOwnDatabase : runWithoutDatabase;
  await Promise.all(Array.from({ length: lanes }, (_, lane) => runLane(String(lane), queue)));

  const other = process.env.TEST_DATABASE_URL;
  if (other !== undefined) {
    process.stdout.write('\nThe same on TEST_DATABASE_URL\n');
    // One lane only: it is unknown how many connections that server has to spare.
    await runOn(other, files.filter(({ needsDatabase }) => needsDatabase).map(jobOf));
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
for (const name of failed) process.stdout.write(`\n✖ ${name}`);
process.stdout.write(`\n${Math.round((performance.now() - startedAtMs) / 1_000)} s\n`);
process.stdout.write(`\n${passed} passed, ${failed.length} failed\n`);
process.exitCode = failed.length === 0 && passed > 0 ? 0 : 1;

function jobOf({ path }: TestFile): Job {
  return {
    name: path,
    run(environment) {
      tallies += 1;
      const options = { cwd: ROOT, environment, timeoutMs, signal: stop.signal };
      return runTestFile(join(ROOT, path), join(folder, `${tallies}.tally`), options);
    },
  };
}

/** Spares whoever runs a few pure tests the ten seconds that a database of their own takes to come up. */
async function runWithoutDatabase(_lane: string, queue: Job[]): Promise<void> {
  await runJobs(queue, {});
}

async function runOnOwnDatabase(lane: string, queue: Job[]): Promise<void> {
  const embedded = await startEmbeddedPostgres(join(folder, lane), CONNECTIONS_OF_A_LANE);
  try {
    await runOn(embedded.url, queue, { lastsNoLonger: true });
  } finally {
    await embedded.stop();
  }
}

async function runOn(url: string, queue: Job[], { lastsNoLonger = false } = {}): Promise<void> {
  const template = await makeTemplate(url, { lastsNoLonger });
  try {
    await runJobs(queue, { TEST_DATABASE_URL: url, TEST_DATABASE_TEMPLATE: template.name });
  } finally {
    await template.drop();
  }
}

/** Runs what waits, one after another, until nothing does. */
async function runJobs(queue: Job[], variables: Readonly<Record<string, string>>): Promise<void> {
  const environment = {
    ...process.env,
    ...variables,
    // Every process loads the same thousand modules, so they are compiled once for all of them.
    NODE_COMPILE_CACHE: join(folder, 'compiled'),
    ...(isDeep ? { TEST_DEEP: '1' } : {}),
  };
  for (let job = queue.shift(); job !== undefined && !stop.signal.aborted; job = queue.shift())
    tell(job.name, await job.run(environment));
}

function tell(name: string, ran: Ran): void {
  passed += ran.passed;
  for (const what of ran.failed) {
    const why = ran.reasons.get(what)?.replaceAll(/^/gm, '    ');
    failed.push(why === undefined ? `${name}: ${what}` : `${name}: ${what}\n${why}`);
  }
  const words = ran.failed.length === 0 ? '' : `, ${ran.failed.length} failed`;
  const seconds = (ran.durationMs / 1_000).toFixed(1);
  process.stdout.write(`\n${name}  ${seconds} s, ${ran.passed} passed${words}\n${ran.output}`);
}
