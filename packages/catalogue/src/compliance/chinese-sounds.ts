/**
 * How a Chinese word sounds, whichever romanisation wrote it: Mandarin by Pinyin or by Wade and Giles, Cantonese by
 * Jyutping or as Hong Kong writes it. Pure.
 */
import { cantoneseReader } from './han-dictionaries.ts';
import { spellingTable } from './spelling-table.ts';

/** The syllables of Mandarin by Pinyin, by their initials. */
const PINYIN = (
  'a ai an ang ao e ei en eng er o ou ' +
  syllables('b p m', 'a ai an ang ao ei en eng i ian iao ie in ing o u') +
  'mou miu me pou fa fan fang fei fen feng fo fou fu ' +
  syllables('d t n l', 'a ai an ang ao e ei eng i ian iao ie ing ong ou u uan uo') +
  'diu niu liu den nen lin nin dun tun lun nun dui tui lia liang niang lue nue ' +
  syllables('g k h', 'a ai an ang ao e ei en eng ong ou u ua uai uan uang ui un uo') +
  syllables('j q x', 'i ia ian iang iao ie in ing iong iu u uan ue un') +
  syllables('zh ch', 'a ai an ang ao e en eng i ong ou u ua uai uan uang ui un uo') +
  'sha shai shan shang shao she shei shen sheng shi shou shu shua shuai shuan shuang shui shun shuo ' +
  'ran rang rao re ren reng ri rong rou ru ruan rui run ruo ' +
  syllables('z c s', 'a ai an ang ao e en eng i ong ou u uan ui un uo') +
  'zei ya yan yang yao ye yi yin ying yong you yu yuan yue yun wa wai wan wang wei wen weng wo wu'
).split(' ');

function syllables(initials: string, finals: string): string {
  return initials
    .split(' ')
    .flatMap((initial) => finals.split(' ').map((final) => `${initial}${final} `))
    .join('');
}

const WADE_INITIALS = spellingTable('p:b t:d k:g ch:j,q,zh,ch hs:x ts:z,c j:r');
/** Syllables by Wade and Giles without marks, and the ones of Pinyin that each may be. */
const WADE_GILES = new Map<string, string[]>();
for (const syllable of PINYIN)
  for (const wade of wadeGilesOf(syllable)) WADE_GILES.set(wade, [...(WADE_GILES.get(wade) ?? []), syllable]);
const IS_PINYIN = new Set(PINYIN);
const LONGEST_PINYIN = Math.max(...PINYIN.map(({ length }) => length));
const MOST_SYLLABLES = 3;
const MOST_SOUNDS = 32;

/** How Wade and Giles write a syllable of Pinyin, without the apostrophes that most leave out. */
function wadeGilesOf(syllable: string): string[] {
  const [, initial = '', final = ''] = /^(zh|ch|sh|[bpmfdtnlgkhjqxrzcs]?)(.*)$/.exec(syllable) ?? [];
  if (final === 'i' && /^(zh|ch|sh|r)$/.test(initial))
    return [`${WADE_INITIALS.get(initial)?.[0] ?? initial}ih`];
  if (final === 'i' && /^[zcs]$/.test(initial)) return initial === 's' ? ['ssu', 'szu'] : ['tzu'];
  const [start = initial] = WADE_INITIALS.get(initial) ?? [];
  return finalsOf(initial, final).flatMap((end) =>
    final === 'u' && start === 'ts' ? ['tsu'] : [start + end],
  );
}

function finalsOf(initial: string, final: string): string[] {
  if (initial === '') {
    if (final === 'yan') return ['yen'];
    if (final === 'ye' || final === 'yue') return [`${final}h`];
    if (final === 'you') return ['yu'];
    if (final === 'yong') return ['yung'];
    if (final === 'yi') return ['i', 'yi'];
    return final === 'er' ? ['erh'] : [final];
  }
  if (final === 'ian') return ['ien'];
  if (final === 'ie' || final === 'ue') return [`${final}h`];
  if (final === 'ui' && /^[gk]$/.test(initial)) return ['uei'];
  if (final === 'uo') return /^([gkh]|sh)$/.test(initial) ? ['uo'] : ['o'];
  if (final === 'e' && /^[gkh]$/.test(initial)) return ['o', 'e'];
  return [final.replace(/ong$/, 'ung')];
}

/**
 * Whether words in Latin letters may be a name by Wade and Giles: all are its syllables, and one at least is no
 * syllable of Pinyin or is marked as it marks them.
 *
 * @param marked whether a hyphen or an apostrophe stood in the name
 */
