/** Where the source of the server stands: a package each, and the shop that puts them together. */
import { globSync } from 'node:fs';
import { join, sep } from 'node:path';

export const SOURCES = [
  'packages/core/src',
  'packages/catalogue/src',
  'packages/yield/src',
  'packages/proxy/src',
  'apps/shop/src',
] as const;

/**
 * The files of the server that fit a pattern.
 *
 * @param root of the repository
 * @param pattern below a folder of source
 * @returns paths from the root, with their place below the source folder
 */
export function serverFiles(root: string, pattern: string): { path: string; inSource: string }[] {
  return SOURCES.flatMap((folder) =>
    globSync(pattern, { cwd: join(root, folder) }).map((file) => {
      const inSource = file.replaceAll(sep, '/');
      return { path: `${folder}/${inSource}`, inSource };
    }),
  ).sort((a, b) => (a.path < b.path ? -1 : 1));
}
