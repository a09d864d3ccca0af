/**
 * Plants bugs in the contracts, one at a time, and counts how many of them their tests find: what survives tells what no test
 * looks at. A mutant is compiled by itself and put in the contract's place; the tests are the ones that `npm test` runs.
 *
 * It goes on where it was stopped. A bug that was found stays found while the sources are the same; one that was not is
 * planted again when a test has changed.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { buildAll, ROOT, runForge } from './forge.ts';
import { whyHarmless } from './harmless-mutants.ts';
import { type Mutant, mutantsOf, nameOf, planted } from './mutants.ts';

/** Each source, and the contract that it becomes a part of. */
const CONTRACTS = [
  {
    source: 'contracts/src/PermitDeposit.sol',
    contract: 'PermitDeposit',
    variable: 'PERMIT_DEPOSIT_ARTIFACT',
  },
  { source: 'contracts/src/Positions.sol', contract: 'FareboxVault', variable: 'VAULT_ARTIFACT' },
  { source: 'contracts/src/TokenAuction.sol', contract: 'FareboxVault', variable: 'VAULT_ARTIFACT' },
  { source: 'contracts/src/FareboxVault.sol', contract: 'FareboxVault', variable: 'VAULT_ARTIFACT' },
] as const;
type Contract = (typeof CONTRACTS)[number];
const FOLDER = 'contracts/mutants';
const RESULTS = `${FOLDER}/results.json`;
/** How many are planted unless `--all` is said: spread evenly over all that could be. */
const PLANTED = 80;
/** Tests that go on for so long are not the ones that we have: the bug is found. */
const TESTS_MS = 180_000;
/** Tests that find most bugs, and take a second. The others follow for what these do not find. */
const FIRST =
  'VaultTest|MovingTest|ReentrancyTest|PermitDepositTest|SeedTest|ExitsTest|SpreadingTest|TokenAuctionTest';

/** Mutants by their names. */
interface Results {
  /** Hashes of what these were found with. */
  sources: string;
  tests: string;
  killed: string[];
  survived: string[];
  /** They do not compile. */
  broken: string[];
}

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Without the optimizer, in half the time. @returns its creation code; null: it does not compile */
function compile(path: string, contract: string, text: string): string | null {
  const require = createRequire(import.meta.url);
  const solc: { compile(input: string, options: object): string } = require('solc');
  const file = `contracts/src/${contract}.sol`;
  const contents = (asked: string) =>
    asked === path ? text : read(asked.replace(/^@openzeppelin/, 'contracts/node_modules/@openzeppelin'));
  const input = {
    language: 'Solidity',
    sources: { [file]: { content: contents(file) } },
    settings: { evmVersion: 'cancun', outputSelection: { [file]: { [contract]: ['evm.bytecode.object'] } } },
  };
  const output = JSON.parse(
    solc.compile(JSON.stringify(input), { import: (asked: string) => ({ contents: contents(asked) }) }),
  );
  const code = output.contracts?.[file]?.[contract]?.evm.bytecode.object;
  return typeof code === 'string' && code !== '' ? `0x${code}` : null;
}

/** Whether all tests pass with this code in the contract's place. */
async function passes({ contract, variable }: Contract, code: string): Promise<boolean> {
  const artifact = `${FOLDER}/${contract}.json`;
  writeFileSync(join(ROOT, artifact), JSON.stringify({ abi: [], bytecode: { object: code } }));
  for (const which of [
    ['--match-contract', FIRST],
    ['--no-match-contract', `GasMeasure|${FIRST}`],
  ]) {
    const { exitCode } = await runForge(['test', '--fail-fast', '-q', ...which], {
      shows: 'nothing',
      timeoutMs: TESTS_MS,
      environment: {
        [variable]: artifact,
        SOLC_ANSWERS: join(ROOT, FOLDER, 'answers'),
        FOUNDRY_FUZZ_RUNS: '16',
        FOUNDRY_INVARIANT_RUNS: '2',
        FOUNDRY_CODE_SIZE_LIMIT: '1000000',
        // What fails with a bug is no example to be tried without it.
        FOUNDRY_FUZZ_FAILURE_PERSIST_DIR: `${FOLDER}/fuzz`,
        FOUNDRY_INVARIANT_FAILURE_PERSIST_DIR: `${FOLDER}/invariant`,
      },
    });
    if (exitCode !== 0) return false;
  }
  return true;
}

