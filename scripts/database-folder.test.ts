import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { makeDatabaseFolder, type Places } from './database-folder.ts';

const GIB = 1024 ** 3;
const HOUR_MS = 3_600_000;
let root: string;
let places: Places;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'farebox-database-folder-'));
  places = {
    inMemory: join(root, 'memory'),
    onDisk: join(root, 'disk'),
    nowMs: Date.now,
    availableBytes: () => 64 * GIB,
  };
  for (const folder of [places.inMemory, places.onDisk]) mkdirSync(folder);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

test('a database is in memory where there is room for it, and each in a folder of its own', () => {
  const folders = [makeDatabaseFolder(2, places), makeDatabaseFolder(2, places)];
  for (const folder of folders) assert.equal(dirname(folder), places.inMemory);
  assert.notEqual(folders[0], folders[1]);
});

test('it is on the disk where memory is short, or the system has no such folder', () => {
  assert.equal(dirname(makeDatabaseFolder(2, { ...places, availableBytes: () => 7 * GIB })), places.onDisk);
  assert.equal(dirname(makeDatabaseFolder(1, { ...places, availableBytes: () => 7 * GIB })), places.inMemory);
  // More than any disk has free: the folder in memory is what may be too small.
  assert.equal(
    dirname(makeDatabaseFolder(2 ** 40, { ...places, availableBytes: () => Number.MAX_VALUE })),
    places.onDisk,
  );
  rmSync(places.inMemory, { recursive: true });
  assert.equal(dirname(makeDatabaseFolder(2, places)), places.onDisk);
});

test('what a process left hours ago, ended by force, is removed; what others use or have there stays', () => {
  const { pid } = spawnSync(process.execPath, ['--version']);
  const left = join(places.inMemory, `farebox-database-${pid}-abc123`);
  const used = join(places.inMemory, `farebox-database-${process.ppid}-abc123`);
  const another = join(places.inMemory, `another-${pid}-abc123`);
  for (const folder of [left, used, another]) mkdirSync(folder);
  makeDatabaseFolder(1, places);
  assert.deepEqual([left, used, another].map(existsSync), [true, true, true]);
  makeDatabaseFolder(1, { ...places, nowMs: () => Date.now() + 7 * HOUR_MS });
  assert.deepEqual([left, used, another].map(existsSync), [false, true, true]);
});
