import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readGuides } from './guides.ts';

test('guides come in the order and the parts of their table of contents, with its lines; others come last', (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-guides-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const files = {
    'a.md': '# First letter\n\nIts own words.\n',
    'b.md': '# Second letter\n\nIts own words. More of them.\n',
    'z.md': '# Last letter\n\nIts own words.\n',
    'README.md':
      '# All\n\n## Buy\n\n- [Last letter](z.md): how it ends\n- a line that is no page\n\n## Trust\n\n- [First letter](a.md): how it *begins*\n- [Gone](gone.md): is not there\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  assert.deepEqual(
    readGuides(folder).list.map(({ name, title, about, part }) => [name, title, about, part]),
    [
      ['z', 'Last letter', 'how it ends', 'Buy'],
      ['a', 'First letter', 'how it *begins*', 'Trust'],
      ['b', 'Second letter', 'Its own words. More of them.', null],
    ],
  );
});

test('without a table of contents guides come by name, and without a folder there are none', (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-guides-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ['b.md', 'a.md']) writeFileSync(join(folder, name), `# ${name}\n\nText.\n`);
  assert.deepEqual(
    readGuides(folder).list.map(({ name, part }) => [name, part]),
    [
      ['a', null],
      ['b', null],
    ],
  );
  assert.deepEqual(readGuides(join(folder, 'none')).list, []);
});
