import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { shopLogo, shopName } from './shop.ts';

const folder = mkdtempSync(join(tmpdir(), 'farebox-logo-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, content: string | Buffer) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const wrongWith = (value: string) => shopLogo.safeParse(value).error?.issues[0]?.message ?? 'nothing';

test('a logo is a picture by its bytes, whatever its file is called, or an https address', () => {
  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(20)]);
  for (const [path, type] of [
    [file('a.txt', png), 'image/png'],
    [
      file('b', '<?xml version="1.0"?>\n<!-- made by hand -->\n<svg xmlns="http://www.w3.org/2000/svg"/>'),
      'image/svg+xml',
    ],
    [file('c', Buffer.from('RIFF\0\0\0\0WEBPVP8 ', 'latin1')), 'image/webp'],
  ] as const) {
    const logo = shopLogo.parse(path);
    assert.equal(logo.kind === 'file' && logo.contentType, type);
  }
  assert.deepEqual(shopLogo.parse('https://shop.test/logo.svg'), {
    kind: 'url',
    url: 'https://shop.test/logo.svg',
  });
});

test('what is no logo is refused with what to change', () => {
  assert.match(wrongWith(join(folder, 'absent')), /cannot be read/);
  assert.match(wrongWith(folder), /cannot be read/);
  assert.match(wrongWith(file('page', '<!doctype html><body><svg></svg>')), /no picture/);
  assert.match(wrongWith(file('large', Buffer.alloc(200_001))), /has 200001 bytes, and may have 200000/);
  assert.match(wrongWith('http://shop.test/logo.svg'), /https/);
  assert.match(wrongWith('https://me:secret@shop.test/logo.svg'), /must not hold/);
  assert.match(wrongWith(`https://shop.test/${'x'.repeat(500)}`), /at most 500/);
  for (const name of ['', '   ', 'a\u202eb', 'a\nb', 'x'.repeat(61)])
    assert.equal(shopName.safeParse(name).success, false, name);
});
