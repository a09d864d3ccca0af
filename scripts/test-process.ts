/** A test file in a process of its own, which ends within a bound and takes what it started along. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Told } from './test-tally.ts';

/** More than any file writes that is not out of its mind. */
const OUTPUT_LIMIT_CHARACTERS = 2_000_000;
/** What the reporter says at the end of each file; `npm test` says it once for all. */
const SUMMARY = /^ℹ (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+\n/gm;

export interface Ran {
  /** How many tests passed. */
  passed: number;
  /** What failed, by name; what no test can be blamed for, in words. */
  failed: string[];
  /** What was thrown, for each test of `failed` that threw. */
  reasons: ReadonlyMap<string, string>;
  /** What the process wrote. */
  output: string;
  durationMs: number;
}

export interface RunOptions {
  cwd: string;
  environment: Readonly<Record<string, string | undefined>>;
  /** When the file is ended by force, and counted as failed. */
  timeoutMs: number;
  /** Ends it early. */
  signal: AbortSignal;
}

/**
 * Runs one test file.
 *
 * @param file absolute
 * @param tallyFile a name that no other file's tests are told under
 */
export async function runTestFile(file: string, tallyFile: string, options: RunOptions): Promise<Ran> {
  const told = await runProcess(
    [
      '--disable-warning=ExperimentalWarning',
      // A replica that a test let die holds on to its sockets: when the tests of a file are done, so is its process.
      '--test-force-exit',
      ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
      ...[`--test-reporter=${join(import.meta.dirname, 'test-tally.ts')}`],
      ...[`--test-reporter-destination=${tallyFile}`],
      file,
    ],
    options,
  );
  const tests = existsSync(tallyFile) ? readTally(readFileSync(tallyFile, 'utf8')) : [];
  const failed = tests.filter(({ passed }) => !passed).map(({ name }) => relativeName(name, options.cwd));
  if (told.timedOut) failed.push(`did not end within ${options.timeoutMs / 1_000} s`);
  else if (told.end !== 0 && failed.length === 0) failed.push(`ended with ${told.end}`);
  else if (tests.length === 0) failed.push('has no test');
  return {
    passed: tests.filter(({ passed }) => passed).length,
    failed,
    reasons: new Map(
      tests.flatMap(({ name, why }) => (why === undefined ? [] : [[relativeName(name, options.cwd), why]])),
    ),
    output: told.output.replaceAll(SUMMARY, ''),
    durationMs: told.durationMs,
  };
}

/** Runs a program of ours that is no test, such as the static checks, as one that passes or fails. */
export async function runProgram(program: string, options: RunOptions): Promise<Ran> {
  const told = await runProcess(['--disable-warning=ExperimentalWarning', program], options);
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
    // A group of its own: a file that hangs is ended together with the servers and nodes that it started.
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
        // It has ended by itself.
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
      // Whatever it left running holds a lane's processor, and its end of the pipes.
      endGroup();
      child.stdout.destroy();
      child.stderr.destroy();
      resolve({ end: code ?? signal, timedOut, output, durationMs: performance.now() - startedAtMs });
    });
  });
}

function readTally(text: string): Told[] {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line): Told => JSON.parse(line));
}

function relativeName(name: string, cwd: string): string {
  return name.startsWith(cwd) ? `outside of the tests of ${relative(cwd, name)}` : name;
}
