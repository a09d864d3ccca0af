/** Which rules of the base touch an operation in some jurisdictions. Pure. */
import { JURISDICTIONS, type Jurisdiction, type Rule, SUBJECTS, type Subject } from './rule.ts';
import { RULES } from './rules.ts';

/** Words by which callers name what the base calls a subject. The first that fits counts. */
const SUBJECT_WORDS: readonly (readonly [Subject, RegExp])[] = [
  ['tax-reporting', /\b(tax|taxes|dac ?8|carf)\b/],
  ['sanctions', /\b(sanctions?|ofac|screening|embargo(es)?)\b/],
  ['personal-data', /\b(personal data|data protection|privacy|gdpr|data processing)\b/],
  ['marketing', /\b(marketing|advertis\w*|promotions?|promoting)\b/],
  ['stablecoin-issuance', /\b(stable ?coins?|e-?money tokens?|asset referenced tokens?)\b/],
  [
    'token-offering',
    /\b(ico|ieo|token (sale|offering|issuance|launch)|securit(y|ies) (token|offering)|public offer\w*)\b/,
  ],
  ['custody', /\b(custod\w*|wallet (provider|hosting|service)|safekeeping)\b/],
  [
    'crypto-exchange',
    /\b(exchanges?|trading( platform)?|brokerage|broker|otc|swaps?|dex|vasp|casp|crypto(currency|asset)?( business| services?)?)\b/,
  ],
  [
    'payments',
    /\b(payments?|remittances?|money (transmission|transmitter|transfer|services?)|msb|transfers?|cross border|payment processing)\b/,
  ],
];

const JURISDICTION_WORDS: readonly (readonly [Jurisdiction, RegExp])[] = [
  ['US-NY', /^(us[- ]?ny|new york|ny|nyc|new york state)$/],
  ['US-CA', /^(us[- ]?ca|california|calif|state of california)$/],
  ['US-LA', /^(us[- ]?la|louisiana|state of louisiana)$/],
  ['US-IL', /^(us[- ]?il|illinois|state of illinois)$/],
  ['US', /^(us|usa|u\.s\.a?\.?|united states( of america)?|america)$/],
  ['EU', /^(eu|e\.u\.|european union|europe|eea)$/],
  ['UK', /^(uk|u\.k\.|gb|united kingdom|great britain|britain|england)$/],
  ['SG', /^(sg|singapore)$/],
  ['HK', /^(hk|hong kong)$/],
  ['JP', /^(jp|japan)$/],
  ['CH', /^(ch|switzerland|swiss)$/],
  ['CA', /^(ca|canada)$/],
  ['AU', /^(au|australia)$/],
  ['AE', /^(ae|uae|u\.a\.e\.|dubai|united arab emirates)$/],
  ['INTL', /^(intl|international|global|worldwide|fatf|any|all)$/],
];
/** Members of the Union, whose own laws beside its law the base does not hold. */
const MEMBER_STATES =
  /^(at|austria|be|belgium|bg|bulgaria|hr|croatia|cy|cyprus|cz|czechia|czech republic|dk|denmark|ee|estonia|fi|finland|fr|france|de|germany|gr|greece|hu|hungary|ie|ireland|it|italy|lv|latvia|lt|lithuania|lu|luxembourg|mt|malta|nl|netherlands|pl|poland|pt|portugal|ro|romania|sk|slovakia|si|slovenia|es|spain|se|sweden)$/;

/** What an operation is about, in the base's words; empty when it holds nothing of it. */
export function subjectsOf(operation: string): Subject[] {
  const plain = operation.toLowerCase().replace(/[_-]+/g, ' ').replace(/\s+/g, ' ').trim();
  const exact = (Object.keys(SUBJECTS) as Subject[]).find((subject) => subject.replace(/-/g, ' ') === plain);
  if (exact !== undefined) return [exact];
  return SUBJECT_WORDS.filter(([, words]) => words.test(plain)).map(([subject]) => subject);
}

export interface NamedJurisdiction {
  asked: string;
  /** Null: the base holds nothing of it. */
  jurisdiction: Jurisdiction | null;
  /** True for a state whose law is held only as far as it is the Union's. */
  memberState: boolean;
}

/** Reads the name of a jurisdiction: a name, a short form, or a member of the European Union. */
export function jurisdictionOf(asked: string): NamedJurisdiction {
  const plain = asked.toLowerCase().replace(/\s+/g, ' ').trim();
  const found = JURISDICTION_WORDS.find(([, words]) => words.test(plain))?.[0] ?? null;
  const memberState = found === null && MEMBER_STATES.test(plain);
  return { asked, jurisdiction: memberState ? 'EU' : found, memberState };
}

/** Those of the states of America whose own law the base holds. */
export const STATES: readonly Jurisdiction[] = ['US-NY', 'US-CA', 'US-LA', 'US-IL'];

/** The rules that touch some subjects in some jurisdictions, those of the place first and the international ones last. */
export function rulesFor(subjects: readonly Subject[], jurisdictions: readonly Jurisdiction[]): Rule[] {
  // A state's law stands beside the federal one.
  const places = new Set<Jurisdiction>(jurisdictions);
  if (STATES.some((state) => places.has(state))) places.add('US');
  const matching = RULES.filter(({ subjects: of }) => of.some((subject) => subjects.includes(subject)));
  const own = matching.filter(({ jurisdiction }) => places.has(jurisdiction) && jurisdiction !== 'INTL');
  return [...own, ...matching.filter(({ jurisdiction }) => jurisdiction === 'INTL')];
}

/**
 * Whether a rule applied on a day, by its own dates; null when something that the base does not follow decides it.
 *
 * @param day YYYY-MM-DD
 */
export function inForceOn({ begins }: Rule, day: string): boolean | null {
  if (begins === undefined || day >= begins.date) return true;
  return begins.orEarlier === undefined ? false : null;
}

/** What the base holds, in words. */
export function covered(): { subjects: string; jurisdictions: string } {
  return {
    subjects: Object.entries(SUBJECTS)
      .map(([subject, meaning]) => `${subject} (${meaning})`)
      .join('; '),
    jurisdictions: Object.entries(JURISDICTIONS)
      .map(([code, name]) => `${code} (${name})`)
      .join(', '),
  };
}
