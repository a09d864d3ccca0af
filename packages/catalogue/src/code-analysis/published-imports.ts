/** Finds what source imports without sending it: files of published packages that are installed beside the product. */
import { readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { withoutComments } from './comments.ts';
import { requireCompilers } from './compilers.ts';

/** More files or bytes than these are not added to one source. */
const MAX_FILES = 300;
const MAX_BYTES = 3_000_000;

/** A published package under the names by which source imports it. */
interface Published {
  /** The text in front of the path of a file. The first group is the version that the source names, if it names one. */
  prefix: RegExp;
  /** Packages that may be meant, the newest first, with the folder of the package in which their files are. */
  editions: readonly { module: string; folder: string }[];
}

const PUBLISHED: readonly Published[] = [
  {
    prefix: /^@openzeppelin\/contracts-upgradeable(?:@v?([\d.]+))?\//,
    editions: [
      { module: '@openzeppelin/contracts-upgradeable', folder: '' },
      { module: 'openzeppelin-upgradeable-4', folder: '' },
    ],
  },
  {
    prefix:
      /^(?:lib\/)?(?:@openzeppelin\/contracts(?:@v?([\d.]+))?|(?:@openzeppelin|openzeppelin-contracts|openzeppelin-solidity|openzeppelin)(?:\/contracts)?)\//,
    editions: [
      { module: '@openzeppelin/contracts', folder: '' },
      { module: 'openzeppelin-4', folder: '' },
      { module: 'openzeppelin-3', folder: '' },
    ],
  },
  {
    prefix: /^https:\/\/github\.com\/OpenZeppelin\/openzeppelin-contracts\/blob\/[^/]+\/contracts\//,
    editions: [
      { module: '@openzeppelin/contracts', folder: '' },
      { module: 'openzeppelin-4', folder: '' },
      { module: 'openzeppelin-3', folder: '' },
    ],
  },
  {
    prefix: /^(?:lib\/)?@?(?:rari-capital\/)?solmate(?:\/src)?\//,
    editions: [{ module: 'solmate', folder: 'src' }],
  },
  { prefix: /^(?:lib\/)?@?solady(?:\/src)?\//, editions: [{ module: 'solady', folder: 'src' }] },
];

const IMPORT = /\bimport\b[^;]{0,2000};/g;
const QUOTED = /["']([^"'\n]{1,300})["']/;
const FILE = /^(?:[\w@.-]+\/)*[\w.-]+\.sol$/;

/** The files that a set of sources needs, of one choice of editions. */
export interface Borrowed {
  /** Text by the name under which the compiler looks for it. */
  files: Record<string, string>;
  /** The packages that they are of, as `name version`. */
  packages: string[];
}

/**
 * Finds the files of published packages that sources import and that are not among them: one answer for each generation of
 * the packages that has all of them, the newest first; empty when nothing is imported or something is not to be had.
 */
export function publishedImports(
  sources: Readonly<Record<string, string>>,
  remappings: readonly string[],
): Borrowed[] {
  const generations = Math.max(...PUBLISHED.map(({ editions }) => editions.length));
  const found: Borrowed[] = [];
  for (let generation = 0; generation < generations; generation++) {
    const borrowed = ofGeneration(sources, remappings, generation);
    const known = found.some(({ packages }) => packages.join() === borrowed?.packages.join());
    if (borrowed !== null && borrowed.packages.length > 0 && !known) found.push(borrowed);
  }
  return found;
}

function ofGeneration(
  sources: Readonly<Record<string, string>>,
  remappings: readonly string[],
  generation: number,
): Borrowed | null {
  const files: Record<string, string> = {};
  const packages = new Set<string>();
  const open = Object.entries(sources);
  let bytes = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [importer, text] = next;
    for (const path of importsOf(text)) {
      const asked = path.startsWith('.') ? posix.join(posix.dirname(importer), path) : path;
      const name = path.startsWith('.') ? asked : remapped(asked, remappings);
      if (name in sources || name in files) continue;
      const file = publishedFile(asked, generation) ?? publishedFile(name, generation);
      if (file === null) return null;
      bytes += file.text.length;
      if (Object.keys(files).length >= MAX_FILES || bytes > MAX_BYTES) return null;
      files[name] = file.text;
      packages.add(file.from);
      open.push([name, file.text]);
    }
  }
  return { files, packages: [...packages].sort() };
}

/** The paths that a text imports; none of its comments and strings. */
function importsOf(text: string): string[] {
  return [...withoutComments(text).matchAll(IMPORT)].flatMap(({ index, 0: statement }) => {
    const quoted = QUOTED.exec(text.slice(index, index + statement.length));
    return quoted?.[1] === undefined ? [] : [quoted[1]];
  });
}

function remapped(path: string, remappings: readonly string[]): string {
  const fitting = remappings
    .map((each) => /^(?:[^:=]*:)?([^=]+)=(.*)$/.exec(each))
    .flatMap((match) => (match?.[1] !== undefined && path.startsWith(match[1]) ? [match] : []))
    .sort((a, b) => String(b[1]).length - String(a[1]).length)[0];
  return fitting === undefined ? path : `${fitting[2] ?? ''}${path.slice(String(fitting[1]).length)}`;
}

/** One file of a published package; null where the path is none of theirs, or the package is not installed. */
function publishedFile(path: string, generation: number): { text: string; from: string } | null {
  for (const { prefix, editions } of PUBLISHED) {
    const match = prefix.exec(path);
    if (match === null) continue;
    const rest = path.slice(match[0].length);
    if (!FILE.test(rest) || rest.split('/').includes('..')) return null;
    const edition = editions[Math.min(generation, editions.length - 1)];
    if (edition === undefined) return null;
    try {
      const require = requireCompilers();
      const manifest = require.resolve(`${edition.module}/package.json`);
      const { name, version }: { name: string; version: string } = require(manifest);
      return {
        text: readFileSync(join(dirname(manifest), edition.folder, rest), 'utf8'),
        from: `${name} ${version}`,
      };
    } catch {
      return null;
    }
  }
  return null;
}