export function looksWadeGiles(words: readonly string[], marked: boolean): boolean {
  if (words.length < 2 || words.length > 4 || !words.every((word) => WADE_GILES.has(word))) return false;
  return marked || words.some((word) => !IS_PINYIN.has(word));
}

/** Whether words in Latin letters may be a name by Pinyin: all are made of its syllables. */
export function looksPinyin(words: readonly string[]): boolean {
  return words.length >= 2 && words.length <= 4 && words.every((word) => isPinyin(withoutMarks(word)));
}

/** Whether a word is one to three syllables of Pinyin, written together. */
function isPinyin(word: string, most = MOST_SYLLABLES): boolean {
  if (IS_PINYIN.has(word)) return true;
  if (most === 1) return false;
  const longest = Math.min(LONGEST_PINYIN, word.length - 1);
  for (let length = 1; length <= longest; length += 1)
    if (IS_PINYIN.has(word.slice(0, length)) && isPinyin(word.slice(length), most - 1)) return true;
  return false;
}

/** What a word may sound like in Mandarin; empty where it cannot be of it. */
export function mandarinSounds(word: string, wadeGiles: boolean): readonly string[] {
  const plain = withoutMarks(word);
  const pinyin = isPinyin(plain) ? [plain] : [];
  return wadeGiles ? [...new Set([...pinyin, ...(WADE_GILES.get(word) ?? [])])] : pinyin;
}

/** "ü" is left without its dots, or written v or yu, after l and n. */
function withoutMarks(word: string): string {
  return word.replace(/(?<=[ln])(v|yu)(?=e?$)/, 'u');
}

/** The sounds of words written together. */
export function joinedSounds(parts: readonly (readonly string[])[], between: string): readonly string[] {
  if (parts.some((sounds) => sounds.length === 0)) return [];
  return parts
    .reduce((all, sounds) =>
      all.flatMap((begun) => sounds.map((sound) => begun + between + sound)).slice(0, MOST_SOUNDS),
    )
    .slice(0, MOST_SOUNDS);
}

/** Each Han character with what it may sound like in Cantonese. */
export function cantoneseOf(han: string): (readonly string[])[] {
  return cantoneseReader()(han).map(([, candidates]) => [
    ...new Set(
      candidates
        .slice(0, MOST_READINGS)
        .flatMap((syllable) => cantoneseSounds(syllable.replace(/[0-9]/g, ''))),
    ),
  ]);
}

/** Whether words in Latin letters may be a name as Hong Kong writes it: a family name and two syllables with a hyphen. */
export function looksCantonese(words: readonly string[], marked: boolean): boolean {
  const said = words.filter((word) => cantoneseSounds(word).length > 0).length;
  return said >= 3 || (said === 2 && words.length === 2 && marked);
}

const MOST_READINGS = 3;
const CANTONESE = /^(gw|kw|qu|ng|ts|tz|ch|sh|sz|[bpmfdtnlgkhjyzcsw]?)([aeiou]+[hry]?)(m|n|ng|p|t|k|)$/;
const CANTONESE_INITIALS = spellingTable('kw:gw,qu k:g p:b t:d c:ch,ts,tz,z s:sh,sz y:j');
/** One way to write each vowel. */
const CANTONESE_VOWELS = spellingTable(
  'a:aa,ah ai:aai au:aau e:eh i:ei,ee,ay,ie,ey o:ou,or,oh u:ou,oo,eo,ue,uie eu:oe ui:eoi oi:oy',
);

/** What a syllable by Jyutping, or as Hong Kong writes it, sounds like; empty where it is none. */
export function cantoneseSounds(syllable: string): readonly string[] {
  if (syllable === 'ng' || syllable === 'm') return [syllable];
  // "Sze" and "Tsz" are said without a vowel of their own, and Jyutping writes "yu" for "ü".
  const plain = syllable
    .replace(/^(sz|ts)[ez]?$/, '$1i')
    .replace(/^tsz$/, 'tsi')
    .replace(/(?<=[a-z])yu/, 'u');
  const [whole, initial = '', vowel = '', end = ''] = CANTONESE.exec(plain) ?? [];
  if (whole === undefined) return [];
  const [start = initial] = CANTONESE_INITIALS.get(initial) ?? [];
  return (CANTONESE_VOWELS.get(vowel) ?? [vowel]).flatMap((said) => {
    const sound = `${start}${said}${end}`;
    if (/e(ng|k)$/.test(sound)) return [sound, sound.replace(/e(?=ng$|k$)/, 'i')];
    // "Sam" and "Sum", "Tat" and "Tut".
    return said === 'a' && end !== '' ? [sound, `${start}u${end}`] : [sound];
  });
}
