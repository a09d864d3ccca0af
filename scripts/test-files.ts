/** Which test files there are, what each of them needs, and in which order they are run. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { keptSeconds, LONG_FROM_SECONDS, listedSeconds } from './test-seconds.ts';

/** A file that imports this starts programs of the server, which are bundled for it. */
const PROGRAM_PART = 'apps/shop/test/programs.fixture.ts';
/** A file that imports this starts servers as processes of their own. */
const SERVER_PART = 'apps/shop/test/fire/server-process.fixture.ts';
/** Imports that take seconds to start, by path from the root or by the package's name. */
const SLOW_PARTS = ['packages/sandbox/src/chain/anvil.ts', SERVER_PART, 'playwright-core'];
/** Tests in this folder take minutes, whatever they import. */
const SLOW_FOLDER = 'apps/shop/test/fire/';
/** A file that imports this has a database. */
const DATABASE_PART = 'apps/shop/test/database.fixture.ts';
/** A file that imports this can be run for hours. */
const DEEP_PART = 'apps/shop/test/fire/depth.fixture.ts';
/** A file that changes its clock, its environment or what is global does so to every file in its process. */
const OF_PROCESS =
  /\bmock\.timers\.|\bmock\.method\(globalThis\b|\bprocess\.env\b\S* = |\bObject\.assign\(process\.env\b|\bglobalThis\.\w+ = |\bprocess\.chdir\(/;
/** Files that run in one process. What they leave behind in it adds up. */
const MAX_BATCH = 12;
const BATCHES_PER_LANE = 4;

export interface TestFile {
  /** Path from the root of the repository, with `/`. */
  path: string;
  needsDatabase: boolean;
  needsServer: boolean;
  /** Whether `--quick` leaves it out. */
  isSlow: boolean;
  /** Whether it is part of `--deep`. */
  isDeep: boolean;
  /** How long it takes, as far as it is known; 0 where it is not, and it is not slow. */
  seconds: number;
  /** Whether it changes what is the process's, such as its clock or its environment, or takes long by itself. */
  isAlone: boolean;
}

/**
 * Finds the test files below a root, the longest first, so that no long one is left at the end.
 *
 * @param picked parts of paths; a file whose path contains one of them is found. Every file, when there are none
 */
export function findTestFiles(root: string, picked: readonly string[] = []): TestFile[] {
  const known: KnownImports = new Map();
  const listed = listedSeconds(root);
  const kept = keptSeconds(root);
  const found = listTestFiles(root)
    .filter((path) => picked.length === 0 || picked.some((part) => path.includes(part)))
    .map((path) => {
      const parts = partsOf(root, path, known);
      const has = (part: string) => parts.has(part);
      const isSlow = SLOW_PARTS.some(has) || path.startsWith(SLOW_FOLDER) || listed.has(path);
      const seconds = kept.get(path) ?? listed.get(path) ?? (isSlow ? LONG_FROM_SECONDS : 0);
      const isLong = (kept.get(path) ?? listed.get(path) ?? 0) >= LONG_FROM_SECONDS;
      return {
        path,
        seconds,
        isSlow,
        needsDatabase: has(DATABASE_PART),
        needsServer: has(PROGRAM_PART),
        isDeep: has(DEEP_PART),
        isAlone: isLong || path.startsWith(SLOW_FOLDER) || changesProcess(root, parts),
      };
    });
  return found.sort((a, b) => b.seconds - a.seconds || (a.path < b.path ? -1 : 1));
}

/** Whether a test file, or a fixture that it imports, changes what all files in its process share. */
function changesProcess(root: string, parts: ReadonlySet<string>): boolean {
  return [...parts].some(
    (part) => /\.(?:test|fixture)\.ts$/.test(part) && OF_PROCESS.test(readFileSync(join(root, part), 'utf8')),
  );
}

/**
 * Puts files together that may share a process, as they lie near one another and so import the same, and leaves the
 * others alone. The longest come first.
 *
 * @param lanes how many processes run at once; each gets several batches, so that none ends long after the others
 */
export function batchesOf(files: readonly TestFile[], lanes: number): TestFile[][] {
  const shared = files.filter(({ isAlone }) => !isAlone);
  const size = Math.max(1, Math.min(MAX_BATCH, Math.ceil(shared.length / (lanes * BATCHES_PER_LANE))));
  const alike = Map.groupBy(shared, ({ needsDatabase, isSlow }) => `${needsDatabase} ${isSlow}`);
  const batches = [...alike.values()].flatMap((group) => {
    const near = group.toSorted((a, b) => (a.path < b.path ? -1 : 1));
    return Array.from({ length: Math.ceil(near.length / size) }, (_, at) =>
      near.slice(at * size, (at + 1) * size),
    );
  });
  const alone = files.filter(({ isAlone }) => isAlone).map((file) => [file]);
  const seconds = (batch: readonly TestFile[]) => batch.reduce((sum, file) => sum + file.seconds, 0);
  return [...alone, ...batches].sort((a, b) => seconds(b) - seconds(a));
}

/** Lists the paths of all test files below a root, from there and with `/`. */
export function listTestFiles(root: string): string[] {
  return globSync(['{apps,packages,bench,scripts}/**/*.test.ts', 'contracts/*.test.ts'], {
    cwd: root,
    exclude: (name) => name === 'node_modules',
  }).map((path) => path.replaceAll('\\', '/'));
}

/** The imports of each file that was read. Most test files share most of what they import. */
type KnownImports = Map<string, readonly string[]>;

const FROM = /^(?:import|export)\s+(?!type\b)(?:[^;']*?\sfrom\s+)?'([^']+)'/gm;
const DYNAMIC = /\bimport\('([^']+)'\)/g;

/** Everything that a file imports, itself included, directly or not: paths of ours, and names of packages. */
export function partsOf(root: string, path: string, known: KnownImports = new Map()): Set<string> {
  const found = new Set([path]);
  // A set goes on over what is added to it meanwhile.
  for (const part of found) {
    const imports = known.get(part) ?? importsOf(root, part);
    known.set(part, imports);
    for (const name of imports) found.add(name);
  }
  return found;
}

function importsOf(root: string, path: string): readonly string[] {
  const absolute = join(root, path);
  if (!path.endsWith('.ts') || !existsSync(absolute)) return [];
  const text = readFileSync(absolute, 'utf8');
  return [FROM, DYNAMIC].flatMap((pattern) =>
    Array.from(text.matchAll(pattern), ([, name = '']) => {
      const [, ours, face] = /^@farebox\/([\w-]+)\/(.+)$/.exec(name) ?? [];
      if (ours !== undefined && face !== undefined) return fileOfFace(root, ours, face);
      if (!name.startsWith('.')) return name;
      return relative(root, join(dirname(absolute), name)).replaceAll('\\', '/');
    }),
  );
}

/** The file that a package of ours exports by a name; the name itself when there is none. */
function fileOfFace(root: string, name: string, face: string): string {
  const path = join(root, `packages/${name}/package.json`);
  if (!existsSync(path)) return face;
  const { exports = {} }: { exports?: Record<string, string> } = JSON.parse(readFileSync(path, 'utf8'));
  const file = exports[`./${face}`];
  return file === undefined ? face : `packages/${name}/${file.slice(2)}`;
}
