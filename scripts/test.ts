/**
 * `npm test`: everything, from a fresh clone. It runs the static checks and every test file, as many at once as there
 * are processors (one more saved nothing, and made the longest twice as long); files that may share a process do, since
 * most of a short one's time goes into what it imports. Each lane starts a PostgreSQL of its own before its first test file
 * that needs one; the server and its commands, which tests start as processes, are bundled once. With TEST_DATABASE_URL set, the tests that
 * need a database run once more on that one. It ends with the line `N passed, N failed`. `--quick` leaves out what
 * takes long; `--deep` runs only what can be run for hours; `--record` writes down, in scripts/test-seconds.json, which
 * files took long; further arguments select files by a part of their path.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDatabaseFolder } from './database-folder.ts';
import { batchesOf, findTestFiles, listTestFiles, type TestFile } from './test-files.ts';
import { type Ran, runProgram, runTestBatch, runTestFile } from './test-process.ts';
import { keepSeconds, listSeconds } from './test-seconds.ts';
import { bundleServer } from './test-server.ts';

const ROOT = join(import.meta.dirname, '..');
/**
 * Each lane runs two servers and chain nodes beside its tests; more lanes than this would fill the memory of a small
 * machine.
 */
const MAX_LANES = 4;
/** A test file may run twenty servers of ours at once, each with its pools. */
const CONNECTIONS_OF_A_LANE = 400;
/** Its folder may be in memory. */
const SETTINGS_OF_A_LANE = { max_wal_size: '256MB' };
/** The longest batches take five minutes, and a small machine that does much else meanwhile is several times slower. */
const BATCH_TIMEOUT_MS = 900_000;
/** The longest that is run, of a million steps, takes about 36 hours. */
const DEEP_TIMEOUT_MS = 72 * 3_600_000;

const flags = process.argv.slice(2).filter((argument) => argument.startsWith('--'));
const picked = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const isQuick = flags.includes('--quick');
const isDeep = flags.includes('--deep');
const timeoutMs = isDeep ? DEEP_TIMEOUT_MS : BATCH_TIMEOUT_MS;

const files = findTestFiles(ROOT, picked)
  .filter(({ isSlow }) => !isQuick || !isSlow)
  .filter((file) => !isDeep || file.isDeep);

const startedAtMs = performance.now();
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort());
const folder = mkdtempSync(join(tmpdir(), 'farebox-tests-'));
let passed = 0;
const failed: string[] = [];
const measuredSeconds = new Map<string, number>();
let tallies = 0;
let server: Promise<Variables> | undefined;

interface Job {
  needsDatabase: boolean;
  needsServer: boolean;
  /** @returns what ran, by its name */
  run(environment: Readonly<Record<string, string | undefined>>): Promise<[string, Ran][]>;
}

