/**
 * `npm run changeset`: writes down what a change means for who uses a package; with `-- version`, takes what was written down into the
 * changelogs and versions. The program is @changesets/cli, the usual one where a repository holds several packages; it is installed
 * below `tools/changesets/` on first use.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { installApart } from '../apps/shop/test/kept-apart.fixture.ts';

const ROOT = join(import.meta.dirname, '..');

const modules = installApart(join(ROOT, 'tools/changesets'), 'what writes changesets');
if (modules === null) throw new Error('the package registry cannot be reached to install @changesets/cli');
const { status } = spawnSync(
  process.execPath,
  [join(modules, '@changesets/cli/bin.js'), ...process.argv.slice(2)],
  { cwd: ROOT, stdio: 'inherit' },
);
process.exitCode = status ?? 1;
