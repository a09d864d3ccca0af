/**
 * Text that somebody outside wrote, such as a token's name or a headline, in a form that shows to a model what it shows to a
 * person: without characters that nobody sees or that change the order of others, and bounded.
 */

/** Joiners and variants of signs, which some scripts and pictures need. */
const JOINER = '\\u200c|\\u200d|[\\ufe00-\\ufe0f]';
/**
 * Controls, ends of lines, and what has no width or no meaning: marks that turn text around (UAX #9), fillers, tags and variants by
 * which text can be hidden in text.
 */
const UNSEEN = `(?!${JOINER})(?:[\\p{Cc}\\p{Zl}\\p{Zp}\\p{Co}\\ufff9-\\ufffb]|\\p{Default_Ignorable_Code_Point})`;
const UNSEEN_IN_LINE = new RegExp(UNSEEN, 'gu');
/** The same, apart from the ends of lines and tabs. */
const UNSEEN_IN_LINES = new RegExp(`(?![\\n\\t])${UNSEEN}`, 'gu');
const JOINERS = new RegExp(`(?:${JOINER})+`, 'gu');
/** The joiners, of several in a row, that one sign can need. */
const NEEDED = /^(?:[\ufe00-\ufe0f])?(?:\u200c|\u200d)?/u;
/** More marks above and below one letter than any script has, which would run over what stands around it. */
const PILED_UP = /(\p{M}{8})\p{M}+/gu;
const HALF_A_PAIR_AT_END = /[\ud800-\udbff]$/;

/** One line: what ends lines becomes a space, and what is not seen nothing. @param maxCharacters what is longer is cut with an ellipsis */
export function cleanLine(text: string, maxCharacters: number): string {
  // Nothing beyond several times what is kept is looked at.
  const near = text.slice(0, 4 * maxCharacters + 1_000).replace(HALF_A_PAIR_AT_END, '');
  const line = near
    .toWellFormed()
    .replace(/(?:[^\S\ufeff]|\u0085)+/gu, ' ')
    .replace(UNSEEN_IN_LINE, '');
  return cut(withoutExcess(line, false).trim(), maxCharacters);
}

/**
 * Lines, with their ends and tabs. Pieces of a text may be cleaned one by one: where no sign has more joiners and marks than it can
 * need, they are together the cleaned text.
 */
export function cleanLines(text: string, maxCharacters: number): string {
  return cut(withoutExcess(text.toWellFormed().replace(UNSEEN_IN_LINES, ''), true), maxCharacters);
}

/** Takes out joiners that are of no sign beyond ASCII, and those joiners and marks that no sign can need. */
function withoutExcess(text: string, mayGoOn: boolean): string {
  const ofASign = (at: number) => (at === 0 ? mayGoOn : text.charCodeAt(at - 1) > 0x7f);
  return text
    .replace(JOINERS, (run, at: number) => (ofASign(at) ? (NEEDED.exec(run)?.[0] ?? '') : ''))
    .replace(PILED_UP, '$1');
}

/** The same for every text in a value of JSON. Names of fields are cleaned too. */
export function cleanDeep<Value>(value: Value, maxCharacters: number): Value {
  return cleaned(value, maxCharacters) as Value;
}

function cleaned(value: unknown, maxCharacters: number): unknown {
  if (typeof value === 'string') return cleanLines(value, maxCharacters);
  if (Array.isArray(value)) return value.map((each) => cleaned(each, maxCharacters));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [cleanLine(name, 200), cleaned(each, maxCharacters)]),
  );
}

function cut(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  return `${text.slice(0, maxCharacters - 1).replace(HALF_A_PAIR_AT_END, '')}…`;
}
