/** The reference of the client is what its types say. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { clientReference, REFERENCE } from '../../../../scripts/client-reference.ts';

test('docs/client-reference.md is what the types of the client say', (t) => {
  const made = clientReference();
  if (made === null) return t.skip('NOT TESTED: the package registry cannot be reached');
  assert.equal(readFileSync(REFERENCE, 'utf8'), made, 'npm run reference writes it');
  const names = [
    'createFarebox()',
    'FareboxError',
    'x402Wallet()',
    'mppWallet()',
    'fileStore()',
    'openAiTools()',
  ];
  for (const name of names) assert.ok(made.includes(`\n### ${name}\n`), name);
});
