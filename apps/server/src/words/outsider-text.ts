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
/** What of several joiners one sign can need. */
const NEEDED = /^(?:[\ufe00-\ufe0f])?(?:\u200c|\u200d)?/u;

/** One line: what ends lines becomes a space, and what is not seen nothing. @param maxCharacters what is longer is cut with an ellipsis */
export function cleanLine(text: string, maxCharacters: number): string {
  // Nothing beyond several times what is kept is looked at.
  const near = text.slice(0, 4 * maxCharacters + 1_000).toWellFormed();
  const line = near.replace(/(?:[^\S\ufeff]|\u0085)+/gu, ' ').replace(UNSEEN_IN_LINE, '');
  return cut(line.replace(JOINERS, neededJoiners).trim(), maxCharacters);
}

/** Joiners as far as they are of a sign beyond ASCII. */
function neededJoiners(run: string, at: number, whole: string): string {
  return at > 0 && whole.charCodeAt(at - 1) > 0x7f ? (NEEDED.exec(run)?.[0] ?? '') : '';
}

/** Lines, with their ends and tabs. Pieces of a text may be cleaned one by one: together they are the cleaned text. */
export function cleanLines(text: string, maxCharacters: number): string {
  return cut(text.toWellFormed().replace(UNSEEN_IN_LINES, ''), maxCharacters);
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
  return `${text.slice(0, maxCharacters - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
