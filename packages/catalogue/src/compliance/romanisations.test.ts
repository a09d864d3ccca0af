import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cantoneseOf, cantoneseSounds, looksWadeGiles, mandarinSounds } from './chinese-sounds.ts';
import { koreanSounds, looksKorean } from './korean-sounds.ts';
import { readingsByLanguage } from './western-spellings.ts';

const meet = (a: readonly string[], b: readonly string[]) => a.some((one) => b.includes(one));

describe('Korean', () => {
  it('sounds the same by every romanisation', () => {
    for (const spellings of [
      'jong jeong jung chong chung',
      'ri lee yi li',
      'ro no noh',
      'pak park bak',
      'choe choi',
      'chol cheol chul',
      'thaek taek',
      'gwang kwang',
      'yongho yeongho youngho',
    ]) {
      const [first = '', ...others] = spellings.split(' ');
      for (const other of others) assert(meet(koreanSounds(first), koreanSounds(other)), `${first} ${other}`);
    }
  });

  it('tells syllables apart that differ, and is not heard in names of other languages', () => {
    for (const [a = '', b = ''] of [
      ['jin', 'jun'],
      ['min', 'mun'],
      ['song', 'sang'],
      ['hyok', 'hyon'],
    ]) {
      assert(!meet(koreanSounds(a), koreanSounds(b)), `${a} ${b}`);
    }
    assert(looksKorean(['kim', 'jong', 'un']));
    for (const name of ['john smith', 'kim smith', 'ivan petrov', 'kim']) {
      assert(!looksKorean(name.split(' ')), name);
    }
  });
});

describe('Chinese', () => {
  it('is read by Wade and Giles as well as by Pinyin', () => {
    for (const [wadeGiles = '', pinyin = ''] of (
      'hsi:xi chih:zhi chiang:jiang ch:- teng:deng hsiao:xiao kuo:guo lo:luo jen:ren yen:yan tzu:zi ssu:si yung:yong ' +
      'chung:zhong ts:- tsai:cai lieh:lie kuei:gui ho:he'
    )
      .split(' ')
      .map((pair) => pair.split(':'))) {
      if (pinyin === '-') assert.deepEqual(mandarinSounds(wadeGiles, true), [], wadeGiles);
      else assert(mandarinSounds(wadeGiles, true).includes(pinyin), `${wadeGiles} ${pinyin}`);
    }
    assert(!mandarinSounds('teng', false).includes('deng'), 'only where the name is marked as such');
    assert(looksWadeGiles(['hsu', 'chih', 'yung'], false));
    assert(!looksWadeGiles(['chen', 'ming'], false), 'a name that Pinyin writes too');
    for (const spelling of ['lu', 'lv', 'lyu']) assert.deepEqual(mandarinSounds(spelling, false), ['lu']);
  });

  it('is read as Cantonese, and met as Hong Kong writes it', () => {
    for (const [han, written] of [
      ['鄧炳強', 'tang ping keung'],
      ['邓炳强', 'tang ping keung'],
      ['曾國衞', 'tsang kwok wai'],
      ['林鄭月娥', 'lam cheng yuet ngor'],
      ['吳志明', 'ng chi ming'],
    ] as const) {
      const sounds = cantoneseOf(han);
      const words = written.split(' ');
      assert.equal(sounds.length, words.length);
      for (const [at, word] of words.entries()) assert(meet(sounds[at] ?? [], cantoneseSounds(word)), word);
    }
  });
});

describe('a word that another language wrote', () => {
  it('is said as English would write it', () => {
    for (const [written = '', english = ''] of (
      'schoigu:shoigu szojgu:shoigu choigou:shoigu tschemesow:chemesov czemiezow:chemezov prigoschin:prigoshin ' +
      'wladimir:vladimir jewgienij:yevgeniy evgueni:yevgeny iouri:yury dawood:daud moussa:musa oceguera:oseguera'
    )
      .split(' ')
      .map((pair) => pair.split(':'))) {
      assert(meet(readingsByLanguage(written), readingsByLanguage(english)), `${written} ${english}`);
    }
  });
});
