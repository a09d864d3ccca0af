#!/usr/bin/env node
/** The Solidity compiler from npm, which is WebAssembly, as forge calls a native one: `--version`, or JSON on its input. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const solc = createRequire(import.meta.url)('solc');
const args = process.argv.slice(2);

if (args.includes('--version')) {
  const version = solc.version().replace('Emscripten.clang', 'Linux.g++');
  process.stdout.write(`solc, the solidity compiler commandline interface\nVersion: ${version}\n`);
} else if (args.includes('--standard-json')) {
  const base = args[args.indexOf('--base-path') + 1] ?? '.';
  const read = (path) => {
    try {
      return { contents: readFileSync(resolve(base, path), 'utf8') };
    } catch (error) {
      return { error: error.message };
    }
  };
  process.stdout.write(solc.compile(readFileSync(0, 'utf8'), { import: read }));
} else {
  process.stderr.write(`solc: cannot be asked ${args.join(' ')}\n`);
  process.exit(1);
}
