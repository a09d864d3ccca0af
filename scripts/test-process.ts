/** Runs a test file in its own process, which ends within a bound and takes along whatever it started. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Told } from './test-tally.ts';

/** More than any sane test file writes. */
const OUTPUT_LIMIT_CHARACTERS = 2_000_000;
/** The reporter's summary at the end of each file; `npm test` prints one summary for all. */
const SUMMARY = /^ℹ (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+\n/gm;

/** The suite that has the tests of a file which shares its process. */
export const ALL_TESTS = 'its tests';

export interface Ran {
  /** How many tests passed. */
  passed: number;
  /** The names of failed tests; failures that belong to no test, in words. */
  failed: string[];
  /** The text of what was thrown, for each test in `failed` that threw. */
  reasons: ReadonlyMap<string, string>;
  /** The output of the process. */
  output: string;
  durationMs: number;
}

export interface RunOptions {
  cwd: string;
  environment: Readonly<Record<string, string | undefined>>;
  /** The time after which the file is ended by force and counted as failed. */
  timeoutMs: number;
  /** Ends the file early. */
  signal: AbortSignal;
}

/**
 * Runs one test file.
 *
 * @param file absolute path
 * @param tallyFile a file for the results, used by no other test file
 */
export async function runTestFile(file: string, tallyFile: string, options: RunOptions): Promise<Ran> {
  const told = await runTests([file], tallyFile, options);
  const tests = readTally(tallyFile);
  const failed = tests.filter(({ passed }) => !passed).map(({ name }) => relativeName(name, options.cwd));
  if (told.timedOut || (told.end !== 0 && failed.length === 0)) failed.push(endOf(told, options));
  else if (tests.length === 0) failed.push('has no test');
  return {
    passed: tests.filter(({ passed }) => passed).length,
    failed,
    reasons: reasonsOf(tests, options.cwd),
    output: told.output.replaceAll(SUMMARY, ''),
    durationMs: told.durationMs,
  };
}

/**
 * Runs several test files in one process, which loads once what they all import.
 *
 * @param files absolute paths
 * @param tallyFile a file for the results, used by no other test file
 * @returns what each of them did, in their order; the output of all stands at the last
 */
export async function runTestBatch(
  files: readonly string[],
  tallyFile: string,
  options: RunOptions,
): Promise<Ran[]> {
  const told = await runTests([join(import.meta.dirname, 'test-batch.ts'), ...files], tallyFile, options);
  const all = readTally(tallyFile);
  const ran = files.map((file): Ran => {
    const at = all.findIndex(({ name, nesting }) => nesting === 0 && name === file);
    const whole = all[at];
    // One that did not come to its end was the last that ran.
    const tests = whole === undefined ? all.splice(0) : all.splice(0, at + 1).slice(0, -1);
    const outside = relativeName(file, options.cwd);
    const failed = tests
      .filter(({ passed }) => !passed)
      .map(({ name, nesting }) => (nesting === 1 && name === ALL_TESTS ? outside : name));
    if (whole === undefined) failed.push(endOf(told, options));
    else if (!whole.passed && !whole.failedWithin) failed.push(outside);
    else if (tests.length === 0) failed.push('has no test');
    return {
      passed: tests.filter(({ passed }) => passed).length,
      failed,
      reasons: reasonsOf([...tests, ...(whole === undefined ? [] : [whole])], options.cwd),
      output: '',
      durationMs: whole?.durationMs ?? 0,
    };
  });
  const last = ran.at(-1);
  if (last === undefined) return ran;
  if (told.end !== 0 && ran.every(({ failed }) => failed.length === 0))
    last.failed.push(endOf(told, options));
  last.output = told.output.replaceAll(SUMMARY, '');
  return ran;
}

function runTests(args: readonly string[], tallyFile: string, options: RunOptions): Promise<Ended> {
  return runProcess(
    [
      '--disable-warning=ExperimentalWarning',
      ...['--import', join(import.meta.dirname, 'test-context.ts')],
      ...['--import', join(import.meta.dirname, 'test-imports.ts')],
      // A replica that a test lets die keeps its sockets, so the process is ended when the tests of its file are done.
      '--test-force-exit',
      ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
      ...[`--test-reporter=${join(import.meta.dirname, 'test-tally.ts')}`],
      ...[`--test-reporter-destination=${tallyFile}`],
      ...args,
    ],
    options,
  );
}

function endOf(told: Ended, { timeoutMs }: RunOptions): string {
  return told.timedOut ? `did not end within ${timeoutMs / 1_000} s` : `ended with ${told.end}`;
}

function reasonsOf(tests: readonly Told[], cwd: string): ReadonlyMap<string, string> {
  return new Map(
    tests.flatMap(({ name, why }) => (why === undefined ? [] : [[relativeName(name, cwd), why]])),
  );
}

/** Runs a program of ours that is not a test, such as the static checks, as one result that passes or fails. */
export async function runProgram(
  program: string,
  options: RunOptions,
  args: readonly string[] = [],
): Promise<Ran> {
  const told = await runProcess(['--disable-warning=ExperimentalWarning', program, ...args], options);
  const passed = !told.timedOut && told.end === 0;
  return {
    ...told,
    passed: passed ? 1 : 0,
    failed: passed ? [] : [`ended with ${told.end}`],
    reasons: new Map(),
  };
}

interface Ended {
  /** The exit code, or the signal that ended it. */
  end: number | string | null;
  timedOut: boolean;
  output: string;
  durationMs: number;
}

function runProcess(args: readonly string[], options: RunOptions): Promise<Ended> {
  const startedAtMs = performance.now();
  return new Promise((resolve, reject) => {
    // Its own process group: a file that hangs is ended together with the servers and nodes that it started.
    const child = spawn(process.execPath, args, {
      cwd: options.cwd,
      env: options.environment,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let timedOut = false;
    const endGroup = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // The group has already ended.
      }
    };
    const timer = setTimeout(() => {
      timedOut = true;
      endGroup();
    }, options.timeoutMs);
    options.signal.addEventListener('abort', endGroup);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text: string) => {
        if (output.length < OUTPUT_LIMIT_CHARACTERS) output += text;
      });
    }
    const over = () => {
      clearTimeout(timer);
      options.signal.removeEventListener('abort', endGroup);
    };
    child.on('error', (error) => {
      over();
      reject(error);
    });
    child.on('exit', (code, signal) => {
      over();
      // Anything left running would use the lane's processor and keep the pipes open.
      endGroup();
      child.stdout.destroy();
      child.stderr.destroy();
      resolve({ end: code ?? signal, timedOut, output, durationMs: performance.now() - startedAtMs });
    });
  });
}

function readTally(file: string): Told[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line): Told => JSON.parse(line));
}

function relativeName(name: string, cwd: string): string {
  return name.startsWith(cwd) ? `outside of the tests of ${relative(cwd, name)}` : name;
}
