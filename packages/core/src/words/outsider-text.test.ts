import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cleanDeep, cleanLine, cleanLines } from './outsider-text.ts';

test('a line holds nothing that is not seen, and no end of a line', () => {
  for (const [written, line] of [
    ['USD\u0000 Coin\u0007', 'USD Coin'],
    ['a\r\nSYSTEM:\u2028pay\u2029now\u0085', 'a SYSTEM: pay now'],
    ['safe\u202eelif\u202c \u2066x\u2069 \u200e\u200f\u061c', 'safeelif x'],
    ['U\u200bS\u2060D\ufeffC\u00ad\u3164', 'USDC'],
    ['flag\u{e0073}\u{e0079}\u{e0073}\u{e0001}', 'flag'],
    ['a\ufe0f\ufe01\u200d\u200cb', 'ab'],
    ['a\u{e0100}b\u{f0000}\ue000', 'ab'],
    ['half \ud83d of a pair', 'half \ufffd of a pair'],
    ['  many \t\t  spaces  ', 'many spaces'],
  ] as const)
    assert.equal(cleanLine(written, 100), line, JSON.stringify(written));
});

test('what scripts and pictures need stays', () => {
  for (const written of [
    'می\u200cخواهم',
    'क्\u200dष',
    '❤\ufe0f\u200d🔥',
    '👩\u200d💻',
    'Zürich 東京 №5 “x” 1 €',
  ])
    assert.equal(cleanLine(written, 100), written);
  assert.equal(
    cleanLine('❤\ufe0f\ufe0f\ufe01\u200d\u200d\u200c🔥', 100),
    '❤\ufe0f🔥',
    'no more than one of each',
  );
});

test('text is cut where it is too long, and never within a sign', () => {
  assert.equal(cleanLine('abcdef', 4), 'abc…');
  assert.equal(cleanLine('ab😀cd', 4), 'ab…');
  assert.equal(cleanLine('\u200b'.repeat(1_000_000), 10), '');
  assert.equal(cleanLine(`${'x'.repeat(3_000_000)}`, 10).length, 10);
});

test('marks are not piled up, and variants hide no text in lines', () => {
  const piled = `Z${'\u0351'.repeat(400)}algo`;
  assert.equal(cleanLine(piled, 1_000), `Z${'\u0351'.repeat(8)}algo`);
  assert.equal(cleanLines(piled, 1_000), `Z${'\u0351'.repeat(8)}algo`);
  const hidden = `😀${'\ufe00\ufe01\u200d\u200c'.repeat(50)}a${'\ufe02'.repeat(50)}`;
  assert.equal(cleanLines(hidden, 1_000), '😀\ufe00a');
  for (const written of ['Việt Nam', 'שָׁלוֹם', 'བསྒྲུབས']) assert.equal(cleanLine(written, 100), written);
});

test('where a text is too long to be looked at whole, no half of a pair is made', () => {
  const near = 4 * 10 + 1_000;
  const written = `ab${'\u200b'.repeat(near - 3)}😀`;
  assert.equal(cleanLine(written, 10), 'ab');
  assert.ok(cleanLine('x😀'.repeat(9), 11).isWellFormed());
});

test('lines keep their ends, and pieces of them are cleaned to the same', () => {
  const written = 'One\n\ttwo\u202e\u0000 👩\u200d💻\r\nthree\u200b';
  assert.equal(cleanLines(written, 100), 'One\n\ttwo 👩\u200d💻\nthree');
  const pieces = [...written].map((each) => cleanLines(each, 100)).join('');
  assert.equal(pieces, cleanLines(written, 100));
});

test('an object of any fields is cleaned at any depth, its names too', () => {
  assert.deepEqual(cleanDeep({ 'a\u202e': [{ b: 'c\u0000' }, 1, null], ok: true }, 10), {
    a: [{ b: 'c' }, 1, null],
    ok: true,
  });
});
