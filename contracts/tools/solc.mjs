#!/usr/bin/env node
/**
 * The Solidity compiler from npm, which is WebAssembly, as forge calls a native one: `--version`, or JSON on its input.
 * `SOLC_ANSWERS` names a folder that answers are kept in: whoever runs forge many times over the same sources sets it, for
 * forge asks the same each time.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const args = process.argv.slice(2);
const folder = process.env.SOLC_ANSWERS;

/** @param answer is made when there is none yet */
function kept(question, answer) {
  if (!folder) return answer();
  const file = join(folder, createHash('sha256').update(question).digest('hex'));
  if (existsSync(file)) return readFileSync(file, 'utf8');
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${file}.${process.pid}`, answer());
  renameSync(`${file}.${process.pid}`, file);
  return readFileSync(file, 'utf8');
}

const solc = () => createRequire(import.meta.url)('solc');

if (args.includes('--version')) {
  const version = kept('version', () => solc().version().replace('Emscripten.clang', 'Linux.g++'));
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
  const question = readFileSync(0, 'utf8');
  process.stdout.write(kept(question, () => solc().compile(question, { import: read })));
} else {
  process.stderr.write(`solc: cannot be asked ${args.join(' ')}\n`);
  process.exit(1);
}
