/**
 * Extracts from a prediction market's question its words, and apart from them the facts that make two similar sentences
 * different bets: strike, date, direction, negation, way of settling. Pure and deterministic.
 */

const DAY_MS = 86_400_000;

/** A question, read once and compared many times. */
export interface Question {
  /** Words that carry meaning: no stop words, numbers or dates. */
  words: ReadonlySet<string>;
  /** Those of the words that look like names: capitals or digits in the original. */
  names: ReadonlySet<string>;
  /** Normalised quantities, such as `150000` or `0.25%`. */
  strikes: ReadonlySet<string>;
  /** The latest date in the text, as a span of days since 1970 (both inclusive); null when there is none. */
  date: { first: number; last: number } | null;
  /** Milliseconds since 1970; null when the venue does not say. */
  closesAtMs: number | null;
  negated: boolean;
  direction: 'up' | 'down' | null;
  /** Whether a boundary value itself counts: "at least" against "above". */
  boundary: 'inclusive' | 'exclusive' | null;
  /** `touch`: reached at any time. `level`: where it stands at the end. */
  settles: 'touch' | 'level' | null;
}

const STOP_WORDS = new Set(
  (
    'a an the will would be is are was were been do does did has have had of in on at to for from by with as or and ' +
    'than that this there it its into before after until during end close price market event what which who when how ' +
    'if any more most least many much next new year month day week am pm et est utc happen happens out up yes their his ' +
    'her he she they value then'
  ).split(' '),
);
const SYNONYMS: Readonly<Record<string, string>> = {
  btc: 'bitcoin',
  eth: 'ethereum',
  ether: 'ethereum',
  sol: 'solana',
  fed: 'federalreserve',
  fomc: 'federalreserve',
  democratic: 'democrat',
  democrats: 'democrat',
  dems: 'democrat',
  gop: 'republican',
  republicans: 'republican',
  presidency: 'president',
  presidential: 'president',
  wins: 'win',
  winner: 'win',
  winning: 'win',
  won: 'win',
  cuts: 'cut',
  decrease: 'cut',
  hikes: 'hike',
  increase: 'hike',
  raise: 'hike',
};
const PHRASES: readonly (readonly [RegExp, string])[] = [
  [/\bfederal reserve\b/gi, 'Fed'],
  [/\bunited states\b/gi, 'USA'],
  [/\bUS\b/g, 'USA'],
  [/\bunited kingdom\b/gi, 'UK'],
];
const NEGATIONS = new Set([
  'not',
  'no',
  'never',
  'without',
  'neither',
  'nor',
  'fail',
  'fails',
  'lose',
  'loses',
  'against',
]);
const UP = new Set(
  'above over exceed exceeds higher greater more reach reaches hit hits surpass surpasses rise rises hike'.split(
    ' ',
  ),
);
const DOWN = new Set('below under less lower fewer dip dips fall falls drop drops cut'.split(' '));
/** "Reach 150,000" is a touch; "reach space" is not. */
const TOUCH = /\b(?:reach|reaches|hits?|touch|touches|dips?(?: to)?)\s+\$?\d/i;
const LEVEL = new Set('above below over under between greater higher lower'.split(' '));
const INCLUSIVE =
  /\b(?:at least|at most|or (?:more|higher|above|greater|lower|less|below|fewer))\b|[≥≤]|>=|<=/i;
const EXCLUSIVE =
  /\b(?:above|below|over|under|exceeds?|(?:more|less|greater|higher|lower|fewer) than)\b|[<>]/i;

/**
 * Reads a question.
 *
 * @param text the question with whatever its venue puts around it (event title, meaning of "yes")
 * @param closesAt when trading ends, ISO 8601; also settles which year a date without one means
 */
