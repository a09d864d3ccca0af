/**
 * How a Korean word sounds, whichever romanisation wrote it. Pure.
 *
 * 정은 is "Jong Un" in the North, "Jeong-eun" in the South's Revised Romanization, "Chŏng-ŭn" by McCune and Reischauer
 * and "Jung-eun" by habit. Latin letters without their marks stand for several vowels, so a word has a set of sounds,
 * and two words are one where the sets meet.
 */
import { spellingTable } from './spelling-table.ts';

/** Consonants that the romanisations write differently, as one. */
const INITIALS = spellingTable(
  'k:g,k,kk,gg,kh n:n t:d,t,tt,dd,th r:r,l,rh m:m p:b,p,pp,bb,ph s:s,ss,sh j:j,ch,jj h:h -:',
);
const FINALS = spellingTable('-:,h k:k,g,rk n:n,hn t:t,d l:l,r m:m,hm p:p,b ng:ng');
/** The vowels of Hangul that a Latin spelling may stand for. ㅐ and ㅔ sound alike, and so do ㅙ, ㅚ and ㅞ. */
const VOWELS = spellingTable(
  'a:a e:ae,ai,e,ay eo:eo,o,u,ou ya:ya yeo:yeo,yo,yu,you,yeu ye:ye,yae o:o,oh wa:wa we:wae,oe,oi,we yo:yo ' +
    'u:u,oo,ou,woo,wu wo:wo,weo wi:wi yu:yu,yoo,yeu eu:eu,u i:i,ee,yi,ui,ie',
);
/** Family names of almost all Koreans, as the romanisations write them. */
const FAMILIES = new Set(
  (
    'kim gim lee yi ri rhee li park pak bak pahk choi choe choy jung jeong jong chung chong kang gang cho jo joe yoon yun ' +
    'youn jang chang lim im rim han oh o seo suh so shin sin kwon gwon hwang ahn an song hong jeon jun jon chon chun ' +
    'ko go koh moon mun yang ryang bae pae baek paek baik paik heo hur huh ho nam shim sim noh no ro roh ha kwak gwak ' +
    'sung seong cha joo ju chu woo u wu koo ku gu min ryu yoo yu ryoo na ra jin chin ji chi eom um om won byun pyon ' +
    'byeon chae bang pang kong gong hyun hyon ham yeo yo pyo do to seok sok suk son sohn seon sun myong myung yeom yom ' +
    'ok pang pyon tae thae kye gye hwangbo namgung'
  ).split(' '),
);
const MOST_SYLLABLES = 3;
const MOST_SOUNDS = 16;

/** Whether words in Latin letters may be a Korean name: a family name of theirs, and one or two syllables beside it. */
export function looksKorean(words: readonly string[]): boolean {
  if (words.length < 2 || words.length > 4) return false;
  const [first = '', last = ''] = [words[0], words.at(-1)];
  if (!FAMILIES.has(first) && !FAMILIES.has(last)) return false;
  return words.every((word) => koreanSounds(word).length > 0);
}

/** What a word of up to three syllables may sound like; empty where it cannot be Korean. */
export function koreanSounds(word: string): readonly string[] {
  const sounds: string[] = [];
  const read = (rest: string, said: readonly string[]): void => {
    if (rest === '') sounds.push(said.join('.'));
    if (rest === '' || said.length === MOST_SYLLABLES || sounds.length >= MOST_SOUNDS) return;
    for (const { length, sound } of syllablesAt(rest)) read(rest.slice(length), [...said, sound]);
  };
  if (word.length <= MOST_SYLLABLES * 6) read(word, []);
  return [...new Set(sounds)].slice(0, MOST_SOUNDS);
}

/** Each syllable that a text may begin with. */
function syllablesAt(text: string): { length: number; sound: string }[] {
  const found: { length: number; sound: string }[] = [];
  for (const [initial, consonants] of startsOf(text, INITIALS)) {
    for (const [vowel, vowels] of startsOf(text.slice(initial.length), VOWELS)) {
      const begun = initial.length + vowel.length;
      for (const [final, ends] of startsOf(text.slice(begun), FINALS)) {
        for (const consonant of consonants)
          for (const said of vowels)
            for (const end of ends)
              found.push({
                length: begun + final.length,
                sound: `${initialLaw(consonant, said)}${said}${end}`,
              });
      }
    }
  }
  // The longest first, so that what is cut off at the bound is the least likely.
  return found.sort((a, b) => b.length - a.length);
}

function startsOf(
  text: string,
  spellings: ReadonlyMap<string, readonly string[]>,
): [string, readonly string[]][] {
  return [0, 1, 2, 3].flatMap((length) => {
    const meanings = length <= text.length ? spellings.get(text.slice(0, length)) : undefined;
    return meanings === undefined ? [] : [[text.slice(0, length), meanings] as [string, readonly string[]]];
  });
}

/** In the South an r at the beginning is not said before i and y, and is an n elsewhere; in the North it is said. */
function initialLaw(consonant: string, vowel: string): string {
  if (consonant !== 'r') return consonant;
  return /^[iy]/.test(vowel) ? '' : 'n';
}
