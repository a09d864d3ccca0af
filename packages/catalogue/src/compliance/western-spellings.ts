/**
 * How a word written by the rules of one language would be written by those of another. Pure.
 *
 * A name that is foreign to a language is spelled as that language says it: "Сергей Шойгу" is "Sergei Shoigu" in
 * English, "Sergej Schoigu" in German, "Siergiej Szojgu" in Polish and "Sergueï Choïgou" in French. A word does not say
 * which language wrote it, so it is read by the rules of each, and two words are one where two of their readings are.
 */

type Rules = readonly (readonly [RegExp, string])[];

/** From each language's spelling to that of English, in order. Capitals stand for what later rules must not change. */
const LANGUAGES: readonly Rules[] = [
  // German
  [
    [/schtsch/g, 'shch'],
    [/tsch/g, 'C'],
    [/d?sch/g, 'sh'],
    [/(?<!t)ch/g, 'kh'],
    [/C/g, 'ch'],
    [/th/g, 't'],
    [/([aou])e(?=[^aeiouy])/g, '$1'],
    [/ie/g, 'i'],
    [/^v/g, 'f'],
    [/^h/g, 'kh'],
    [/w/g, 'v'],
    [/j/g, 'y'],
  ],
  // Polish, Czech and the Slavic languages that write Latin letters
  [
    [/szcz/g, 'shch'],
    [/sz/g, 'sh'],
    [/c?ch/g, 'kh'],
    [/cz/g, 'ch'],
    [/rz/g, 'zh'],
    [/c(?!h)/g, 'ts'],
    [/(?<=[^aeiouy])i(?=[aeou])/g, ''],
    [/^h/g, 'kh'],
    [/w/g, 'v'],
    [/j/g, 'y'],
  ],
  // French
  [
    [/tch/g, 'C'],
    [/dj/g, 'J'],
    [/ch/g, 'sh'],
    [/C/g, 'ch'],
    [/j/g, 'zh'],
    [/J/g, 'j'],
    [/gu(?=[eiy])/g, 'G'],
    [/qu/g, 'k'],
    [/(?<!^)g(?=[eiy])/g, 'zh'],
    [/G/g, 'g'],
    [/c(?=[eiy])/g, 's'],
    [/ou/g, 'u'],
    [/(?<=[iy])ne$/g, 'n'],
    [/(?<=[eo])ff?$/g, 'v'],
  ],
  // Spanish
  [
    [/gu(?=[eiy])/g, 'C'],
    [/qu/g, 'k'],
    [/[gj](?=[eiy])|j/g, 'kh'],
    [/C/g, 'g'],
    [/^x(?=[eiy])/g, 'kh'],
    [/c(?=[eiy])|z/g, 's'],
    [/ll/g, 'y'],
    [/^h(?!a)/g, ''],
    [/v/g, 'b'],
  ],
  // Arabic as the Gulf, the Levant and Egypt write it
  [
    [/dh/g, 'z'],
    [/dj|^g(?=[aeiou])/g, 'j'],
    [/^ch/g, 'sh'],
    [/ou/g, 'u'],
    [/(?<=[^aeiouy])e(?=[^aeiouy])/g, 'i'],
  ],
];

/** The word as it is, and by the rules of each language that would write it otherwise. */
export function readingsByLanguage(word: string): string[] {
  const readings = LANGUAGES.map((rules) =>
    rules.reduce((text, [written, said]) => text.replace(written, said), word),
  );
  return [...new Set([word, ...readings].map(saidAlike))];
}

/** One way to write the vowels and the half vowels that every romanisation writes differently. */
export function saidAlike(word: string): string {
  return word
    .replace(/(?<=[aeiou])w(?=[ou])/g, '')
    .replace(/w/g, 'v')
    .replace(/oo|ou|o/g, 'u')
    .replace(/ee/g, 'i')
    .replace(/^[iy](?=[aeu])/g, 'y')
    .replace(/^ye/g, 'e')
    .replace(/[iy]+(?=e)(?!e$)/g, '')
    .replace(/[ea][iy]+/g, 'ai')
    .replace(/[iy]+/g, 'i')
    .replace(/^i(?=[aeu])/, 'y')
    .replace(/(?<=.)ah?$|eh$/g, 'a')
    .replace(/(.)\1+/g, '$1');
}
