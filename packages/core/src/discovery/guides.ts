/** The guides: every file of the folder of documents, and the codes of errors that one of them declares. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Guide {
  /** Its file's name without the ending, such as `x402`. */
  name: string;
  title: string;
  /** Its first sentences; `backticks` mark code. */
  about: string;
  markdown: string;
  /** The part of the documents that its folder's table of contents has it in; null where there is none. */
  part: string | null;
}

/** A code of errors, as the guide `errors` declares it. */
export interface ErrorCode {
  code: string;
  /** The statuses that it comes with, in words. */
  status: string;
  /** A sentence on the event, and one on the remedy, as Markdown. */
  meaning: string;
  /** The part of the server that answers with it. */
  section: string;
}

export interface Guides {
  list: readonly Guide[];
  errors: ReadonlyMap<string, ErrorCode>;
  /** Pictures of the guides by their files' names. */
  pictures: ReadonlyMap<string, Buffer>;
}

export const NO_GUIDES: Guides = { list: [], errors: new Map(), pictures: new Map() };

/** The guide that declares the codes of errors. */
export const ERRORS_GUIDE = 'errors';
const CONTENTS = 'README.md';
const ROW = /^\| `([A-Z][A-Z_\d]+)` \| ([^|]+) \| (.+) \|$/;
const MOST_ABOUT_CHARACTERS = 200;

/**
 * Reads the guides of a folder, once, in the order of its table of contents, `README.md`; what that leaves out comes last.
 * @returns none where there is no such folder
 */
export function readGuides(folder: string): Guides {
  if (!existsSync(folder)) return NO_GUIDES;
  const files = readdirSync(folder).filter((file) => file.endsWith('.md'));
  const contents = files.includes(CONTENTS) ? contentsIn(readFileSync(join(folder, CONTENTS), 'utf8')) : [];
  const places = new Map(contents.map((entry, place) => [entry.name, { ...entry, place }]));
  const placeOf = ({ name }: Guide) => places.get(name)?.place ?? places.size;
  const list = files
    .filter((file) => file !== CONTENTS)
    .sort()
    .map((file) => {
      const name = file.slice(0, -'.md'.length);
      return guideOf(name, readFileSync(join(folder, file), 'utf8'), places.get(name));
    })
    .sort((a, b) => placeOf(a) - placeOf(b));
  const images = join(folder, 'images');
  const pictures = existsSync(images) ? readdirSync(images).filter((file) => file.endsWith('.svg')) : [];
  return {
    list,
    errors: errorsIn(list.find(({ name }) => name === ERRORS_GUIDE)?.markdown ?? ''),
    pictures: new Map(pictures.map((file) => [file, readFileSync(join(images, file))])),
  };
}

interface Entry {
  name: string;
  part: string;
  about: string;
}

/** The entries of a table of contents: links in lists below headings, with a line about each. */
function contentsIn(markdown: string): readonly Entry[] {
  let part = '';
  return markdown.split('\n').flatMap((line) => {
    part = /^## (.+)$/.exec(line)?.[1] ?? part;
    const [, name, about] = /^- \[[^\]]+\]\(([\w-]+)\.md\): (.+)$/.exec(line) ?? [];
    return name === undefined || about === undefined ? [] : [{ name, part, about }];
  });
}

function guideOf(name: string, markdown: string, entry?: Entry): Guide {
  const title = /^# (.+)$/m.exec(markdown)?.[1] ?? name;
  if (entry !== undefined) return { name, title, about: entry.about, markdown, part: entry.part };
  const paragraph = markdown.split(/\n{2,}/).find((part) => /^[\p{L}`*[]/u.test(part)) ?? '';
  const about = paragraph
    .replace(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replaceAll('*', '')
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/:$/, '.');
  // Whole sentences, the first of them in any case.
  const sentences = about.split(/(?<=\.) /);
  const [first = '', ...others] = sentences;
  const told = others.reduce(
    (text, next) => (text.length + next.length < MOST_ABOUT_CHARACTERS ? `${text} ${next}` : text),
    first,
  );
  return { name, title, about: told, markdown, part: null };
}

function errorsIn(markdown: string): ReadonlyMap<string, ErrorCode> {
  const errors = new Map<string, ErrorCode>();
  let section = '';
  for (const line of markdown.split('\n')) {
    section = /^## (.+)$/.exec(line)?.[1] ?? section;
    const [, code, status = '', meaning = ''] = ROW.exec(line) ?? [];
    if (code !== undefined) errors.set(code, { code, status, meaning, section });
  }
  return errors;
}
