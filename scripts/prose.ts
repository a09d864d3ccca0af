/**
 * Measures how many doc comments begin with a riddle: a word that hangs in the air until the rest of the sentence, and often the code, has been
 * read. scripts/prose.json notes the share that each folder may have, which only falls.
 */
import { globSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';

/** No folder may have a larger share of riddles, in percent. */
export const MOST_RIDDLES_PERCENT = 12;

/** A share that needs to fall no further: in a small folder it is a single comment. */
const FEW_RIDDLES_PERCENT = 4;

/**
 * The words that a first sentence must not begin with. Left out on purpose: "Whether the …", by which a boolean is told; "How many …" and other
 * "How …", by which a number or a manner is told; "Where …" and "When …", by which a place or a time is told; and "Why …", by which a reason is.
 */
const DANGLING: ReadonlySet<string> = new Set([
  ...['As', 'By', 'For', 'If', 'Neither', 'Nobody', 'None', 'Not', 'Nothing', 'Of', 'Only'],
  ...['Until', 'What', 'Whatever', 'Who', 'Whoever', 'Whom', 'Whose', 'Without'],
]);

/** One folder's doc comments: how many there are, which of them begin with a riddle, and their share in percent. */
interface Prose {
  comments: number;
  /** Path, line and first words of each. */
  riddles: string[];
  percent: number;
}

/** The prose of every folder that has doc comments, by its path. What a test has fetched below itself is not ours. */
export function proseByFolder(root: string): Record<string, Prose> {
  const folders = new Map<string, { comments: number; riddles: string[] }>();
  for (const found of globSync('{apps/*/{src,test},packages/*/src,scripts}/**/*.ts', { cwd: root })) {
    const path = found.replaceAll(sep, '/');
    if (path.includes('/node_modules/')) continue;
    const folder = folderOf(path);
    const prose = folders.get(folder) ?? { comments: 0, riddles: [] };
    for (const { line, text } of docComments(readFileSync(join(root, found), 'utf8'))) {
      prose.comments += 1;
      if (isRiddle(text)) prose.riddles.push(`${path}:${line} ${text.slice(0, 60)}`);
    }
    if (prose.comments > 0) folders.set(folder, prose);
  }
  const rows = [...folders].map(([folder, prose]): [string, Prose] => [
    folder,
    { ...prose, percent: (100 * prose.riddles.length) / prose.comments },
  ]);
  return Object.fromEntries(rows.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The share that a folder is noted with, in whole percent, when it has this one. */
export function notedPercent({ percent }: Pick<Prose, 'percent'>): number {
  return Math.max(FEW_RIDDLES_PERCENT, Math.ceil(percent));
}

/** Tells whether the text of a doc comment begins with a word that hangs in the air. */
export function isRiddle(text: string): boolean {
  return DANGLING.has(/^\w+/.exec(text)?.[0] ?? '');
}

/** The folder that a file counts for: one below the source of core and catalogue, else all of a package's source. */
function folderOf(path: string): string {
  const [, folder = ''] =
    /^(packages\/(?:core|catalogue)\/src\/[\w-]+|\w+\/[\w-]+\/(?:src|test)|scripts)\//.exec(path) ??
    /^(\w+\/[\w-]+\/src)\//.exec(path) ??
    [];
  return folder;
}

/** The doc comments of a file: the line that each begins on, and its text in one line. */
function docComments(source: string): { line: number; text: string }[] {
  return [...source.matchAll(/\/\*\*(?!\/)([\s\S]*?)\*\//g)].map(({ 0: whole, index }) => ({
    line: source.slice(0, index).split('\n').length,
    text: whole
      .slice(3, -2)
      .replaceAll(/\s*\n\s*\*?\s*/g, ' ')
      .trim(),
  }));
}
