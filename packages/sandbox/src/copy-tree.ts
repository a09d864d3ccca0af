import { chmodSync, chownSync, copyFileSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Copies a file or a folder with its permissions and, as root, its owners: PostgreSQL opens no folder that others may
 * read, and may run as another user. Anything that is neither a file nor a folder is left out.
 *
 * @param wanted decides by name; a folder that is not wanted is left out with its contents
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
