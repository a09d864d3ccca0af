/** Changes of published packages are written down for the people who use them. Which change lacks its file, git alone can tell: CI asks it. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const manifests = ['apps/*', 'packages/*', 'contracts']
  .flatMap((folder) => globSync(`${folder}/package.json`, { cwd: ROOT }))
  .map((path): { name: string; version: string } => JSON.parse(read(path)));

describe('changesets', () => {
  test('name packages that there are, how much changes, and what', () => {
    const known = new Set(manifests.map(({ name }) => name));
    for (const path of globSync('.changeset/*.md', { cwd: ROOT })) {
      if (path.endsWith('README.md')) continue;
      const [, head = '', words = ''] = /^---\n([\s\S]*?)^---\n([\s\S]*)$/m.exec(read(path)) ?? [];
      const lines = head.trim().split('\n');
      for (const line of lines) {
        const [, name = '', much] = /^"([^"]+)": (patch|minor|major)$/.exec(line) ?? [];
        assert.ok(much !== undefined, `${path}: ${line}`);
        assert.ok(known.has(name), `${path}: there is no package ${name}`);
      }
      assert.ok(words.trim().length > 10, `${path} says nothing`);
    }
  });

  test('go into the base that releases are made from, for all packages in one version', () => {
    const config = JSON.parse(read('.changeset/config.json'));
    assert.equal(config.baseBranch, 'main');
    assert.deepEqual(config.fixed, [['farebox', '@farebox/*']]);
    assert.equal(new Set(manifests.map(({ version }) => version)).size, 1);
  });

  test('are asked for by CI where a change is proposed', () => {
    assert.match(read('.github/workflows/ci.yml'), /npm run changeset -- status --since=origin\/main/);
  });
});

test('each published package has a changelog that begins with its version', () => {
  const python = /^version = "([^"]+)"$/m.exec(read('clients/python/pyproject.toml'))?.[1];
  const { version } = JSON.parse(read('packages/client/package.json'));
  for (const [path, current] of [
    ['packages/client/CHANGELOG.md', version],
    ['clients/python/CHANGELOG.md', python],
  ]) {
    const [, newest] = /^## (\S+)$/m.exec(read(path)) ?? [];
    assert.equal(newest, current, path);
  }
});
