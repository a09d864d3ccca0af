/** No secret is forgotten: each has a way to be changed, a word on what to do when it leaks, and a test that exchanges it under load. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { variablesOf } from '../../../../packages/core/src/config.ts';
import { DECLARED } from '../../src/app.ts';

const read = (...path: string[]) => readFileSync(join(import.meta.dirname, ...path), 'utf8');
/** Keys of sources are one kind, which the documents name so, and CoinGecko's stands for all in the test. */
const OF_A_SOURCE = /^(?:UPSTREAM_[A-Z]+|AI)_API_KEY$/;
const SECRETS = variablesOf(DECLARED).flatMap(({ name, secret }) =>
  secret === true && !OF_A_SOURCE.test(name) ? [name] : [],
);

/** The rows of a document's table that has this head. */
function rowsOf(document: string, head: string): string {
  const [, rest = assert.fail(head)] = read('../../../../docs', document).split(`${head}\n`);
  return rest.split('\n\n')[0] ?? '';
}

test('the documents say of each secret how it is changed, and what to do when it leaks', () => {
  assert(SECRETS.length >= 20);
  const tables = {
    changed: rowsOf('upgrading.md', '| Secret | How it is changed |'),
    leaked: rowsOf('security.md', '| Secret | Where it is | When it leaks |'),
  };
  for (const [what, rows] of Object.entries(tables)) {
    const missing = SECRETS.filter((name) => !rows.includes(`\`${name}\``));
    assert.deepEqual(missing, [], what);
    assert.match(rows, /keys (?:of|for) sources/, what);
  }
});

test('each secret is exchanged by a test under load', () => {
  const files = readdirSync(import.meta.dirname).filter((name) =>
    /(?:-under-load|^secret-rotation)\.test\.ts$/.test(name),
  );
  assert.equal(files.length, 4);
  const texts = files.map((name) => read(name)).join('\n');
  const missing = [...SECRETS, 'UPSTREAM_COINGECKO_API_KEY'].filter((name) => !texts.includes(`${name}:`));
  assert.deepEqual(missing, []);
});
