/** Commands of packages that the client does not depend on: they are started if they are there, and else named. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { EXIT, type Io } from './io.ts';

const PROGRAMS = {
  serve: '@farebox/shop',
  import: '@farebox/shop',
  books: '@farebox/shop',
  mcp: '@farebox/mcp-bridge',
} as const;
export type ServerProgram = keyof typeof PROGRAMS | 'new';

export const isServerProgram = (name: string): name is ServerProgram =>
  name === 'new' || Object.hasOwn(PROGRAMS, name);

/** @returns its exit code */
export async function runServerProgram(
  io: Io,
  name: ServerProgram,
  args: readonly string[],
): Promise<number> {
  const clone = name === 'new' ? null : cloneOf(PROGRAMS[name]);
  if (clone === null) {
    io.error(howToGet(name));
    return EXIT.notFound;
  }
  const child = spawn(process.execPath, [join(clone, 'bootstrap.mjs'), name, ...args], {
    stdio: 'inherit',
    env: { ...process.env },
  });
  const stop = () => child.kill('SIGTERM');
  io.signal.addEventListener('abort', stop);
  const [code] = await once(child, 'exit');
  io.signal.removeEventListener('abort', stop);
  return typeof code === 'number' ? code : EXIT.failed;
}

/** The clone that a package of the server is a part of; null when it is not installed. */
function cloneOf(name: string): string | null {
  for (const from of [join(process.cwd(), 'package.json'), import.meta.filename]) {
    try {
      const manifest = realpathSync(createRequire(from).resolve(`${name}/package.json`));
      const clone = join(dirname(manifest), '../..');
      if (existsSync(join(clone, 'bootstrap.mjs'))) return clone;
    } catch {
      // Not from there.
    }
  }
  return null;
}

function howToGet(name: ServerProgram): string {
  if (name === 'new')
    return 'a shop of your own begins with the example of docs/building-a-shop.md, in a clone of Farebox\n';
  return `farebox ${name} is a part of the server, which is not installed here: clone Farebox, run npm start once, and call it there\n`;
}
