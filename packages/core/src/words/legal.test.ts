import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { legalDocument, legalLinks, NO_LEGAL } from './legal.ts';

const wrongWith = (value: string) => legalDocument.safeParse(value).error?.issues[0]?.message ?? 'nothing';

test('a document is an https address or a file with text, and everything else is refused in words', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-legal-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = (name: string, content: string | Buffer) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
  assert.deepEqual(legalDocument.parse('https://shop.test/terms'), {
    kind: 'url',
    url: 'https://shop.test/terms',
  });
  assert.deepEqual(legalDocument.parse(file('terms.md', '# Terms')), { kind: 'text', markdown: '# Terms' });
  assert.match(wrongWith('http://shop.test/terms'), /https/);
  assert.match(wrongWith('https://me:secret@shop.test/'), /user name/);
  assert.match(wrongWith(`https://shop.test/${'a'.repeat(500)}`), /at most 500/);
  assert.match(wrongWith(join(folder, 'none.md')), /cannot be read/);
  assert.match(wrongWith(file('empty.md', ' \n')), /empty/);
  assert.match(wrongWith(file('picture.png', Buffer.from([0x89, 0xff, 0xfe]))), /UTF-8/);
  assert.match(wrongWith(file('long.md', 'a'.repeat(200_001))), /may have 200000/);
});

test('links stand in one order, and documents that are files have an address here', () => {
  assert.deepEqual(legalLinks(NO_LEGAL, 'https://shop.test'), []);
  const legal = {
    ...NO_LEGAL,
    imprint: { kind: 'url', url: 'https://about.test/' },
    terms: { kind: 'text', markdown: 'x' },
  } as const;
  assert.deepEqual(
    legalLinks(legal, 'https://shop.test').map(({ label, href }) => [label, href]),
    [
      ['Terms', 'https://shop.test/legal/terms'],
      ['Imprint', 'https://about.test/'],
    ],
  );
});
