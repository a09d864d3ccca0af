/** A store in a folder, for programs of Node, Bun and Deno. */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { holding } from './folder-lock.ts';
import type { Store } from './store.ts';

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
      try {
        await writeSafely(fresh, value);
        await rename(fresh, path);
      } catch (error) {
        // A full disk is not made fuller.
        await rm(fresh, { force: true });
        throw error;
      }
      await syncFolder(folder);
    },
    delete: (name) => rm(pathOf(name), { force: true }),
    exclusively: (work) => holding(folder, work),
  };
}

async function writeSafely(path: string, value: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(value);
    await file.sync();
  } finally {
    await file.close();
  }
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
