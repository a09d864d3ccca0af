/** docs/incidents.md: each incident has its drill, which is there. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../../../..');
const page = readFileSync(join(ROOT, 'docs/incidents.md'), 'utf8');

test('each incident stands in the table of drills, and each drill is a test that runs', () => {
  const incidents = [...page.matchAll(/^## (.+)$/gm)].map(([, title]) => title).slice(0, -1);
  const drills = [...page.matchAll(/^\| (.+?) \| `(\S+\.test\.ts)` \|$/gm)];
  assert(incidents.length >= 9);
  assert.deepEqual(
    drills.map(([, incident]) => incident),
    incidents,
  );
  for (const [, incident, path = ''] of drills) {
    assert(existsSync(join(ROOT, path)), `${incident}: ${path}`);
    assert.match(readFileSync(join(ROOT, path), 'utf8'), /\btest\(/, path);
  }
});
