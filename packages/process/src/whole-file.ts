/** Small files that are there whole or not at all: whoever is killed while writing one leaves nothing half-written under its name. */
import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';

/** Writes a file that only its owner reads, in place of the one that is there. */
export function replaceFile(file: string, text: string): void {
  renameSync(written(file, text), file);
}

/**
 * Writes a file that only its owner reads, unless it is there. Of several processes that do this at once the first one's
 * stands, whatever the others have written. An empty file is not there: an earlier version that was killed has left it.
 */
export function writeFileOnce(file: string, text: () => string): void {
  if (isWritten(file)) return;
  const own = written(file, text());
  try {
    // Only one that was there and empty: else the one that another process has just written would go.
    if (sizeOf(file) === 0) rmSync(file, { force: true });
    linkSync(own, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(own, { force: true });
  }
}

/** Whether there is a file with something in it. */
export function isWritten(file: string): boolean {
  return (sizeOf(file) ?? 0) > 0;
}

function sizeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size;
}

/** @returns a file of this process that is safe on disk */
function written(file: string, text: string): string {
  const own = `${file}.${process.pid}`;
  // Left by a process of the same id that was killed; its permissions may be others.
  rmSync(own, { force: true });
  const descriptor = openSync(own, 'wx', 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  return own;
}
