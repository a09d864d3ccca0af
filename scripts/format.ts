/** `npm run format`: formats every file and applies the linter's safe corrections. Says what is left to do by hand. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const biome = join(ROOT, 'node_modules/@biomejs/biome/bin/biome');
const run = spawnSync(process.execPath, [biome, 'check', '--write', '.'], { cwd: ROOT, stdio: 'inherit' });
process.exitCode = run.status ?? 1;
