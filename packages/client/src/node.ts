/** A store in a folder, for programs of Node, Bun and Deno. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Store } from './store.ts';

const LOCK_WAIT_MS = 30_000;
const LOCK_PAUSE_MS = 5;
/** Work with the store takes some milliseconds: a lock that is so old belongs to a process that has died. */
const LOCK_DEAD_MS = 20_000;

/**
 * A store that survives a crash, and that several processes may share. Payments stand in its files: they are for their owner alone.
 *
 * @param folder made if it is not there
 */
export function fileStore(folder: string): Store {
  const pathOf = (name: string) => {
    if (!/^[\w-]{1,120}$/.test(name))
      throw new Error('the name of a stored text has letters, digits and dashes');
    return join(folder, `${name}.json`);
  };
  const ready = () => mkdir(folder, { recursive: true, mode: 0o700 });
  return {
    get: (name) =>
      readFile(pathOf(name), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return null;
        throw error;
      }),
    async set(name, value) {
      await ready();
      const path = pathOf(name);
      const fresh = `${path}.${randomUUID()}.new`;
      const file = await open(fresh, 'wx', 0o600);
      try {
        await file.writeFile(value);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(fresh, path);
      await syncFolder(folder);
    },
    delete: (name) => rm(pathOf(name), { force: true }),
    async exclusively(work) {
      await ready();
      const lock = join(folder, 'lock');
      await take(lock);
      try {
        return await work();
      } finally {
        await rm(lock, { force: true });
      }
    },
  };
}

/** So that a new name is still there after the machine lost its power; not every system can. */
async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r');
    await handle.sync().finally(() => handle.close());
  } catch {
    // Windows opens no folders.
  }
}

async function take(lock: string): Promise<void> {
  const giveUpAtMs = Date.now() + LOCK_WAIT_MS;
  for (;;) {
    try {
      await (await open(lock, 'wx', 0o600)).close();
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const takenMs = (await stat(lock).catch(() => null))?.mtimeMs;
    if (takenMs !== undefined && takenMs < Date.now() - LOCK_DEAD_MS) await rm(lock, { force: true });
    else if (Date.now() > giveUpAtMs) throw new Error('the store is used by another process for too long');
    else await new Promise((resolve) => setTimeout(resolve, LOCK_PAUSE_MS));
  }
}
