/**
 * `npm run format`: formats every file and applies the linter's safe corrections, renders what the documents have from the code, and notes which
 * long functions shrank and which folders have fewer doc comments that begin with a riddle. Says what is left to do by hand.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { longFunctions } from './long-functions.ts';
import { MOST_RIDDLES_PERCENT, notedPercent, proseByFolder } from './prose.ts';

const ROOT = join(import.meta.dirname, '..');
const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');
const run = (...args: string[]) => spawnSync(process.execPath, args, { cwd: ROOT, stdio: 'inherit' }).status;
process.exitCode = run(biome, 'check', '--write', '.') || (run(join(ROOT, 'scripts/rendered.ts')) ?? 1);

const ratchet = join(ROOT, 'scripts/long-functions.json');
const known: Record<string, number> = JSON.parse(readFileSync(ratchet, 'utf8'));
const long = Object.entries(longFunctions(ROOT)).flatMap(([name, lines]) => {
  const noted = known[name];
  return noted === undefined ? [] : [[name, Math.min(noted, lines)]];
});
writeFileSync(ratchet, `${JSON.stringify(Object.fromEntries(long), null, 2)}\n`);

const allowances = join(ROOT, 'scripts/prose.json');
const allowed: Record<string, number> = JSON.parse(readFileSync(allowances, 'utf8'));
const shares = Object.entries(proseByFolder(ROOT)).map(([folder, prose]) => [
  folder,
  Math.min(allowed[folder] ?? MOST_RIDDLES_PERCENT, notedPercent(prose)),
]);
writeFileSync(allowances, `${JSON.stringify(Object.fromEntries(shares), null, 2)}\n`);