/** What has been found already, as far as it still holds. */
function soFar(fresh: boolean): Results {
  const none: Results = {
    sources: hashOf('contracts/src'),
    tests: hashOf('contracts/test'),
    killed: [],
    survived: [],
    broken: [],
  };
  if (fresh) return none;
  try {
    const before: Results = JSON.parse(read(RESULTS));
    if (before.sources !== none.sources) return none;
    return { ...before, tests: none.tests, survived: before.tests === none.tests ? before.survived : [] };
  } catch {
    return none;
  }
}

function hashOf(folder: string): string {
  const hash = createHash('sha256');
  for (const file of readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).sort()) {
    if (file.endsWith('.sol')) hash.update(`${file}\n${read(`${folder}/${file}`)}`);
  }
  return hash.digest('hex');
}

/**
 * @param args `--all`: every mutant there can be; a number: so many; any other text: those whose names hold it, such as
 *   `Positions.sol:193`; `--fresh`: as if none had been planted before
 * @returns the exit code
 */
export async function mutate(args: readonly string[]): Promise<number> {
  const say = (line: string) => void process.stdout.write(`${line}\n`);
  const found = soFar(args.includes('--fresh'));
  const all = CONTRACTS.flatMap(({ source }) => mutantsOf(source, read(source)));
  const picked = pickedOf(all, args);
  if (picked.length === 0) {
    say('No bug that could be planted has such a name.');
    return 2;
  }
  for (const gone of ['answers', 'fuzz', 'invariant']) {
    rmSync(join(ROOT, FOLDER, gone), { recursive: true, force: true });
  }
  mkdirSync(join(ROOT, FOLDER), { recursive: true });
  if (!(await buildAll())) return 1;
  for (const each of CONTRACTS) {
    const code = compile(each.source, each.contract, read(each.source));
    if (code !== null && (await passes(each, code))) continue;
    say(`The tests fail without any bug in ${each.contract}.`);
    return 1;
  }
  const startedMs = Date.now();
  for (const [index, mutant] of picked.entries()) {
    const name = nameOf(mutant);
    if ([...found.killed, ...found.survived, ...found.broken].includes(name)) continue;
    const result = await plant(mutant);
    found[result].push(name);
    writeFileSync(join(ROOT, RESULTS), JSON.stringify(found));
    const seconds = Math.round((Date.now() - startedMs) / 1_000);
    say(`${index + 1} of ${picked.length}, ${seconds} s: ${result.toUpperCase().padEnd(8)} ${name}`);
  }
  report(picked, found, all.length, say);
  return 0;
}

/** Those that the arguments name, or so many spread evenly. */
function pickedOf(all: readonly Mutant[], args: readonly string[]): readonly Mutant[] {
  const number = args.find((each) => /^\d+$/.test(each));
  const names = args.filter((each) => !each.startsWith('--') && each !== number);
  if (names.length > 0) return all.filter((mutant) => names.some((name) => nameOf(mutant).includes(name)));
  const wanted = args.includes('--all') ? all.length : Math.min(Number(number ?? PLANTED), all.length);
  return all.filter(
    (_, n) => Math.floor((n * wanted) / all.length) !== Math.floor(((n - 1) * wanted) / all.length),
  );
}

async function plant(mutant: Mutant): Promise<'killed' | 'survived' | 'broken'> {
  const target = CONTRACTS.find(({ source }) => source === mutant.source);
  if (target === undefined) throw new Error(`${mutant.source} is no source of a contract`);
  const code = compile(target.source, target.contract, planted(read(target.source), mutant));
  if (code === null) return 'broken';
  return (await passes(target, code)) ? 'survived' : 'killed';
}

function report(
  picked: readonly Mutant[],
  found: Results,
  couldBe: number,
  say: (line: string) => void,
): void {
  const killed = picked.filter((mutant) => found.killed.includes(nameOf(mutant))).length;
  const survivors = picked.filter((mutant) => found.survived.includes(nameOf(mutant)));
  const tried = killed + survivors.length;
  const harmless = survivors.filter((mutant) => whyHarmless(mutant) !== null).length;
  const percent = (of: number) => `${((killed / of) * 100).toFixed(1)} %`;
  say(`\n${killed} of ${tried} killed (${percent(tried)}), of ${couldBe} that could be planted`);
  if (harmless > 0)
    say(`${harmless} change nothing that can be told; without these: ${percent(tried - harmless)}`);
  for (const mutant of survivors) {
    say(`\n${mutant.source}:${mutant.line}`);
    for (const line of mutant.was) say(`- ${line.trim()}`);
    for (const line of mutant.is) say(`+ ${line.trim()}`);
    say(`  ${whyHarmless(mutant) ?? 'No test tells it.'}`);
  }
}
