/** For tests: published programs whose dependencies clash with ours, installed in a folder of their own. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const INSTALL_TIMEOUT_MS = 240_000;
/** What npm says when it cannot speak with the registry at all. */
const UNREACHABLE =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT)\b/;

/**
 * Installs what a folder's own `package-lock.json` names, unless that is there already.
 *
 * @returns the folder of the modules; null when the registry cannot be reached
 * @throws when the installation fails for any other reason
 */
export function installApart(folder: string, what: string): string | null {
  const modules = join(folder, 'node_modules');
  // Which lock file the installation was made from, so that half of one or an old one does not count.
  const stamp = join(modules, '.installed-from');
  const lock = createHash('sha256')
    .update(readFileSync(join(folder, 'package-lock.json')))
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return modules;
  if (!install(folder, what)) return null;
  writeFileSync(stamp, lock);
  return modules;
}

/** @returns whether the registry could be reached */
function install(folder: string, what: string): boolean {
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const args = ['install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  const run = spawnSync(npm, [...args, '--fetch-retries=1', '--fetch-timeout=30000'], {
    cwd: folder,
    encoding: 'utf8',
    timeout: INSTALL_TIMEOUT_MS,
    shell: process.platform === 'win32',
  });
  if (run.status === 0) return true;
  if (UNREACHABLE.test(run.stderr)) return false;
  throw new Error(`${what} cannot be installed: ${run.error?.message ?? run.stderr}`);
}
