/**
 * `npm run pack -- [folder]`: makes installable packages of the server, of what a shop is built from, and of the client, in a folder
 * (`dist/` unless given). They hold JavaScript and types, because Node executes no TypeScript below `node_modules`;
 * a clone runs the TypeScript itself. The server's is a bundle, which needs no other package.
 */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const STAGES = join(ROOT, 'node_modules/.cache/pack');

/** Each after those that it imports: its types are compiled against theirs. */
export const PACKED = [
  'process',
  'core',
  'catalogue',
  'contracts',
  'yield',
  'gate',
  'proxy',
  'shop',
  'client',
  'mcp-bridge',
] as const;
export type Packed = (typeof PACKED)[number];

/** The files that a package holds beside its code. */
const BESIDE: Readonly<Partial<Record<Packed, readonly string[]>>> = {
  core: ['web/*.{html,js,css,svg,png,woff2,txt}', 'new/*.ts'],
  contracts: ['src/**/*.sol', 'test/*.sol'],
  proxy: ['farebox.config.schema.json'],
  process: ['tools/*/package{,-lock}.json'],
  catalogue: ['tools/*/package{,-lock}.json'],
};
/** Made by `scripts/bundle.ts`, without any other package. */
const BUNDLED: Packed = 'shop';
const NOT_PACKED = /\.(test|fixture)\.(ts|js)$|(^|\/)README\.md$/;

const APART: Readonly<Partial<Record<Packed, string>>> = { contracts: 'contracts', shop: 'apps/shop' };
/** The folder of a package in this repository, from its root. */
export const workspaceOf = (name: Packed) => APART[name] ?? `packages/${name}`;
const folderOf = (name: Packed) => join(ROOT, workspaceOf(name));

interface Manifest {
  name: string;
  version: string;
  private?: boolean;
  exports?: Record<string, string>;
  bin?: Record<string, string>;
  engines?: Record<string, string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

/**
 * Packs some of the packages.
 *
 * @param names which; what they import of ours must be among them, but for the bundled one
 * @param into the folder for the archives, made if it is not there
 * @returns the paths of the archives, in the order of `names`
 * @throws Error when one does not compile, names a file that it does not hold, or when what bundles cannot be installed
 */
export function pack(names: readonly Packed[], into: string): string[] {
  mkdirSync(into, { recursive: true });
  mkdirSync(STAGES, { recursive: true });
  // Of its own: another process may pack the same at once.
  const stages = mkdtempSync(join(STAGES, 'stage-'));
  try {
    return PACKED.filter((name) => names.includes(name)).map((name) => packOne(name, stages, into));
  } finally {
    rmSync(stages, { recursive: true, force: true });
  }
}

function packOne(name: Packed, stages: string, into: string): string {
  const stage = join(stages, name);
  mkdirSync(stage);
  if (name === BUNDLED) {
    run(process.execPath, [join(ROOT, 'scripts/bundle.ts'), stage], ROOT);
    return npmPack(stage, into);
  }
  if (name !== 'contracts') compile(name, stages);
  for (const pattern of BESIDE[name] ?? []) copyFiles(folderOf(name), pattern, stage);
  cpSync(join(ROOT, 'LICENSE'), join(stage, 'LICENSE'));
  for (const page of ['README.md', 'CHANGELOG.md'])
    if (existsSync(join(folderOf(name), page))) cpSync(join(folderOf(name), page), join(stage, page));
  writeManifest(name, stage);
  return npmPack(stage, into);
}

/** Packs a folder that is as its package should be. @returns the archive's path */
export function npmPack(stage: string, into: string): string {
  const [{ filename = '' } = {}] = JSON.parse(
    run('npm', ['pack', '--json', '--loglevel=error', '--pack-destination', into], stage),
  ) as { filename?: string }[];
  return join(into, filename);
}

function compile(name: Packed, stages: string): void {
  const stage = join(stages, name);
  const source = join(folderOf(name), 'src');
  const config = join(stage, 'tsconfig.json');
  const settings = {
    extends: relative(stage, join(ROOT, 'tsconfig.json')),
    compilerOptions: {
      noEmit: false,
      incremental: false,
      tsBuildInfoFile: null,
      declaration: true,
      rewriteRelativeImportExtensions: true,
      rootDir: relative(stage, source),
      outDir: 'dist',
      // Types of ours come from what was packed before, not from its source, which is no part of this package.
      paths: Object.fromEntries(PACKED.flatMap((each) => typesOf(each, stage, stages))),
    },
    include: [`${relative(stage, source)}/**/*.ts`],
    exclude: [`${relative(stage, source)}/**/*.test.ts`, `${relative(stage, source)}/**/*.fixture.ts`],
  };
  writeFileSync(config, JSON.stringify(settings));
  run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '--project', config], ROOT);
  rmSync(config);
  copyFiles(source, '**/*.{sql,json,sol,mjs}', join(stage, 'dist'));
  copyFiles(source, '**/*.d.mts', join(stage, 'dist'));
  for (const file of globSync('**/*.js', { cwd: join(stage, 'dist') }))
    nameCompiled(join(stage, 'dist', file));
}

