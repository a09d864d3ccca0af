/** Commands of packages that the client does not depend on: they are started if they are there, and else named. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { recordOf, textOf } from '../json.ts';
import { EXIT, type Io } from './io.ts';

/** The package that has each command, as its program `farebox-COMMAND`. */
const PROGRAMS = {
  serve: '@farebox/shop',
  import: '@farebox/shop',
  books: '@farebox/shop',
  new: '@farebox/core',
  mcp: '@farebox/mcp-bridge',
} as const;
/** The archives of `npm run pack` that hold a package and those of ours that it stands on. */
const ARCHIVES: Readonly<Record<(typeof PROGRAMS)[keyof typeof PROGRAMS], readonly string[]>> = {
  '@farebox/shop': ['farebox-shop-*'],
  '@farebox/core': ['farebox-core-*', 'farebox-process-*'],
  '@farebox/mcp-bridge': ['farebox-mcp-bridge-*', 'farebox-[0-9]*'],
};
export type ServerProgram = keyof typeof PROGRAMS;

export const isServerProgram = (name: string): name is ServerProgram => Object.hasOwn(PROGRAMS, name);

/** @returns its exit code */
export async function runServerProgram(
  io: Io,
  name: ServerProgram,
  args: readonly string[],
): Promise<number> {
  const found = programOf(name);
  if ('missing' in found) {
    io.error(`farebox: ${found.missing}\n`);
    return EXIT.notFound;
  }
  const child = spawn(process.execPath, [...found.words, ...args], {
    stdio: 'inherit',
    env: { ...process.env },
  });
  const stop = () => child.kill('SIGTERM');
  io.signal.addEventListener('abort', stop);
  const [code] = await once(child, 'exit');
  io.signal.removeEventListener('abort', stop);
  return typeof code === 'number' ? code : EXIT.failed;
}

/** How a command is started: by its clone, which brings a Node that it runs on, or as a program of an installed package. */
function programOf(name: ServerProgram): { words: string[] } | { missing: string } {
  const home = homeOf(PROGRAMS[name]);
  if (home === null) return { missing: howToGet(name) };
  const clone = join(home, '../..');
  const starter = join(clone, 'bootstrap.mjs');
  if (existsSync(starter) && name !== 'new') return { words: [starter, name] };
  const { bin, engines, version } = recordOf(JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')));
  const program = recordOf(bin)[`farebox-${name}`];
  if (program === undefined)
    return { missing: `${PROGRAMS[name]} ${textOf(version)} has no command ${name}: install a newer one` };
  const leastNode = textOf(recordOf(engines).node).replace('>=', '');
  if (isOlder(process.versions.node, leastNode))
    return { missing: `farebox ${name} needs Node ${leastNode}, and this is ${process.versions.node}` };
  return { words: [join(home, textOf(program))] };
}

/** The folder of a package; null when it is not installed where the command was given, nor beside the client. */
function homeOf(name: string): string | null {
  for (const from of [join(process.cwd(), 'package.json'), import.meta.filename]) {
    const { resolve } = createRequire(from);
    for (const folder of resolve.paths(name) ?? []) {
      const manifest = join(folder, name, 'package.json');
      if (existsSync(manifest)) return dirname(realpathSync(manifest));
    }
  }
  return null;
}

function isOlder(version: string, least: string): boolean {
  const parts = (text: string) => text.split('.').map(Number);
  const [mine, theirs] = [parts(version), parts(least)];
  const at = theirs.findIndex((part, place) => part !== (mine[place] ?? 0));
  return at !== -1 && (mine[at] ?? 0) < (theirs[at] ?? 0);
}

function howToGet(name: ServerProgram): string {
  const home = PROGRAMS[name];
  return `farebox ${name} is a command of ${home}, which is not installed here.
In a clone of Farebox, npm run pack makes the packages. Here, install them and give the command again:
  npm install ${ARCHIVES[home].map((archive) => `CLONE/dist/${archive}.tgz`).join(' ')}`;
}
