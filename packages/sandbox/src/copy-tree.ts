import { chmodSync, chownSync, copyFileSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Copies a file or a folder with its rights and, as root, its owners: PostgreSQL opens no folder that others may read, and
 * may run as somebody else than we. What is neither is left out.
 *
 * @param wanted by name; a folder that is not wanted is left out with all that it holds
 */
export function copyTree(from: string, to: string, wanted: (name: string) => boolean = () => true): void {
  const entry = lstatSync(from);
  if (entry.isDirectory()) {
    mkdirSync(to, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(from))
      if (wanted(name)) copyTree(join(from, name), join(to, name), wanted);
  } else if (entry.isFile()) copyFileSync(from, to);
  else return;
  chmodSync(to, entry.mode & 0o7777);
  if (process.getuid?.() === 0) chownSync(to, entry.uid, entry.gid);
}