/** Where the types of each face of a package are, from the folder of another one. */
function typesOf(name: Packed, stage: string, stages: string): [face: string, files: string[]][] {
  const { name: full, exports = {} } = manifestOf(name);
  return Object.entries(exports)
    .filter(([, file]) => file.endsWith('.ts'))
    .map(([face, file]) => {
      const types = join(stages, name, file.replace('./src/', 'dist/').replace(/\.ts$/, '.d.ts'));
      return [join(full, face).replaceAll(sep, '/'), [`./${relative(stage, types)}`]];
    });
}

const manifestOf = (name: Packed): Manifest =>
  JSON.parse(readFileSync(join(folderOf(name), 'package.json'), 'utf8'));

/** Lets a compiled file start its threads and programs by their compiled names: no compiler rewrites names of files in texts. */
function nameCompiled(path: string): void {
  const text = readFileSync(path, 'utf8');
  const named = text.replaceAll(/(['"])((?:\.\.?\/)?[\w./-]+)\.ts\1/g, (all, quote: string, file: string) =>
    existsSync(join(dirname(path), `${file}.js`)) ? `${quote}${file}.js${quote}` : all,
  );
  if (named !== text) writeFileSync(path, named);
}

function copyFiles(from: string, pattern: string, to: string): void {
  for (const file of globSync(pattern, { cwd: from }).map((path) => path.replaceAll(sep, '/'))) {
    if (NOT_PACKED.test(file)) continue;
    mkdirSync(dirname(join(to, file)), { recursive: true });
    cpSync(join(from, file), join(to, file));
  }
}

/** @throws Error when `exports` names a file that was not compiled */
function writeManifest(name: Packed, stage: string): void {
  const { private: _, devDependencies: __, ...manifest } = manifestOf(name);
  const compiled = Object.entries(manifest.exports ?? {}).map(([face, file]) => {
    const code = file.replace('./src/', './dist/').replace(/\.ts$/, '');
    if (file.endsWith('.ts') && !existsSync(join(stage, `${code}.js`)))
      throw new Error(`${manifest.name} exports ${file}, which is not there`);
    if (file.endsWith('.mjs')) return [face, { types: code.replace(/\.mjs$/, '.d.mts'), default: code }];
    return [face, file.endsWith('.ts') ? { types: `${code}.d.ts`, default: `${code}.js` } : file];
  });
  const programs = Object.entries(manifest.bin ?? {}).map(([program, file]) => [
    program,
    file.replace(/^src\/(.*)\.ts$/, 'dist/$1.js'),
  ]);
  const packed = {
    ...manifest,
    engines: manifest.engines ?? { node: '>=22.19' },
    ...(manifest.exports === undefined ? {} : { exports: Object.fromEntries(compiled) }),
    ...(manifest.bin === undefined ? {} : { bin: Object.fromEntries(programs) }),
  };
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(packed, null, 2)}\n`);
}

/** @throws Error with what it printed when it fails */
function run(program: string, args: readonly string[], cwd: string): string {
  const done = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
    shell: process.platform === 'win32' && program === 'npm',
  });
  if (done.status !== 0)
    throw new Error(`${program} ${args[0]}: ${done.error?.message ?? ''}${done.stdout}${done.stderr}`);
  return done.stdout;
}

if (process.argv[1] === import.meta.filename) {
  const into = resolve(process.argv[2] ?? join(ROOT, 'dist'));
  for (const archive of pack(PACKED, into)) process.stdout.write(`${archive}\n`);
}