try {
  const checks: Job = {
    needsDatabase: false,
    needsServer: false,
    async run(environment) {
      const options = { cwd: ROOT, environment, timeoutMs, signal: stop.signal };
      return [['npm run check', await runProgram(join(ROOT, 'scripts/check.ts'), options)]];
    },
  };
  const most = Math.max(1, Math.min(MAX_LANES, availableParallelism()));
  const queue = [...(picked.length === 0 && !isDeep ? [checks] : []), ...batchesOf(files, most).map(jobOf)];
  const lanes = Math.max(1, Math.min(most, queue.length));
  await Promise.all(Array.from({ length: lanes }, () => runLane(lanes, queue)));

  const other = process.env.TEST_DATABASE_URL;
  const again = batchesOf(
    files.filter(({ needsDatabase }) => needsDatabase),
    1,
  ).map(jobOf);
  if (other !== undefined && again.length > 0) {
    process.stdout.write('\nThe same on TEST_DATABASE_URL\n');
    // One lane only: it is unknown how many connections that server has to spare.
    const database = await prepareDatabase(other, { lastsNoLonger: false });
    try {
      await runJobs(again, async () => database.variables);
    } finally {
      await database.drop();
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (!isDeep) keepSeconds(ROOT, measuredSeconds, listTestFiles(ROOT));
if (flags.includes('--record')) listSeconds(ROOT, listTestFiles(ROOT));
for (const name of failed) process.stdout.write(`\n✖ ${name}`);
process.stdout.write(`\n${Math.round((performance.now() - startedAtMs) / 1_000)} s\n`);
process.stdout.write(`\n${passed} passed, ${failed.length} failed\n`);
process.exitCode = failed.length === 0 && passed > 0 ? 0 : 1;

function jobOf(batch: readonly TestFile[]): Job {
  return {
    needsDatabase: batch.some(({ needsDatabase }) => needsDatabase),
    needsServer: batch.some(({ needsServer }) => needsServer),
    async run(environment) {
      tallies += 1;
      const options = { cwd: ROOT, environment, timeoutMs, signal: stop.signal };
      const tally = join(folder, `${tallies}.tally`);
      const paths = batch.map(({ path }) => join(ROOT, path));
      const all =
        paths.length === 1 && paths[0] !== undefined
          ? [await runTestFile(paths[0], tally, options)]
          : await runTestBatch(paths, tally, options);
      return batch.flatMap(({ path }, at): [string, Ran][] => {
        const ran = all[at];
        if (ran === undefined) return [];
        // One that failed may have ended early, or waited for what never came.
        if (ran.failed.length === 0) measuredSeconds.set(path, Math.round(ran.durationMs / 100) / 10);
        return [[path, ran]];
      });
    },
  };
}

type Variables = Readonly<Record<string, string>>;

/** Runs one lane of several, whose PostgreSQL takes ten seconds to come up and is therefore started by the first job that needs it. */
async function runLane(lanes: number, queue: Job[]): Promise<void> {
  let own: Promise<OwnDatabase> | undefined;
  try {
    await runJobs(queue, async ({ needsDatabase }) => {
      if (!needsDatabase) return {};
      own ??= startDatabase(lanes);
      return (await own).variables;
    });
  } finally {
    await (await own)?.stop();
  }
}

interface OwnDatabase {
  variables: Variables;
  stop(): Promise<void>;
}

async function startDatabase(lanes: number): Promise<OwnDatabase> {
  const { startEmbeddedPostgres } = await import('../packages/process/src/embedded-postgres.ts');
  const directory = makeDatabaseFolder(lanes);
  const remove = () => rmSync(directory, { recursive: true, force: true });
  try {
    const embedded = await startEmbeddedPostgres(directory, CONNECTIONS_OF_A_LANE, SETTINGS_OF_A_LANE);
    const stop = () => embedded.stop().finally(remove);
    try {
      const { variables, drop } = await prepareDatabase(embedded.url, { lastsNoLonger: true });
      return { variables, stop: () => drop().finally(stop) };
    } catch (error) {
      await stop();
      throw error;
    }
  } catch (error) {
    remove();
    throw error;
  }
}

/** Makes the database that those of the tests are copied from. */
async function prepareDatabase(
  url: string,
  options: { lastsNoLonger: boolean },
): Promise<{ variables: Variables; drop(): Promise<void> }> {
  const { makeTemplate } = await import('../apps/shop/test/database.fixture.ts');
  const template = await makeTemplate(url, options);
  return {
    variables: { TEST_DATABASE_URL: url, TEST_DATABASE_TEMPLATE: template.name },
    drop: template.drop,
  };
}

/** Runs what waits, one after another, until nothing does. */
async function runJobs(queue: Job[], variablesFor: (job: Job) => Promise<Variables>): Promise<void> {
  for (let job = queue.shift(); job !== undefined && !stop.signal.aborted; job = queue.shift()) {
    const own = {
      ...process.env,
      // Every process loads the same thousand modules, so they are found and compiled once for all of them.
      NODE_COMPILE_CACHE: join(folder, 'compiled'),
      TEST_IMPORTS: join(folder, 'imports.json'),
      ...(isDeep ? { TEST_DEEP: '1' } : {}),
    };
    const database = await variablesFor(job);
    const server = job.needsServer ? await serverFor(own) : {};
    if (stop.signal.aborted) return;
    const environment = { ...own, ...database, ...server };
    for (const [name, ran] of await job.run(environment)) tell(name, ran);
  }
}

/** The variables that name the bundled server, which the first job that needs it has made. */
function serverFor(environment: NodeJS.ProcessEnv): Promise<Variables> {
  server ??= bundleServer(join(folder, 'server'), { cwd: ROOT, environment, timeoutMs, signal: stop.signal });
  return server;
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
