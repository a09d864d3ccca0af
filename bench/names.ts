/**
 * `npm run bench -- --only names --list sdn.csv --list alt.csv`: how names are matched against a whole list of
 * sanctions, given as files of OFAC in its own layout without a header.
 */
import { readFileSync } from 'node:fs';
import { indexNames } from '../apps/server/src/compliance/name-index.ts';
import { STRONG_SCORE } from '../apps/server/src/compliance/name-match.ts';

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

/** The names of a file: the third column of aliases, the second of entries. */
function namesOf(file: string): string[] {
  return readFileSync(file, 'latin1')
    .split('\n')
    .map((line) => [...line.matchAll(/(?:^|,)(?:"([^"]*)"|([^,]*))/g)].map(([, a, b]) => a ?? b ?? ''))
    .map((columns) => (/^\d+$/.test(columns[1] ?? '') ? columns[3] : columns[1]) ?? '')
    .filter((name) => name !== '');
}

/**
 * Looks common US names up in a list.
 *
 * @param files paths of the list's files
 * @returns a line that says how many names have an entry to review, how many a strong one, and how long a look-up took
 */
export async function measureNames(files: readonly string[]): Promise<string> {
  const listed = files.flatMap(namesOf);
  const readAt = performance.now();
  const index = await indexNames(listed.map((name) => ({ owner: name, name })));
  const readMs = Math.round(performance.now() - readAt);
  let [asked, review, strong] = [0, 0, 0];
  const askedAt = performance.now();
  for (const [at, given] of GIVEN.entries()) {
    for (const [also, family] of FAMILY.entries()) {
      // A third of the pairs, spread evenly.
      if ((at + also) % 3 !== 0) continue;
      asked += 1;
      const [best] = await index.search(`${given} ${family}`);
      if (best === undefined) continue;
      if (best.score >= STRONG_SCORE) strong += 1;
      else review += 1;
    }
  }
  const eachMs = Math.round((performance.now() - askedAt) / asked);
  return `${index.names} names read in ${readMs} ms; of ${asked} common US names ${review} have an entry to review and ${strong} a strong one; ${eachMs} ms a name\n`;
}
