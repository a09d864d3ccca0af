/**
 * Runs several test files in one process, one after another, so that what they all import is loaded once. Each file is
 * a test whose name is the file's path: its hooks are those of this test, and its tests are within it.
 */
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

for (const file of process.argv.slice(2))
  test(file, async () => {
    await import(pathToFileURL(file).href);
  });