export function readQuestion(text: string, closesAt: string | null): Question {
  const parsedMs = closesAt === null ? Number.NaN : Date.parse(closesAt);
  const closesAtMs = Number.isNaN(parsedMs) ? null : parsedMs;
  let plain = text
    .slice(0, 1_000)
    .normalize('NFKC')
    .replace(/[‘’]/g, "'")
    .replace(/\b(?:wo|ca)n't\b/gi, 'will not')
    .replace(/n't\b/gi, ' not ')
    .replace(/'s\b/gi, '')
    .replace(/\b(\p{L})\.(?=\p{L}\b)/gu, '$1');
  for (const [phrase, word] of PHRASES) plain = plain.replace(phrase, word);

  const dated = takeDates(plain, closesAtMs);
  const counted = takeStrikes(dated.rest);

  const words = new Set<string>();
  const names = new Set<string>();
  let negations = 0;
  const seen = new Set<string>();
  for (const raw of counted.rest.match(/[\p{L}\p{N}]+(?:[-.][\p{L}\p{N}]+)*/gu) ?? []) {
    const lower = raw.toLowerCase();
    seen.add(lower);
    if (NEGATIONS.has(lower)) {
      negations++;
      continue;
    }
    if (STOP_WORDS.has(lower) || UP.has(lower) || DOWN.has(lower)) {
      if (!SYNONYMS[lower] && lower !== 'hike' && lower !== 'cut') continue;
    }
    const word = SYNONYMS[lower] ?? singular(lower);
    words.add(word);
    if (/[\p{Lu}\p{N}]/u.test(raw)) names.add(word);
  }
  for (const word of [...seen]) seen.add(SYNONYMS[word] ?? word);
  const has = (list: ReadonlySet<string>) => [...list].some((word) => seen.has(word));
  const up = has(UP) || /[≥>]/.test(counted.rest);
  const down = has(DOWN) || /[≤<]/.test(counted.rest);
  return {
    words,
    names,
    strikes: counted.strikes,
    date: dated.date,
    closesAtMs,
    negated: negations % 2 === 1,
    direction: up === down ? null : up ? 'up' : 'down',
    boundary: INCLUSIVE.test(counted.rest) ? 'inclusive' : EXCLUSIVE.test(counted.rest) ? 'exclusive' : null,
    settles: TOUCH.test(dated.rest) ? 'touch' : has(LEVEL) ? 'level' : null,
  };
}

const SCALES: Readonly<Record<string, number>> = {
  k: 1e3,
  thousand: 1e3,
  m: 1e6,
  mn: 1e6,
  million: 1e6,
  b: 1e9,
  bn: 1e9,
  billion: 1e9,
  t: 1e12,
  tn: 1e12,
  trillion: 1e12,
};
const QUANTITY =
  /(?<![\p{L}\p{N}.-])\$?\s?(-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?)\s?(thousand|million|billion|trillion|mn|bn|tn|[kmbt])?(?![\p{L}\p{N}])\s?(%|percent(?:age points?)?|bps?\b|basis points?)?/giu;

/** Takes the quantities out of a text and writes them one way: `$150k` and `150,000` are the same strike. */
function takeStrikes(text: string): { rest: string; strikes: Set<string> } {
  const strikes = new Set<string>();
  const spelled = text.replace(/(\d)(bps?|%)/gi, '$1 $2');
  const rest = spelled.replace(QUANTITY, (_, digits: string, scale?: string, unit?: string) => {
    const value =
      Number(digits.replace(/,/g, '')) * (scale === undefined ? 1 : (SCALES[scale.toLowerCase()] ?? 1));
    const perCent = unit === undefined ? '' : '%';
    // Through toPrecision, so that 25 basis points and 0.25 % give the same digits.
    strikes.add(`${Number((/^b/i.test(unit ?? '') ? value / 100 : value).toPrecision(12))}${perCent}`);
    return ' ';
  });
  return { rest, strikes };
}

const MONTHS = 'january february march april may june july august september october november december'.split(
  ' ',
);
const MONTH = `(${MONTHS.map((name) => (name === 'may' ? name : `${name.slice(0, 3)}(?:${name.slice(3)}|${name === 'september' ? 't' : ''})?`)).join('|')})\\.?`;
const YEAR = '(20[2-9]\\d)';
const DAY = '(\\d{1,2})(?:st|nd|rd|th)?';
/** "Before" a date means at the latest the day before it. */
const BEFORE = '(before\\s+)?';
const DATES: readonly { form: RegExp; read: (parts: readonly (string | undefined)[]) => DateParts | null }[] =
  [
    {
      form: new RegExp(`${BEFORE}\\b${YEAR}-(\\d{2})-(\\d{2})\\b`, 'gi'),
      read: ([before, year, month, day]) => parts(before, year, Number(month), day),
    },
    {
      form: new RegExp(`${BEFORE}\\b${MONTH}\\s+${DAY}(?!\\d)(?:,?\\s+${YEAR})?(?![\\d%])`, 'gi'),
      read: ([before, month, day, year]) => parts(before, year, monthNumber(month), day),
    },
    {
      form: new RegExp(`${BEFORE}\\b${DAY}\\s+(?:of\\s+)?${MONTH}(?:,?\\s+${YEAR})?\\b`, 'gi'),
      read: ([before, day, month, year]) => parts(before, year, monthNumber(month), day),
    },
    {
      form: new RegExp(`${BEFORE}\\bQ([1-4])\\s+${YEAR}\\b`, 'gi'),
      read: ([before, quarter, year]) => ({
        before: before !== undefined,
        year: Number(year),
        month: Number(quarter) * 3 - 2,
        months: 3,
        day: null,
      }),
    },
    {
      // "may" alone is a verb more often than a month: it needs its year.
      form: new RegExp(`${BEFORE}\\b(?!may\\b(?!\\s+20))${MONTH}(?:,?\\s+${YEAR})?(?![\\p{L}\\d])`, 'giu'),
      read: ([before, month, year]) => parts(before, year, monthNumber(month), undefined),
    },
    {
      form: new RegExp(`${BEFORE}(?<![\\p{L}\\d$,.-])${YEAR}(?![\\d,%-]|\\.\\d)`, 'giu'),
      read: ([before, year]) => ({
        before: before !== undefined,
        year: Number(year),
        month: null,
        months: 12,
        day: null,
      }),
    },
  ];

interface DateParts {
  before: boolean;
  year: number | null;
  month: number | null;
  /** How many months the date spans when it names no day. */
  months: number;
  day: number | null;
}

function parts(
  before: string | undefined,
  year: string | undefined,
  month: number,
  day: string | undefined,
): DateParts | null {
  if (!(month >= 1 && month <= 12)) return null;
  const dayNumber = day === undefined ? null : Number(day);
  if (dayNumber !== null && (dayNumber < 1 || dayNumber > 31)) return null;
  return {
    before: before !== undefined,
    year: year === undefined ? null : Number(year),
    month,
    months: 1,
    day: dayNumber,
  };
}

function monthNumber(name: string | undefined): number {
  const start = (name ?? '').slice(0, 3).toLowerCase();
  return MONTHS.findIndex((month) => month.startsWith(start)) + 1;
}

/** Takes the dates out of a text; the one that ends last is the question's date. */
function takeDates(text: string, closesAtMs: number | null): { rest: string; date: Question['date'] } {
  let rest = text;
  let date: Question['date'] = null;
  for (const { form, read } of DATES) {
    rest = rest.replace(form, (whole: string, ...found: unknown[]) => {
      const dateParts = read(found.map((part) => (typeof part === 'string' ? part : undefined)));
      const span = dateParts === null ? null : spanOf(dateParts, closesAtMs);
      if (span === null) return whole;
      if (date === null || span.last > date.last) date = span;
      return ' ';
    });
  }
  return { rest, date };
}

/** A date as days since 1970. Without a year it is the one nearest to the closing time. */
function spanOf(date: DateParts, closesAtMs: number | null): { first: number; last: number } | null {
  const inYear = (year: number) => {
    const month = (date.month ?? 1) - 1;
    const first = Date.UTC(year, month, date.day ?? 1) / DAY_MS;
    const last = date.day === null ? Date.UTC(year, month + date.months, 1) / DAY_MS - 1 : first;
    return date.before ? { first: first - 1, last: first - 1 } : { first, last };
  };
  if (date.year !== null) return inYear(date.year);
  if (closesAtMs === null) return null;
  const closingYear = new Date(closesAtMs).getUTCFullYear();
  const distance = (span: { last: number }) => Math.abs(span.last * DAY_MS - closesAtMs);
  return [closingYear - 1, closingYear, closingYear + 1]
    .map(inYear)
    .reduce((best, span) => (distance(span) < distance(best) ? span : best));
}

function singular(word: string): string {
  return word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word;
}
