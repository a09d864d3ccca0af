/**
 * `node scripts/bundle.ts FOLDER`: writes the server into a folder, as one package without dependencies. The code is bundled, with that of
 * every package that it stands on; the files that it reads lie there where they lie in this repository, and what a module asks about its
 * own place is answered with that place. What bundles is esbuild, the usual one for Node: it shares code between many programs, which
 * each service and each thread is. It is installed below `tools/bundle/` on first use.
 *
 * With `--here=server` or `--here=sandbox` the folder is for the commands of this repository, which start from it
 * (`packages/process/src/built.mjs`): the files of others' packages are read where they are installed. The sandbox has the server in it.
 */
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, posix, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { installApart } from '../apps/shop/test/kept-apart.fixture.ts';
import { neededPackages } from '../packages/process/src/npm-packages.mjs';
import { SOURCES } from './packages.ts';

const ROOT = join(import.meta.dirname, '..');
const SHOP = 'apps/shop';
const SANDBOX = 'packages/sandbox';
/** The packages that the server is made of, `packages/process` with them. */
const SERVER = ['packages/process', ...SOURCES.map((source) => dirname(source))];

/** The files that are read as the server runs, from the root of the repository. */
const CARRIED = [
  'LICENSE',
  'docs/*.md',
  'docs/images/*.svg',
  'packages/core/web/*.{html,js,css,svg,png,woff2,txt}',
  'contracts/{src/**,test}/*.sol',
];
/** Files of a package that are read, and those that say which tools it installs on first use. */
const readIn = (folder: string) => `${folder}/src/**/*.{sql,json,sol,so,gz}`;
const toolsOf = (folder: string) => `${folder}/tools/*/package{,-lock}.json`;
/** What a bundle is made of. */
interface Contents {
  /** The packages of this repository inside. */
  folders: readonly string[];
  /** Those of them whose dependencies are inside as well. */
  entries: readonly string[];
  /** Files of source that are started or loaded by their names, beside those that are found. */
  named: readonly string[];
  /** The way from the bundle to this repository, where others' packages are read as they are installed; null: all files are carried. */
  wayHere: string | null;
  /** Packages that are loaded from where they are installed. */
  outside: readonly string[];
}
const PACKED: Contents = { folders: SERVER, entries: [SHOP], named: [], wayHere: null, outside: [] };
/** @param into the folder of the bundle */
const serverHere = (into: string): Contents => ({ ...PACKED, wayHere: posixPath(relative(into, ROOT)) });
const sandboxHere = (into: string): Contents => ({
  folders: [...SERVER, SANDBOX],
  entries: [SHOP, SANDBOX],
  named: [
    ...['start', 'run', 'backup', 'restore', 'wallet', 'warp', 'reset'].map(
      (name) => `${SANDBOX}/src/${name}.ts`,
    ),
    // The sandbox loads these of the server by their names.
    `${SHOP}/src/app.ts`,
    `${SHOP}/src/commands/beside-start.ts`,
    'packages/catalogue/src/services/registry.ts',
    'packages/core/src/rails/x402/held-key.ts',
    'packages/core/src/relayer/signer-process.ts',
  ],
  wayHere: posixPath(relative(into, ROOT)),
  // It carries machine code.
  outside: ['litesvm'],
});
const LONGEST_LINE = 200;
const OF_TESTS = /\.(test|fixture)\.\w+$/;
/** Where files of others' packages go: npm packs no folder that is named `node_modules`. */
const OTHERS = 'vendor';
/** Others' modules that ask where they lie, with the files beside them that the server has them read. */
const PLACED: Readonly<Record<string, readonly string[]>> = {
  'secp256k1/bindings.js': ['prebuilds/*/*.node'],
  // These read nothing: an address that nobody opens, lines of traces of errors, the threads of a logger that writes without any,
  // and an example in a comment.
  '@solidity-parser/parser/dist/index.cjs.js': [],
  'undici/index.js': [],
  'pino/lib/transport.js': [],
  'thread-stream/index.js': [],
  'qlobber/lib/qlobber.js': [],
};
/** The file of a thread or a process, as its starter names it. */
const STARTED = /(?<=(?:new URL\(|join\(import\.meta\.dirname, )')([\w./-]*program)\.ts(?=')/g;
const NAMES_SOURCE = /(?:new URL\(|join\(import\.meta\.dirname, )'[\w./-]+\.ts'/;
const ASKS_PLACE = /\bimport\.meta\.|\b__(?:dir|file)name\b/;
const PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;
const LICENCE = /^(?:licen[cs]e|copying|notice)/i;

interface Bundled {
  outputFiles: readonly { path: string; text: string }[];
  metafile: {
    inputs: Readonly<Record<string, { format?: 'cjs' | 'esm' }>>;
    outputs: Readonly<Record<string, { entryPoint?: string; inputs: Readonly<Record<string, unknown>> }>>;
  };
}
interface Builder {
  onLoad(
    files: { filter: RegExp },
    load: (file: { path: string }) => { contents: string; loader: 'js' | 'ts' } | null,
  ): void;
}
/** The part of esbuild that is used here: its own types are installed with it, on first use. */
interface Bundler {
  build(options: Record<string, unknown>): Promise<Bundled>;
}
interface Manifest {
  name: string;
  version: string;
  description?: string | undefined;
  license?: string | undefined;
  type?: string | undefined;
  engines?: Record<string, string>;
}

const readText = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const manifestOf = (folder: string): Manifest => JSON.parse(readText(`${folder}/package.json`));
const posixPath = (path: string) => path.split(sep).join('/');
const fromRoot = (path: string) => posixPath(relative(ROOT, path));
const filesOf = (pattern: string) =>
  globSync(pattern, { cwd: ROOT })
    .map(posixPath)
    .filter((path) => !OF_TESTS.test(path))
    .sort();

/** The place in the package of a file of this repository. */
function placeOf(path: string): string {
  const nested = path.lastIndexOf('node_modules/');
  return nested === -1
    ? path.replace(/\.ts$/, '.js')
    : posix.join(OTHERS, path.slice(nested + 'node_modules/'.length));
}

/** The source of each command by its name, such as `farebox-serve`: every file of `commands/` that says which `npm run` it is. */
function commands(): Record<string, string> {
  const all = filesOf(`${SHOP}/src/commands/*.ts`).map((path) => [basename(path, '.ts'), path] as const);
  const own = all.filter(([name, path]) => readText(path).includes(`\`npm run ${name}\``));
  return Object.fromEntries([
    ['farebox-serve', `${SHOP}/src/main.ts`],
    ...own.map(([name, path]) => [`farebox-${name}`, path]),
  ]);
}

/** The source of everything that is started or loaded by the name of its file: commands, services, threads and processes. */
function programs({ folders, named }: Contents): string[] {
  const sources = folders.flatMap((folder) => filesOf(`${folder}/src/**/*.ts`));
  const services = sources.filter((path) => /\/src\/services\/(?!shared\/)[^/]+\/[^/]+$/.test(path));
  const started = sources.flatMap((path) =>
    [...readText(path).matchAll(STARTED)].map(([, file]) => posix.join(posix.dirname(path), `${file}.ts`)),
  );
  return [...new Set([...Object.values(commands()), ...named, ...services, ...started])];
}

/**
 * A module with its questions about its own place answered; null for one that asks none.
 *
 * @param carry takes a file of this repository into the package
 * @throws Error for a module of others of which nobody has said what it reads, and for one that names a file of TypeScript
 */
function placed(path: string, { wayHere }: Contents, carry: (file: string) => void): string | null {
  const text = readText(path);
  if (!ASKS_PLACE.test(text)) return null;
  const isOurs = !path.includes('node_modules/');
  const place = isOurs || wayHere === null ? placeOf(path) : posix.join(wayHere, path);
  if (!isOurs && wayHere === null) {
    const read = PLACED[posix.relative(OTHERS, place)];
    if (read === undefined)
      throw new Error(`${path} asks where it lies: say in PLACED of scripts/bundle.ts which files it reads`);
    for (const pattern of read)
      for (const file of filesOf(posix.join(posix.dirname(path), pattern))) carry(file);
  }
  const renamed = text.replaceAll(STARTED, '$1.js');
  if (NAMES_SOURCE.test(renamed))
    throw new Error(`${path} names a file of source: what is started by its name ends in program.ts`);
  const quoted = (name: string) => `bundlePlace(${JSON.stringify(name)})`;
  const answers: Readonly<Record<string, string>> = {
    'import.meta.dirname': quoted(posix.dirname(place)),
    'import.meta.filename': quoted(place),
    'import.meta.url': `bundleUrl(${JSON.stringify(place)})`,
    __dirname: quoted(posix.dirname(place)),
    __filename: quoted(place),
  };
  return renamed
    .replaceAll(/createRequire\(import\.meta\.url\)\.resolve\('([^']+)'\)/g, (asked, name: string) => {
      if (wayHere !== null) return asked;
      const found = fromRoot(createRequire(join(ROOT, path)).resolve(name));
      carry(found);
      return quoted(placeOf(found));
    })
    .replaceAll('createRequire(import.meta.url)(', 'require(')
    .replaceAll(
      /\bimport\.meta\.(?:dirname|filename|url)\b|\b__(?:dir|file)name\b/g,
      (asked) => answers[asked] ?? asked,
    );
}

/** The files of the bundle that hold a module of CommonJS for those that load it later: they export it as `default`, and no name of it. */
const nameless = ({ inputs, outputs }: Bundled['metafile']): ReadonlySet<string> =>
  new Set(
    Object.entries(outputs)
      .filter(([, { entryPoint = '' }]) => inputs[entryPoint]?.format === 'cjs')
      .map(([path]) => basename(path)),
  );

/**
 * A file of the bundle, which begins with where the package lies as seen from there, and with the `require` of CommonJS. What it loads
 * later has the names of its exports, as in Node, also where it is CommonJS.
 */
function opened(
  file: string,
  text: string,
  { isCommand, withoutNames }: { isCommand: boolean; withoutNames: ReadonlySet<string> },
): string {
  const [, code = text] = /^(?:#!.*\n)?([\s\S]*)$/.exec(text) ?? [];
  const named = code.replaceAll(/\bimport\("(\.[^"]+)"\)/g, (asked, path: string) =>
    withoutNames.has(posix.basename(path)) ? `${asked}.then(bundleNames)` : asked,
  );
  const up = posix.relative(posix.dirname(file), '.') || '.';
  return `${isCommand ? '#!/usr/bin/env node\n' : ''}import { createRequire as bundleRequire } from 'node:module';
import { join as bundleJoin } from 'node:path';
import { pathToFileURL as bundleFileUrl } from 'node:url';
const require = bundleRequire(import.meta.url);
const bundlePlace = (place) => bundleJoin(import.meta.dirname, ${JSON.stringify(up)}, place);
const bundleUrl = (place) => bundleFileUrl(bundlePlace(place)).href;
const bundleNames = ({ default: all }) => Object.create(all, { default: { value: all } });
${named}`;
}

/**
 * Packages that are installed here for tests and tools alone. Some of those inside use them where they find them, and do without elsewhere.
 */
function leftOut(entries: readonly string[]): string[] {
  const { packages }: { packages: Record<string, { link?: boolean }> } = JSON.parse(
    readText('package-lock.json'),
  );
  const nameOf = (place: string) => place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const needed = new Set([...neededPackages(ROOT, entries)].map(nameOf));
  const others = Object.entries(packages).filter(
    ([place, { link = false }]) => /node_modules/.test(place) && !link,
  );
  return [...new Set(others.map(([place]) => nameOf(place)))].filter((name) => !needed.has(name));
}

/**
 * The packages of others inside, with their licences, which ask to be passed on.
 *
 * @throws Error for one that the lock file does not count to the server
 */
function licences(inputs: readonly string[]): string {
  const homes = inputs.flatMap((path) => PACKAGE.exec(path)?.[0] ?? []);
  const needed = neededPackages(ROOT, [SHOP]);
  return [...new Set(homes)]
    .sort()
    .map((home) => {
      if (!needed.has(home)) throw new Error(`${home} would be bundled, and is no part of the server`);
      const { name, version, license = 'see its text' } = manifestOf(home);
      const texts = globSync('*', { cwd: join(ROOT, home) })
        .filter((file) => LICENCE.test(file))
        .sort()
        .map((file) => readText(`${home}/${file}`).trim());
      return [`${name} ${version} (${license})`, ...texts].join('\n\n');
    })
    .join(`\n\n${'-'.repeat(80)}\n\n`);
}

/**
 * Writes a bundle into a folder, with the manifest of the server's package.
 *
 * @throws Error when what bundles cannot be had, when a module does not resolve, and as `placed` and `licences` do
 */
async function bundle(into: string, contents: Contents): Promise<void> {
  const modules = installApart(join(ROOT, 'tools/bundle'), 'what bundles the server');
  if (modules === null)
    throw new Error('the package registry cannot be reached to install what bundles the server');
  const esbuild: Bundler = await import(pathToFileURL(join(modules, 'esbuild/lib/main.js')).href);
  const { folders, wayHere } = contents;
  const tools = wayHere === null ? folders.map(toolsOf) : [];
  const carried = new Set([...CARRIED, ...folders.map(readIn), ...tools].flatMap(filesOf));
  const places = (build: Builder) =>
    build.onLoad({ filter: /\.[cm]?[jt]s$/ }, ({ path }) => {
      const text = placed(fromRoot(path), contents, (file) => carried.add(file));
      return text === null ? null : { contents: text, loader: path.endsWith('ts') ? 'ts' : 'js' };
    });
  const { outputFiles, metafile } = await esbuild.build({
    entryPoints: programs(contents).map((path) => ({ in: path, out: path.replace(/\.ts$/, '') })),
    absWorkingDir: ROOT,
    outdir: into,
    chunkNames: 'chunks/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    external: [...leftOut(contents.entries), ...contents.outside],
    legalComments: 'none',
    // Node keeps the text of what it has loaded: 16 MB less of it. Names stay, for traces of errors.
    minifyWhitespace: true,
    lineLimit: LONGEST_LINE,
    metafile: true,
    write: false,
    logLevel: 'warning',
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
    plugins: [{ name: 'places', setup: places }],
  });
  const bin = Object.fromEntries(Object.entries(commands()).map(([name, path]) => [name, placeOf(path)]));
  const write = (file: string, text: string) => {
    mkdirSync(dirname(join(into, file)), { recursive: true });
    writeFileSync(join(into, file), text);
  };
  const withoutNames = nameless(metafile);
  for (const { path, text } of outputFiles) {
    const file = relative(into, path).split(sep).join('/');
    write(file, opened(file, text, { isCommand: Object.values(bin).includes(file), withoutNames }));
  }
  for (const file of carried) {
    mkdirSync(dirname(join(into, placeOf(file))), { recursive: true });
    cpSync(join(ROOT, file), join(into, placeOf(file)));
  }
  // It says that these are modules: Node would look for that in each of them.
  write('package.json', `${JSON.stringify({ ...packed(), bin }, null, 2)}\n`);
  if (wayHere !== null) {
    const patterns = folders.map((folder) => `${folder}/tools/*`);
    return linkTools(globSync(patterns, { cwd: ROOT }), { from: ROOT, into });
  }
  const inside = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs));
  write('THIRD-PARTY-LICENSES.txt', `${licences(inside)}\n`);
  write('README.md', readText(`${SHOP}/README.md`));
}

/**
 * Has a bundle use tools where they are: they are installed on first use, once for a repository and every bundle of it.
 *
 * @param tools their folders, such as `packages/process/tools/postgres`: the same in both
 */
export function linkTools(tools: readonly string[], { from, into }: { from: string; into: string }): void {
  for (const tool of tools) {
    rmSync(join(into, tool), { recursive: true, force: true });
    mkdirSync(dirname(join(into, tool)), { recursive: true });
    symlinkSync(join(from, tool), join(into, tool), 'junction');
  }
}

/** The manifest of a package that needs no other. */
function packed(): Manifest {
  const { name, version, description, license, type, engines = { node: '>=22.19' } } = manifestOf(SHOP);
  return { name, version, description, license, type, engines };
}

if (process.argv[1] === import.meta.filename) {
  const [, , folder, here = ''] = process.argv;
  if (folder === undefined) throw new Error('name the folder to write the server into');
  const into = resolve(folder);
  const contents = { '--here=server': serverHere(into), '--here=sandbox': sandboxHere(into) }[here];
  await bundle(into, contents ?? PACKED);
}
