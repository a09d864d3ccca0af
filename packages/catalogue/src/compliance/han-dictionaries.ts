/**
 * The dictionaries that say how Han characters are read. They are loaded with the first name that has such characters: they
 * take longer to load than most of the server, and names in other scripts need none of them.
 */
import { createRequire } from 'node:module';

type Pinyin = typeof import('pinyin-pro');
type Jyutping = typeof import('to-jyutping');
type Hanja = typeof import('hanja');

const loaded: { mandarin?: Pinyin; cantonese?: Jyutping; korean?: Hanja } = {};

function loadMandarin(): Pinyin {
  return createRequire(import.meta.url)('pinyin-pro');
}

function loadCantonese(): Jyutping {
  return createRequire(import.meta.url)('to-jyutping');
}

function loadKorean(): Hanja {
  return createRequire(import.meta.url)('hanja');
}

/** Reads Mandarin, and knows how surnames are read. */
export function mandarinReader(): Pinyin['pinyin'] {
  loaded.mandarin ??= loadMandarin();
  return loaded.mandarin.pinyin;
}

/** Reads Cantonese: what each character may sound like, by Jyutping. */
export function cantoneseReader(): Jyutping['getJyutpingCandidates'] {
  loaded.cantonese ??= loadCantonese();
  return loaded.cantonese.getJyutpingCandidates;
}

/** Reads Korean, and writes characters in Hangul. */
export function koreanReader(): Hanja['default'] {
  loaded.korean ??= loadKorean();
  return loaded.korean.default;
}
