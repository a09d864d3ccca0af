/** Where a buyer keeps its purchases: a store of texts by name, which may be the caller's own. */
import type { Awaitable } from './payer.ts';

/**
 * A store of the caller's. What it has taken must still be there after a crash, or a purchase that was under way then may be made
 * twice. A file, a row of a database or a key of Redis will do.
 */
export interface Store {
  get(name: string): Awaitable<string | null | undefined>;
  set(name: string, value: string): Awaitable<unknown>;
  delete(name: string): Awaitable<unknown>;
  /**
   * Runs work while no other process runs work with this store. A store that several processes share at once needs it: two of them
   * would buy the same, and count their limits apart.
   */
  exclusively?<T>(work: () => Promise<T>): Promise<T>;
}

/** A store that is forgotten with the process: what was under way then may be bought again. */
export function memoryStore(): Store {
  const values = new Map<string, string>();
  return {
    get: (name) => values.get(name),
    set: (name, value) => values.set(name, value),
    delete: (name) => values.delete(name),
  };
}
