/**
 * `npm run bench -- --only names --list sdn.csv --list alt.csv`: how names are matched against a whole list of
 * sanctions, given as files of OFAC in its own layout without a header: how many common names of many countries have an
 * entry, how many aliases find their entry without being in the list, and how many spellings of the project's own find
 * theirs among all others.
 */
import { readFileSync } from 'node:fs';
import { indexNames, type NameIndex } from '../packages/catalogue/src/compliance/name-index.ts';
import { STRONG_SCORE } from '../packages/catalogue/src/compliance/name-match.ts';
import { pairsOf, SPELLINGS } from '../packages/catalogue/src/compliance/spellings.fixture.ts';
import { HELD_OUT } from '../packages/catalogue/src/compliance/spellings-held-out.fixture.ts';

/** Frequent given and family names of the US Social Security Administration and of the Census Bureau. */
const GIVEN = (
  'James Robert John Michael David William Richard Joseph Thomas Christopher Charles Daniel Matthew Anthony Mark ' +
  'Donald Steven Andrew Paul Joshua Kenneth Kevin Brian Timothy Ronald Mary Patricia Jennifer Linda Elizabeth Barbara ' +
  'Susan Jessica Karen Sarah Lisa Nancy Sandra Betty Ashley Emily Kimberly Margaret Donna Michelle Carol Amanda ' +
  'Melissa Deborah Stephanie'
).split(' ');
const FAMILY = (
  'Smith Johnson Williams Brown Jones Miller Davis Wilson Anderson Taylor Thomas Moore Jackson Martin Lee Thompson ' +
  'White Harris Clark Lewis Robinson Walker Young Allen King Wright Scott Hill Green Adams Nelson Baker Hall Campbell ' +
  'Mitchell Carter Roberts Phillips Evans Turner Parker Collins Edwards Stewart Morris Murphy Cook Rogers Morgan ' +
  'Cooper Peterson Reed Bailey Bell Kelly Howard Ward Cox Richardson Wood Watson Brooks Bennett Gray Hughes Price ' +
  'Myers Long Foster Sanders'
).split(' ');

/** Common given and family names of other places, from their statistical offices' public tables. */
const ELSEWHERE: Readonly<Record<string, readonly [given: string, family: string]>> = {
  Spanish: [
    'Jose Juan Luis Carlos Maria Ana Carmen Francisco Antonio Manuel Pedro Miguel Laura Rosa Jorge',
    'Garcia Rodriguez Gonzalez Fernandez Lopez Martinez Sanchez Perez Gomez Martin Ruiz Hernandez Diaz Moreno Alvarez',
  ],
  Arabic: [
    'Mohamed Ahmed Ali Hassan Hussein Omar Khaled Mahmoud Ibrahim Youssef Fatima Aisha Maryam Abdullah Mustafa',
    'Ali Hassan Ahmed Ibrahim Saleh Mansour Khalil Haddad Nasser Salem Hamdan Khoury Rahman Aziz Qasim',
  ],
  Chinese: [
    'Wei Fang Na Min Jing Lei Yang Yong Jun Jie Xiaoming Guoqiang Jianhua Zhiyong Meiling',
    'Wang Li Zhang Liu Chen Yang Huang Zhao Wu Zhou Xu Sun Ma Zhu Hu',
  ],
  Russian: [
    'Aleksandr Sergei Dmitri Andrei Aleksei Maksim Ivan Mikhail Nikolai Vladimir Olga Elena Natalia Anna Tatiana',
    'Ivanov Smirnov Kuznetsov Popov Vasiliev Petrov Sokolov Mikhailov Novikov Fedorov Morozov Volkov Alekseev Lebedev Semenov',
  ],
  Indian: [
    'Rajesh Amit Sanjay Vijay Rahul Priya Sunita Anil Suresh Ramesh Deepak Pooja Ravi Manoj Arjun',
    'Sharma Singh Kumar Gupta Patel Reddy Das Verma Yadav Joshi Mehta Shah Nair Rao Iyer',
  ],
  Vietnamese: [
    'Van Thi Minh Anh Hung Dung Hoa Lan Tuan Nam Duc Huong Linh Quang Thanh',
    'Nguyen Tran Le Pham Hoang Phan Vu Dang Bui Do Ho Ngo Duong Ly Truong',
  ],
  Korean: [
    'Min-jun Seo-yeon Ji-hoon Hyun-woo Jung-hee Young-ho Sang-hoon Mi-kyung Eun-ji Soo-jin Dong-hyun Ji-young Kyung-soo Yong-chul In-su',
    'Kim Lee Park Choi Jung Kang Cho Yoon Jang Lim Han Oh Seo Shin Kwon',
  ],
  German: [
    'Hans Peter Klaus Jürgen Andreas Thomas Sabine Petra Monika Stefan Michael Julia Anna Lukas Jonas',
    'Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Koch Bauer Richter Klein Wolf',
  ],
};
/** Aliases are many, and each is looked up in the whole list. */
const EACH_ALIAS = 12;
/** As many as `compliance-check` takes. */
const MOST_HITS = 2_000;

