/**
 * How many seconds each test file takes: as it was in the last run on this machine, kept below `node_modules`, and as a
 * list of the longest that is checked in for machines that have not run them yet.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** By path from the root. */
export type Seconds = ReadonlyMap<string, number>;

/** A file that takes at least this long is on the checked-in list, and `--quick` leaves it out. */
export const LONG_FROM_SECONDS = 20;

const KEPT = 'node_modules/.cache/test-seconds.json';
const LISTED = 'scripts/test-seconds.json';

/** Reads what this machine measured. Empty when it has measured nothing, or when that cannot be read. */
export function keptSeconds(root: string): Seconds {
  return read(join(root, KEPT));
}

/** Reads the checked-in list of the longest. */
export function listedSeconds(root: string): Seconds {
  return read(join(root, LISTED));
}

/**
 * Keeps what a run measured beside what is known of the files that it left out, for as long as these exist.
 *
 * @param exists every test file
 */
export function keepSeconds(root: string, measured: Seconds, exists: readonly string[]): void {
  const known = new Map([...keptSeconds(root), ...measured]);
  try {
    write(join(root, KEPT), (path) => known.get(path), exists);
  } catch {
    // Only the order of the next run depends on it.
  }
}

/** Writes the checked-in list anew from what this machine measured. A file that it has not run stays as it is listed. */
export function listSeconds(root: string, exists: readonly string[]): void {
  const known = new Map([...listedSeconds(root), ...keptSeconds(root)]);
  const long = (path: string) => {
    const seconds = Math.round(known.get(path) ?? 0);
    return seconds < LONG_FROM_SECONDS ? undefined : seconds;
  };
  write(join(root, LISTED), long, exists);
}

function read(file: string): Seconds {
  try {
    const content: unknown = JSON.parse(readFileSync(file, 'utf8'));
    const entries: [string, unknown][] = Object.entries(content ?? {});
    return new Map(entries.flatMap(([path, seconds]) => (isDuration(seconds) ? [[path, seconds]] : [])));
  } catch {
    return new Map();
  }
}

function isDuration(value: unknown): value is number {
  return typeof value === 'number' && value >= 0;
}

/** Replaces the file as a whole, so that of two runs that end at once each leaves a file that can be read. */
function write(
  file: string,
  secondsOf: (path: string) => number | undefined,
  exists: readonly string[],
): void {
  const entries = exists.flatMap((path): [string, number][] => {
    const seconds = secondsOf(path);
    return seconds === undefined ? [] : [[path, seconds]];
  });
  entries.sort(([a, of], [b, than]) => than - of || (a < b ? -1 : 1));
  mkdirSync(dirname(file), { recursive: true });
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`);
  renameSync(unfinished, file);
}
