/** For tests: packed packages in a project of their own, without a registry. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../..');

/**
 * Unpacks an archive, and links what its manifest names from what is installed here: what it does not name is not found.
 *
 * @param workspace its folder in this repository
 * @param modules the project's folder of modules
 */
export function unpack(archive: string, workspace: string, modules: string): void {
  const { name }: { name: string } = JSON.parse(readFileSync(join(ROOT, workspace, 'package.json'), 'utf8'));
  const home = join(modules, name);
  mkdirSync(home, { recursive: true });
  const done = spawnSync('tar', ['-xzf', archive, '--strip-components=1', '-C', home], { encoding: 'utf8' });
  assert.equal(done.status, 0, done.stderr);
  const { dependencies = {}, optionalDependencies = {} }: Manifest = JSON.parse(
    readFileSync(join(home, 'package.json'), 'utf8'),
  );
  for (const each of Object.keys({ ...dependencies, ...optionalDependencies })) {
    if (each.startsWith('@farebox/') || each === 'farebox') continue;
    const nested = join(ROOT, workspace, 'node_modules', each);
    const target = existsSync(nested) ? nested : join(ROOT, 'node_modules', each);
    if (existsSync(target)) link(target, join(home, 'node_modules', each));
  }
}

interface Manifest {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

/** A link to a folder, with the folders above it. */
export function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path, 'junction');
}
