/** The references of packages are what their types say. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { REFERENCES, referenceText } from '../../../../scripts/reference.ts';

const ROOT = join(import.meta.dirname, '../../../..');
/** Names that a reader of each page looks for. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'docs/client-reference.md': [
    'createFarebox()',
    'FareboxError',
    'x402Wallet()',
    'mppWallet()',
    'fileStore()',
    'openAiTools()',
  ],
  'docs/core-reference.md': [
    'defineService',
    'answer()',
    'notFound()',
    'openHouse()',
    'creditsRail()',
    'serve()',
  ],
  'docs/proxy-reference.md': [
    'defineConfig()',
    'loadConfig()',
    'priceOfRequest()',
    'importOpenApi()',
    'openGate()',
  ],
};

for (const reference of REFERENCES)
  test(`${reference.page} is what the types of its packages say`, (t) => {
    const made = referenceText(reference);
    if (made === null) return t.skip('NOT TESTED: the package registry cannot be reached');
    assert.equal(readFileSync(join(ROOT, reference.page), 'utf8'), made, 'npm run reference writes it');
    const names = NAMES[reference.page] ?? [];
    assert.ok(names.length > 0);
    for (const name of names) assert.ok(made.includes(`\n### ${name}\n`), name);
  });

test('every name that a package lists in its README for a beginning is in a reference', () => {
  for (const [readme, page] of [
    ['packages/core/README.md', 'docs/core-reference.md'],
    ['packages/proxy/README.md', 'docs/proxy-reference.md'],
  ] as const) {
    const rows = [
      ...readFileSync(join(ROOT, readme), 'utf8').matchAll(/^\| `(\w+)` \| `(@farebox\/[\w/-]+)` \|/gm),
    ];
    assert.ok(rows.length > 3, readme);
    const text = readFileSync(join(ROOT, page), 'utf8');
    for (const [, name = '', face = ''] of rows) {
      const [, part = ''] = text.split(`\n## \`${face}\`\n`);
      const [own = ''] = part.split('\n## ');
      assert.match(own, new RegExp(`^### ${name}(\\(\\))?$`, 'm'), `${face} ${name}`);
    }
  }
});
