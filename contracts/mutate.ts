/**
 * Plants bugs in the vault, one at a time, and counts how many of them its tests find: what survives tells what no test looks
 * at. A mutant is compiled by itself and put in the vault's place; the tests are the ones that `npm test` runs.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT, runForge } from './forge.ts';

const SOURCES = ['contracts/src/Positions.sol', 'contracts/src/FareboxVault.sol'] as const;
const FOLDER = 'contracts/mutants';
/** How many are planted unless `--all` is said: spread evenly over all that could be. */
const PLANTED = 80;

/** What a careless hand might write instead. Applied to lines of code, one at a time. */
const BUGS: readonly (readonly [from: RegExp, to: string])[] = [
  [/ <= /g, ' < '],
  [/ >= /g, ' > '],
  [/(?<=\w|\)) < /g, ' <= '],
  [/(?<=\w|\)) > /g, ' >= '],
  [/ == /g, ' != '],
  [/ != /g, ' == '],
  [/ && /g, ' || '],
  [/ \|\| /g, ' && '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/ \* /g, ' / '],
  [/ \/ /g, ' * '],
  [/Rounding\.Floor/g, 'Rounding.Ceil'],
  [/Rounding\.Ceil/g, 'Rounding.Floor'],
  [/Math\.min/g, 'Math.max'],
  [/\bonlyOwner\b ?/g, ''],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
  [/48 hours/g, '47 hours'],
  [/^(\s+)if \(.*\) (revert .*;)$/g, '$1'],
  [/^(\s+)(?:_burn|_mint|_spendAllowance|_supply|_gather|_setHeld|_clearQueue|_accrue)\(.*\);$/g, '$1'],
  [/^(\s+)_\w+ = .*;$/g, '$1'],
  [/ \| bit/g, ' & bit'],
];

/** Lines that bugs are not planted in: declarations, comments, events. */
const NO_CODE =
  /^\s*(\/\/|\*|import|event|error|emit|using|pragma|uint256 (public|private) constant|uint8 private constant)/;

interface Mutant {
  source: (typeof SOURCES)[number];
  line: number;
  was: string;
  is: string;
}

/** Everything that could be planted, in the order of the sources. */
function mutantsOf(source: Mutant['source'], text: string): Mutant[] {
  return text.split('\n').flatMap((was, index) => {
    if (NO_CODE.test(was) && !was.includes('48 hours')) return [];
    return BUGS.flatMap(([from, to]) =>
      [...was.matchAll(from)].map((match) => ({
        source,
        line: index + 1,
        was,
        is:
          was.slice(0, match.index) +
          match[0].replace(new RegExp(from.source), to) +
          was.slice(match.index + match[0].length),
      })),
    ).filter(({ is }) => is !== was);
  });
}

/** Compiles the vault with one line changed. @returns its creation code; null when it does not compile */
function compile({ source, line, is }: Mutant): string | null {
  const require = createRequire(import.meta.url);
  const solc: { compile(input: string, options: object): string } = require('solc');
  const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
  const changed = read(source)
    .split('\n')
    .with(line - 1, is)
    .join('\n');
  const contents = (path: string) =>
    path === source ? changed : read(path.replace('@openzeppelin', 'contracts/node_modules/@openzeppelin'));
  const input = {
    language: 'Solidity',
    sources: { 'contracts/src/FareboxVault.sol': { content: contents('contracts/src/FareboxVault.sol') } },
    settings: {
      optimizer: { enabled: true, runs: 200 },
      evmVersion: 'cancun',
      outputSelection: { 'contracts/src/FareboxVault.sol': { FareboxVault: ['evm.bytecode.object'] } },
    },
  };
  const output = JSON.parse(
    solc.compile(JSON.stringify(input), { import: (path: string) => ({ contents: contents(path) }) }),
  );
  const code = output.contracts?.['contracts/src/FareboxVault.sol']?.FareboxVault?.evm.bytecode.object;
  return typeof code === 'string' && code !== '' ? `0x${code}` : null;
}

/** @param args `--all`: every mutant there can be; a number: so many @returns the exit code */
export async function mutate(args: readonly string[]): Promise<number> {
  const all = SOURCES.flatMap((source) => mutantsOf(source, readFileSync(join(ROOT, source), 'utf8')));
  const wanted = args.includes('--all') ? all.length : Number(args[0] ?? PLANTED);
  const picked = all.filter(
    (_, n) => Math.floor((n * wanted) / all.length) !== Math.floor(((n - 1) * wanted) / all.length),
  );
  const survivors: Mutant[] = [];
  let killed = 0;
  mkdirSync(join(ROOT, FOLDER), { recursive: true });
  for (const mutant of picked) {
    const code = compile(mutant);
    if (code === null) continue;
    const artifact = `${FOLDER}/FareboxVault.json`;
    writeFileSync(join(ROOT, artifact), JSON.stringify({ abi: [], bytecode: { object: code } }));
    const { exitCode } = await runForge(['test', '--fail-fast', '--no-match-contract', 'GasMeasure', '-q'], {
      shows: 'nothing',
      environment: { VAULT_ARTIFACT: artifact, FOUNDRY_FUZZ_RUNS: '16', FOUNDRY_INVARIANT_RUNS: '2' },
    });
    const found = exitCode !== 0;
    if (found) killed += 1;
    else survivors.push(mutant);
    process.stdout.write(
      `${found ? 'killed  ' : 'SURVIVED'} ${mutant.source}:${mutant.line} ${mutant.is.trim()}\n`,
    );
  }
  rmSync(join(ROOT, FOLDER), { recursive: true, force: true });
  const planted = killed + survivors.length;
  process.stdout.write(
    `\n${killed} of ${planted} killed (${((killed / planted) * 100).toFixed(1)} %), of ${all.length} that could be planted\n`,
  );
  for (const { source, line, was, is } of survivors)
    process.stdout.write(`\n${source}:${line}\n- ${was.trim()}\n+ ${is.trim()}\n`);
  return 0;
}
