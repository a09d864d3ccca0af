/** Which services a text is about: a full-text search over what services say of themselves and how people ask for them. */
import MiniSearch from 'minisearch';
import { stemmer } from 'stemmer';
import type { Service } from './define.ts';
import { inputSchemaOf, propertiesOf } from './json-schema.ts';

/** What of a text is read. */
const MAX_CHARACTERS = 2_000;
const MAX_WORDS = 60;

/** Words of questions that say nothing about what is asked for. */
const EMPTY = new Set(
  `a about all also am an and any are as at be been being both but by can could did do does doing done each either else every for from
  get gets getting give gives go goes going got had has have having he help her here him his how i if in into is it its itself just kind
  know let like likely make makes many may me mine might more most much must my need needs no not now of off on one ones onto or other
  our ours out over per please right she should show so some somebody someone something such tell than thank thanks that the
  their them then there these they thing things this those through to too up us use used using very via want wants was we were what
  when where whether which while who whose why will with within without would yes you your yours
  today tonight tomorrow yesterday now currently current moment recent recently latest last next past week month day days year years
  der die das und ist wie le la les est et que el los una por`.split(/\s+/),
);

/** How much a word counts by where it stands. */
const BOOST = { path: 3, name: 3, keywords: 2, summary: 1.5, tag: 1, fields: 0.4 };

interface Indexed {
  id: number;
  path: string;
  name: string;
  keywords: string;
  summary: string;
  tag: string;
  fields: string;
}

const indexes = new WeakMap<readonly Service[], MiniSearch<Indexed>>();

/** The best is clear when it fits by so much more than the next. */
const CLEARLY_MORE = 1.5;

/**
 * The services that a text is about, best first; none when no word of it stands anywhere.
 *
 * @param words as somebody would type them into a search box, or a whole question
 * @param services those that are looked through. The index is kept as long as the list
 * @param isWanted which of them may be found
 */
export function fittingBest(
  words: string,
  services: readonly Service[],
  most: number,
  isWanted: (service: Service) => boolean = () => true,
): readonly Service[] {
  return scored(words, services)
    .map(({ service }) => service)
    .filter(isWanted)
    .slice(0, most);
}

/**
 * The services that a text is about, as `fittingBest` finds them, and the one that it is clearly about: null when none fits,
 * or the next one fits nearly as well.
 */
export function fittingWith(
  words: string,
  services: readonly Service[],
  most: number,
): { fitting: readonly Service[]; winner: Service | null } {
  const found = scored(words, services);
  const [best, next] = found;
  const isClear = best !== undefined && (next === undefined || best.score >= CLEARLY_MORE * next.score);
  return {
    fitting: found.slice(0, most).map(({ service }) => service),
    winner: isClear ? best.service : null,
  };
}

/** What a text is about, best first, by a score that grows with how well it fits; the one that it names before all others. */
function scored(words: string, services: readonly Service[]): { service: Service; score: number }[] {
  const read = words.slice(0, MAX_CHARACTERS);
  const name = read.trim().toLowerCase().replaceAll(/[_ ]/g, '-');
  const named = services.find(({ path }) => path === name);
  const found = indexOf(services)
    .search(wordsIn(read).slice(0, MAX_WORDS).join(' '))
    .flatMap(({ id, score }) => {
      const service = services[id as number];
      return service === undefined ? [] : [{ service, score }];
    });
  if (named === undefined) return found;
  return [
    { service: named, score: Number.POSITIVE_INFINITY },
    ...found.filter(({ service }) => service !== named),
  ];
}

function indexOf(services: readonly Service[]): MiniSearch<Indexed> {
  const known = indexes.get(services);
  if (known !== undefined) return known;
  const index = new MiniSearch<Indexed>({
    fields: Object.keys(BOOST),
    tokenize: wordsIn,
    processTerm: termOf,
    searchOptions: {
      boost: BOOST,
      prefix: (term) => term.length >= 4,
      fuzzy: (term) => (term.length >= 5 ? 0.2 : false),
      weights: { prefix: 0.3, fuzzy: 0.1 },
    },
  });
  index.addAll(services.map(indexed));
  indexes.set(services, index);
  return index;
}

function indexed(service: Service, id: number): Indexed {
  const { path, name, keywords, summary, tag } = service;
  const fields = Object.entries(propertiesOf(inputSchemaOf(service))).map(
    ([field, { description }]) =>
      `${field.replaceAll(/([A-Z])/g, ' $1')} ${typeof description === 'string' ? description : ''}`,
  );
  return { id, path, name, keywords, summary, tag, fields: fields.join(' ') };
}

function wordsIn(text: string): string[] {
  const plain = text
    .slice(0, MAX_CHARACTERS)
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/(\p{L})['’]s\b/gu, '$1');
  return plain.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** A word in the form that all its forms have, and as it stands, so that its beginning finds it too; null: it says nothing. */
function termOf(word: string): string[] | null {
  return EMPTY.has(word) ? null : [...new Set([stemmer(word), word])];
}
