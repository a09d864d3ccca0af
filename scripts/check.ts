/**
 * `npm run check`: everything that can be checked without running the code. Every check runs, so that one run shows all
 * problems. Exits with 0 when all pass, else with 1.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const installed = (path: string) => join(ROOT, 'node_modules', path);

interface Check {
  name: string;
  /** The question that it answers, shown when it fails. */
  asks: string;
  program: string;
  args: readonly string[];
}

const CHECKS: readonly Check[] = [
  {
    name: 'style',
    asks: 'Formatted and linted? `npm run format` puts most of it right.',
    program: installed('@biomejs/biome/bin/biome'),
    args: ['check', '--error-on-warnings', '.'],
  },
  {
    name: 'types',
    asks: 'Do the types agree?',
    program: installed('typescript/bin/tsc'),
    args: ['--project', ROOT],
  },
  {
    name: 'dependencies',
    asks: 'Does each folder know only what it may? scripts/walls.ts says what.',
    program: installed('dependency-cruiser/bin/dependency-cruise.mjs'),
    args: [
      '--config',
      '.dependency-cruiser.cjs',
      'apps',
      'packages',
      'bench',
      'scripts',
      'examples',
      'contracts',
    ],
  },
  {
    name: 'dead code',
    asks: 'Is every file, export and package used?',
    program: installed('knip/bin/knip.js'),
    args: ['--no-progress', '--treat-config-hints-as-errors'],
  },
];

const failed: string[] = [];
for (const { name, asks, program, args } of CHECKS) {
  const startedAtMs = performance.now();
  const run = spawnSync(process.execPath, [program, ...args], { cwd: ROOT, encoding: 'utf8' });
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  const ok = run.status === 0;
  process.stdout.write(`${ok ? 'ok  ' : 'FAIL'}  ${name.padEnd(14)}${seconds.padStart(5)} s\n`);
  if (ok) continue;
  failed.push(name);
  const said = [run.error?.message, run.stdout, run.stderr].filter(Boolean).join('\n').trim();
  process.stdout.write(`\n${asks}\n\n${said}\n\n`);
}
process.stdout.write(
  failed.length === 0 ? 'All checks pass.\n' : `Not passed: ${failed.join(', ')}. See above.\n`,
);
process.exitCode = failed.length === 0 ? 0 : 1;