interface ListedName {
  /** The number of the entry. */
  owner: string;
  name: string;
  alias: boolean;
}

/** The names of a file: the fourth column of aliases, the second of entries. */
function namesOf(file: string): ListedName[] {
  return readFileSync(file, 'latin1')
    .split('\n')
    .map((line) => [...line.matchAll(/(?:^|,)(?:"([^"]*)"|([^,]*))/g)].map(([, a, b]) => a ?? b ?? ''))
    .map((columns) => {
      const alias = /^\d+$/.test(columns[1] ?? '');
      return { owner: columns[0] ?? '', name: (alias ? columns[3] : columns[1]) ?? '', alias };
    })
    .filter(({ name }) => name !== '');
}

/** Of how many common names the list has an entry to review, or a strong one. */
async function measureCommon(
  index: NameIndex<string>,
  of: string,
  asked: readonly string[],
): Promise<string> {
  let [review, strong] = [0, 0];
  const askedAt = performance.now();
  for (const name of asked) {
    const [best] = await index.search(name);
    if (best === undefined) continue;
    if (best.score >= STRONG_SCORE) strong += 1;
    else review += 1;
  }
  const eachMs = Math.round((performance.now() - askedAt) / asked.length);
  return `of ${asked.length} common ${of} names ${percentOf(review, asked.length)} have an entry to review and ${percentOf(strong, asked.length)} a strong one; ${eachMs} ms a name\n`;
}

/** How many aliases find their entry by its other names, of all and of those that share a word with one of them. */
async function measureAliases(index: NameIndex<string>, listed: readonly ListedName[]): Promise<string> {
  const names = Map.groupBy(listed, ({ owner }) => owner);
  let [asked, found, sharing, foundSharing] = [0, 0, 0, 0];
  for (const { owner, name } of listed
    .filter(({ alias }) => alias)
    .filter((_, at) => at % EACH_ALIAS === 0)) {
    const others = (names.get(owner) ?? []).filter((other) => other.name !== name);
    const shares = others.some((other) => wordsOf(other.name).some((word) => wordsOf(name).includes(word)));
    const hits = await index.search(name, { most: MOST_HITS });
    const hit = hits.some((of) => of.owner === owner && of.name !== name);
    asked += 1;
    if (hit) found += 1;
    if (shares) sharing += 1;
    if (shares && hit) foundSharing += 1;
  }
  return `of ${asked} aliases ${percentOf(found, asked)} find their entry by its other names; of the ${sharing} that share a word with one of them ${percentOf(foundSharing, sharing)}\n`;
}

function wordsOf(name: string): string[] {
  return name.toLowerCase().match(/\p{L}{3,}/gu) ?? [];
}

/** How many of the project's own spellings find their name among all names of the list. */
async function measureSpellings(
  listed: readonly ListedName[],
  of: string,
  groups: Readonly<Record<string, string>>,
): Promise<string> {
  const pairs = Object.values(groups).flatMap(pairsOf);
  const own = [...new Set(pairs.map((pair) => pair.listed))].map((name) => ({ owner: `own ${name}`, name }));
  const index = await indexNames([...listed, ...own]);
  let found = 0;
  for (const pair of pairs) {
    const hits = await index.search(pair.asked, { most: MOST_HITS });
    if (hits.some(({ owner }) => owner === `own ${pair.listed}`)) found += 1;
  }
  return `of ${pairs.length} ${of} spellings ${percentOf(found, pairs.length)} find their name among all of the list\n`;
}

function percentOf(count: number, all: number): string {
  return `${((100 * count) / all).toFixed(1)} %`;
}

/** Every given name with every family name. */
function together(given: readonly string[], family: readonly string[]): string[] {
  return given.flatMap((first) => family.map((last) => `${first} ${last}`));
}

/**
 * Looks common names, aliases and spellings up in a list.
 *
 * @param files paths of the list's files
 * @returns lines that say what was found, and how long a look-up took
 */
export async function measureNames(files: readonly string[]): Promise<string> {
  const listed = files.flatMap(namesOf);
  const readAt = performance.now();
  const index = await indexNames(listed);
  const lines = [`${index.names} names read in ${Math.round(performance.now() - readAt)} ms\n`];
  // A third of the pairs, spread evenly.
  const american = GIVEN.flatMap((given, at) =>
    FAMILY.filter((_, also) => (at + also) % 3 === 0).map((family) => `${given} ${family}`),
  );
  lines.push(await measureCommon(index, 'US', american));
  for (const [of, [given, family]] of Object.entries(ELSEWHERE)) {
    lines.push(await measureCommon(index, of, together(given.split(' '), family.split(' '))));
  }
  lines.push(await measureAliases(index, listed));
  lines.push(await measureSpellings(listed, 'known', SPELLINGS));
  lines.push(await measureSpellings(listed, 'held-out', HELD_OUT));
  return lines.join('');
}
