/**
 * `npm run mutate`: plants bugs in the code that moves money and keeps callers apart, one at a time, and counts how many of
 * them the near tests find. Each file is put back as it was, also when the command is stopped; one that was killed puts it
 * back at its next start. `--only <part of path>` plants the bugs of these files alone, `--from <number>` begins there.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { makeTemplate } from '../apps/shop/test/database.fixture.ts';
import { startEmbeddedPostgres } from '../packages/process/src/embedded-postgres.ts';
import { makeDatabaseFolder } from './database-folder.ts';
import { type Mutant, planted } from './mutant.ts';
import { MUTANTS } from './mutants.ts';
import { findTestFiles } from './test-files.ts';
import { runTestFile } from './test-process.ts';

const ROOT = join(import.meta.dirname, '..');
/** The original of the file that holds a bug at the moment. */
const ORIGINAL = join(ROOT, 'node_modules/.cache/mutated.json');
/** How long a test file may take without any bug. */
const FILE_TIMEOUT_MS = 600_000;
/** With a bug, a file that takes so much longer does not end any more: the bug is found. */
const LONGER = { times: 4, byMs: 10_000 };
const CONNECTIONS = 400;

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort());
const say = (line: string) => void process.stdout.write(`${line}\n`);

type Environment = Readonly<Record<string, string | undefined>>;
type Result = 'killed' | 'survived';

/** Puts back what a run left planted that could not do it itself. */
function putBack(): void {
  if (!existsSync(ORIGINAL)) return;
  const { file, was, is }: Record<'file' | 'was' | 'is', string> = JSON.parse(readFileSync(ORIGINAL, 'utf8'));
  const path = join(ROOT, file);
  // Somebody who has changed the file meanwhile has seen the bug.
  if (readFileSync(path, 'utf8') === is) writeFileSync(path, was);
  rmSync(ORIGINAL);
}

/** Runs tests near to bugs. */
class NearTests {
  readonly #tally: string;
  readonly #environment: Environment;
  /** How long each test file took without any bug. */
  readonly #tookMs = new Map<string, number>();

  constructor(folder: string, environment: Environment) {
    this.#tally = join(folder, 'tests.tally');
    this.#environment = environment;
  }

