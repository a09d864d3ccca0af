/**
 * Runs several test files in one process, one after another, so that what they all import is loaded once. Each file is
 * a test whose name is the file's path: its hooks are its own, and its tests are within it.
 */
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { ALL_TESTS } from './test-process.ts';

for (const file of process.argv.slice(2))
  test(file, async () => {
    // Its tests begin once all of the file has been read, as those of a file that runs alone.
    await describe(ALL_TESTS, async () => {
      await import(pathToFileURL(file).href);
    });
  });
