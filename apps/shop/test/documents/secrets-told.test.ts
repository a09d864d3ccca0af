/** docs/upgrading.md and docs/security.md: every secret of the configuration is told, with how it is changed and what it opens. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const page = (name: string) => readFileSync(join(import.meta.dirname, '../../../../docs', name), 'utf8');
/** Secrets that a configuration has one of for each source are told together. */
const OF_SOURCES = /^(AI_API_KEY|UPSTREAM_\w+_API_KEY)$/;

const secrets = [
  ...page('configuration.md').matchAll(/^\| `([A-Z0-9_]+)` \|.*\| (yes|yes, renewed) \|$/gm),
].map(([, name = '', kind]) => ({ name, isRenewed: kind === 'yes, renewed' }));

function rowsAfter(text: string, heading: string): string[] {
  const from = text.indexOf(heading);
  assert(from >= 0, heading);
  const [table = ''] = text.slice(from).split('\n\n', 1);
  return table.split('\n').slice(2);
}

test('each secret of the configuration has a row that says how it is changed, by SIGHUP where it is renewed', () => {
  assert(secrets.length > 20);
  const rows = rowsAfter(page('upgrading.md'), '| Secret | How it is changed |');
  for (const { name, isRenewed } of secrets) {
    const wanted = OF_SOURCES.test(name) ? 'keys of sources' : `\`${name}\``;
    const found = rows.filter((row) => (row.split('|')[1] ?? '').includes(wanted));
    assert.equal(found.length, 1, name);
    assert.equal(found[0]?.includes('SIGHUP'), isRenewed, name);
  }
});

test('each stands in the table of secrets, with what to do when it leaks', () => {
  const rows = rowsAfter(page('security.md'), '| Secret | Where it is | When it leaks |');
  for (const { name } of secrets) {
    const wanted = OF_SOURCES.test(name) ? 'keys for sources' : `\`${name}\``;
    assert.equal(rows.filter((row) => (row.split('|')[1] ?? '').includes(wanted)).length, 1, name);
  }
});