  /**
   * @param file where the bug is: with one in a function of the database each test makes its database itself, because the one that others
   *   are copied from has the function without it
   * @returns whether all these test files pass; it ends at the first that does not
   */
  async pass(tests: readonly string[], file: string): Promise<boolean> {
    for (const test of tests) {
      const isSql = file.endsWith('.sql');
      const environment = isSql
        ? { ...this.#environment, TEST_DATABASE_TEMPLATE: undefined }
        : this.#environment;
      const name = `${isSql} ${test}`;
      const tookMs = this.#tookMs.get(name);
      const timeoutMs = tookMs === undefined ? FILE_TIMEOUT_MS : tookMs * LONGER.times + LONGER.byMs;
      const options = { cwd: ROOT, environment, timeoutMs, signal: stop.signal };
      rmSync(this.#tally, { force: true });
      const { failed, durationMs } = await runTestFile(join(ROOT, test), this.#tally, options);
      if (failed.length > 0) return false;
      if (tookMs === undefined) this.#tookMs.set(name, durationMs);
    }
    return true;
  }
}

async function plant(mutant: Mutant, near: NearTests): Promise<Result> {
  return runWith(mutant, near, (was) => planted(was, mutant));
}

/** Runs the near tests of a file while it has another text. */
async function runWith(
  mutant: Pick<Mutant, 'file' | 'tests'>,
  near: NearTests,
  change: (was: string) => string,
): Promise<Result> {
  const path = join(ROOT, mutant.file);
  const was = readFileSync(path, 'utf8');
  const is = change(was);
  mkdirSync(dirname(ORIGINAL), { recursive: true });
  writeFileSync(ORIGINAL, JSON.stringify({ file: mutant.file, was, is }));
  try {
    writeFileSync(path, is);
    return (await near.pass(mutant.tests, mutant.file)) ? 'survived' : 'killed';
  } finally {
    putBack();
  }
}

function report(killed: readonly Mutant[], survived: readonly Mutant[]): void {
  const tried = killed.length + survived.length;
  const accepted = survived.filter((mutant) => mutant.accepted !== undefined).length;
  say(`\n${killed.length} of ${tried} killed, ${survived.length} survived, ${accepted} of these accepted`);
  for (const { file, find, replace, accepted: why } of survived) {
    say(`\n${file}\n- ${find}\n+ ${replace}\n  ${why ?? 'No near test finds it.'}`);
  }
  for (const { file, find } of killed.filter((mutant) => mutant.accepted !== undefined))
    say(`\n${file}: accepted, and found after all: ${find}`);
}

/** @returns the exit code: 1 when a bug survived that is not accepted, or the tests fail without one */
async function mutate(mutants: readonly Mutant[], near: NearTests): Promise<number> {
  const tried = new Set<string>();
  for (const { file, tests } of mutants) {
    // A function of the database has another name with any other text, so a test could fail of that alone.
    const harmless = (was: string) => (file.endsWith('.sql') ? `-- As it was.\n${was}` : was);
    const fresh = tests.filter((test) => !tried.has(`${file.endsWith('.sql') ? file : ''} ${test}`));
    for (const test of fresh) {
      tried.add(`${file.endsWith('.sql') ? file : ''} ${test}`);
      if ((await runWith({ file, tests: [test] }, near, harmless)) === 'survived') continue;
      if (!stop.signal.aborted) say(`${test} fails without any bug in ${file}.`);
      return 1;
    }
  }
  const found: Record<Result, Mutant[]> = { killed: [], survived: [] };
  for (const [index, mutant] of mutants.entries()) {
    const startedMs = performance.now();
    const result = await plant(mutant, near);
    if (stop.signal.aborted) break;
    found[result].push(mutant);
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
    const [line = ''] = mutant.find.trim().split('\n');
    say(
      `${index + 1} of ${mutants.length}  ${result.toUpperCase().padEnd(8)} ${seconds} s  ${mutant.file}  ${line}`,
    );
  }
  report(found.killed, found.survived);
  return found.survived.every(({ accepted }) => accepted !== undefined) && !stop.signal.aborted ? 0 : 1;
}

function picked(args: readonly string[]): readonly Mutant[] {
  const valueAfter = (flag: string) => (args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined);
  const only = valueAfter('--only') ?? '';
  return MUTANTS.filter(({ file }) => file.includes(only)).slice(Number(valueAfter('--from') ?? 1) - 1);
}

const mutants = picked(process.argv.slice(2));
const needing = new Set(
  findTestFiles(ROOT)
    .filter(({ needsDatabase }) => needsDatabase)
    .map(({ path }) => path),
);
const folder = mkdtempSync(join(tmpdir(), 'farebox-mutants-'));
try {
  putBack();
  const environment = { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled') };
  if (mutants.length === 0) {
    say('No bug is planted in such a file.');
    process.exitCode = 2;
  } else if (!mutants.some(({ tests }) => tests.some((test) => needing.has(test)))) {
    process.exitCode = await mutate(mutants, new NearTests(folder, environment));
  } else {
    const databases = makeDatabaseFolder(1);
    const embedded = await startEmbeddedPostgres(databases, CONNECTIONS);
    try {
      const template = await makeTemplate(embedded.url, { lastsNoLonger: true });
      const database = { TEST_DATABASE_URL: embedded.url, TEST_DATABASE_TEMPLATE: template.name };
      process.exitCode = await mutate(mutants, new NearTests(folder, { ...environment, ...database }));
      await template.drop();
    } finally {
      await embedded.stop();
      rmSync(databases, { recursive: true, force: true });
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
