/** Everything that a run has started and must end in any case: processes, databases, folders. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Resources {
  /** Registers how to end something. Each is ended once, in reverse order. */
  defer(end: () => unknown): void;
  /** A new empty folder, deleted afterwards. */
  folder(): string;
  release(): Promise<void>;
}

export function createResources(): Resources {
  const ends: (() => unknown)[] = [];
  let released: Promise<void> | undefined;

  async function releaseAll(): Promise<void> {
    for (let end = ends.pop(); end !== undefined; end = ends.pop()) {
      try {
        await end();
      } catch (error) {
        process.stderr.write(`bench: cleaning up: ${error instanceof Error ? error.message : error}\n`);
      }
    }
  }

  return {
    defer: (end) => void ends.push(end),
    folder() {
      const folder = mkdtempSync(join(tmpdir(), 'farebox-bench-'));
      ends.push(() => rmSync(folder, { recursive: true, force: true }));
      return folder;
    },
    release() {
      released ??= releaseAll();
      return released;
    },
  };
}
