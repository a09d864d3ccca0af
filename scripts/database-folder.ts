/**
 * The folder for a database of the tests: in memory where the system has room there. A test makes a thousand files with
 * each of its databases and removes them, for which ext4 takes longer the more files were removed in the last minutes.
 */
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '../packages/process/src/is-alive.mjs';

/** More than the databases of a lane take at any time, with what they log. */
const ROOM_BYTES = 2 * 1024 ** 3;
/** Containers may share the folder and see nothing of each other's processes: what is this new may be another's. */
const LEFT_AFTER_MS = 6 * 3_600_000;
const NAME = /^farebox-database-(\d+)-/;

export interface Places {
  /** A folder whose files are in memory; it may be absent. */
  inMemory: string;
  onDisk: string;
  nowMs(): number;
  /** How much memory this process may still take. */
  availableBytes(): number;
}

const OF_THIS_MACHINE: Places = {
  inMemory: '/dev/shm',
  onDisk: tmpdir(),
  nowMs: Date.now,
  availableBytes: () => process.availableMemory(),
};

/**
 * Makes a new folder, for whoever calls to remove. Folders in memory that processes left hours ago, which could not do so
 * any more, are removed: they would take memory until the machine is started anew.
 *
 * @param folders how many the caller makes in all
 */
export function makeDatabaseFolder(folders: number, places = OF_THIS_MACHINE): string {
  removeLeft(places);
  const parent = hasRoom(places, folders) ? places.inMemory : places.onDisk;
  return mkdtempSync(join(parent, `farebox-database-${process.pid}-`));
}

/** Whether the databases fit twice: what else runs needs memory too. */
function hasRoom({ inMemory, availableBytes }: Places, folders: number): boolean {
  try {
    const { bavail, bsize } = statfsSync(inMemory);
    return Math.min(bavail * bsize, availableBytes() / 2) >= folders * ROOM_BYTES;
  } catch {
    return false;
  }
}

function removeLeft({ inMemory, nowMs }: Places): void {
  try {
    for (const name of readdirSync(inMemory)) {
      const pid = NAME.exec(name)?.[1];
      const folder = join(inMemory, name);
      if (pid === undefined || isAlive(Number(pid)) || nowMs() - statSync(folder).mtimeMs < LEFT_AFTER_MS)
        continue;
      rmSync(folder, { recursive: true, force: true });
    }
  } catch {
    // There is no such folder, or one belongs to somebody else.
  }
}
