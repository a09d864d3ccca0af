/**
 * `npm run contracts:coverage`: how much of our contracts their tests go through, by lines and by branches. It is counted
 * on code that the optimizer has not touched; the protocols and USDC are the code that was compiled before, with it.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buildAll, ROOT, runForge } from './forge.ts';

const REPORT = 'contracts/out/coverage/lcov.info';
/** Of lines, and of branches. */
const LEAST_PERCENT = 95;

export interface Covered {
  file: string;
  lines: Part;
  branches: Part;
}

interface Part {
  of: number;
  hit: number;
  /** Numbers of lines. */
  missed: number[];
}

/** Reads a report in the form of lcov's trace files (https://github.com/linux-test-project/lcov, geninfo). */
export function readLcov(report: string): Covered[] {
  const found: Covered[] = [];
  for (const line of report.split('\n')) {
    const [, key, value = ''] = /^(SF|DA|BRDA):(.*)$/.exec(line) ?? [];
    if (key === 'SF') {
      const none = (): Part => ({ of: 0, hit: 0, missed: [] });
      found.push({ file: value, lines: none(), branches: none() });
    }
    const current = found.at(-1);
    if (current === undefined || key === undefined || key === 'SF') continue;
    const fields = value.split(',');
    const times = key === 'DA' ? fields[1] : fields[3];
    const part = key === 'DA' ? current.lines : current.branches;
    part.of += 1;
    // A branch of code that never ran has a dash for its number.
    if (Number(times) > 0) part.hit += 1;
    else part.missed.push(Number(fields[0]));
  }
  return found;
}

/** @returns the exit code: 1 when less is covered than should be */
export async function coverage(): Promise<number> {
  if (!(await buildAll())) return 1;
  mkdirSync(dirname(join(ROOT, REPORT)), { recursive: true });
  const { exitCode, output } = await runForge(
    [
      ...['coverage', '--report', 'lcov', '--report-file', REPORT],
      ...[
        '--no-match-contract',
        'GasMeasure',
        '--no-match-coverage',
        'node_modules|contracts/(test|sandbox)',
      ],
    ],
    {
      shows: 'nothing',
      // By their names, and so the ones that are counted, and not what was compiled before.
      environment: {
        VAULT_ARTIFACT: 'FareboxVault.sol:FareboxVault',
        PERMIT_DEPOSIT_ARTIFACT: 'PermitDeposit.sol:PermitDeposit',
      },
    },
  );
  if (exitCode !== 0) {
    process.stdout.write(output);
    return exitCode;
  }
  const files = readLcov(readFileSync(join(ROOT, REPORT), 'utf8'));
  const all = { file: 'all', lines: sum(files, 'lines'), branches: sum(files, 'branches') };
  process.stdout.write('| Source | lines | branches |\n|---|---:|---:|\n');
  for (const { file, lines, branches } of [...files, all])
    process.stdout.write(`| ${file} | ${told(lines)} | ${told(branches)} |\n`);
  for (const { file, lines, branches } of files) {
    for (const line of lines.missed) process.stdout.write(`not reached: ${file}:${line}\n`);
    for (const line of branches.missed) process.stdout.write(`a branch not taken: ${file}:${line}\n`);
  }
  return Math.min(percent(all.lines), percent(all.branches)) >= LEAST_PERCENT ? 0 : 1;
}

function sum(files: readonly Covered[], kind: 'lines' | 'branches'): Part {
  const add = (field: 'of' | 'hit') => files.reduce((total, file) => total + file[kind][field], 0);
  return { of: add('of'), hit: add('hit'), missed: [] };
}

function percent({ of, hit }: Part): number {
  return of === 0 ? 0 : (hit / of) * 100;
}

function told(part: Part): string {
  return `${percent(part).toFixed(1)} % (${part.hit} of ${part.of})`;
}
