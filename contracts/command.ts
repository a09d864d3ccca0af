/**
 * What can be asked of the contracts beside their tests: `npm run contracts:deep`, `contracts:mutate`, `contracts:coverage`,
 * `contracts:deploy` and `bench:gas`. Ends with forge's own exit code.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cometCompiler, compileComet } from './comet.ts';
import { coverage } from './coverage.ts';
import { deploy } from './deploy.ts';
import { buildAll, ROOT, runForge } from './forge.ts';
import { mutate } from './mutate.ts';
import { NotDeployable, readSetup } from './setup.ts';

const [what, ...more] = process.argv.slice(2);

const COMMANDS: Readonly<Record<string, () => Promise<number>>> = {
  /** The same tests with thousands of runs each, and the double of Comet beside the real one. */
  deep: async () => {
    const [flag, ...others] = more;
    if (!(await buildAll())) return 1;
    if (flag === '--comet') return realComet(others);
    if (flag === '--suite') return publishedSuite(others[0], others.slice(1));
    const args = ['test', '--no-match-contract', 'GasMeasure', ...more];
    const deep = await runForge(args, { shows: 'output', environment: { FOUNDRY_PROFILE: 'deep' } });
    // Who names tests asks for those alone.
    const isPart = more.some((each) => /^--(no-)?match-/.test(each));
    return (isPart ? 0 : await realComet(more)) || deep.exitCode;
  },
  mutate: () => mutate(more),
  coverage,
  gas: measureGas,
  deploy: deployFromFile,
};

/** The properties that others published, from their own files, which no licence of ours covers and which are not kept here. */
async function publishedSuite(folder: string | undefined, more: readonly string[]): Promise<number> {
  const files = ['ERC4626.prop.sol', 'ERC4626.test.sol'];
  if (folder === undefined || !files.every((file) => existsSync(join(folder, file)))) {
    process.stderr.write(
      `usage: npm run contracts:deep -- --suite <a folder with ${files.join(' and ')} of github.com/a16z/erc4626-tests>\n`,
    );
    return 2;
  }
  // forge reads nothing that lies outside of the repository.
  const copy = 'contracts/cache/suite';
  mkdirSync(join(ROOT, copy), { recursive: true });
  for (const file of files) copyFileSync(join(folder, file), join(ROOT, copy, file));
  const args = ['test', '-R', `erc4626-tests/=${copy}/`, '--match-contract', 'Published', ...more];
  const environment = { FOUNDRY_TEST: 'contracts/published', FOUNDRY_FUZZ_RUNS: '256' };
  return (await runForge(args, { shows: 'output', environment })).exitCode;
}

/** The double of Comet against the real one, and then the vault's tests with the real one in its place. */
async function realComet(more: readonly string[]): Promise<number> {
  const compiler = cometCompiler();
  if (compiler === undefined) {
    process.stderr.write(
      'farebox: the real Comet is skipped: its compiler (solc-comet of contracts/package.json) is not installed.\n',
    );
    return 0;
  }
  compileComet(compiler);
  const environment = { REAL_COMET: 'true' };
  const same = await runForge(['test', ...more], {
    shows: 'output',
    environment: { ...environment, FOUNDRY_TEST: 'contracts/compound', FOUNDRY_FUZZ_RUNS: '256' },
  });
  // That test makes Comet's cash up, and the real one reckons by its cash what it was given.
  const apart = ['--no-match-test', 'test_a_target_that_could_not_pay_all_of_it_back'];
  const args = ['test', '--no-match-contract', 'GasMeasure', ...apart, ...more];
  const vault = await runForge(args, { shows: 'output', environment });
  return same.exitCode || vault.exitCode;
}

/** From a setup in a file; the node and the key come from the environment, where no list of processes shows them. */
async function deployFromFile(): Promise<number> {
  const [file, ...flags] = more;
  const { DEPLOY_RPC_URL: rpcUrl, DEPLOY_KEY: key } = process.env;
  if (
    file === undefined ||
    !rpcUrl ||
    !/^0x[0-9a-fA-F]{64}$/.test(key ?? '') ||
    flags.some((each) => each !== '--send')
  ) {
    process.stderr.write(
      'usage: DEPLOY_RPC_URL=<node> DEPLOY_KEY=<0x and 64 hex digits> npm run contracts:deploy -- <setup.json> [--send]\n',
    );
    return 2;
  }
  const built = await runForge(['build', 'contracts/src'], { shows: 'output' });
  if (built.exitCode !== 0) return built.exitCode;
  try {
    await deploy({
      rpcUrl,
      key: key as `0x${string}`,
      setup: readSetup(file),
      send: flags.includes('--send'),
      recordFile: `${file.replace(/\.json$/, '')}.deployed.json`,
      say: (line) => void process.stdout.write(`${line}\n`),
    });
    return 0;
  } catch (error) {
    if (!(error instanceof NotDeployable)) throw error;
    process.stderr.write(`farebox: ${error.message}. Nothing more is sent.\n`);
    return 2;
  }
}

/** Each operation as a transaction of its own, as a table. */
async function measureGas(): Promise<number> {
  const folder = join(ROOT, 'contracts/out/gas');
  rmSync(folder, { recursive: true, force: true });
  if (!(await buildAll())) return 1;
  const run = await runForge(['test', '--isolate', '--match-contract', 'GasMeasure'], { shows: 'nothing' });
  if (run.exitCode !== 0) {
    process.stdout.write(run.output);
    return run.exitCode;
  }
  const groups = readdirSync(folder).map((file): [string, Record<string, string>] => [
    file.replace('.json', ''),
    JSON.parse(readFileSync(join(folder, file), 'utf8')),
  ]);
  const isByMarkets = (name: string) => / markets?$/.test(name);
  writeTable(
    'with this protocol active',
    groups.filter(([name]) => name !== 'direct' && !isByMarkets(name)),
  );
  writeTable('the protocol itself', [['gas', Object.fromEntries(groups).direct ?? {}]]);
  writeTable(
    'through a MetaMorpho of',
    groups.filter(([name]) => isByMarkets(name)),
  );
  return 0;
}

/** @param columns with what each operation takes there */
function writeTable(title: string, columns: readonly [string, Record<string, string>][]): void {
  const names = columns.map(([name]) => name);
  process.stdout.write(`| ${[title, ...names].join(' | ')} |\n|---|${'---:|'.repeat(names.length)}\n`);
  for (const operation of new Set(columns.flatMap(([, gas]) => Object.keys(gas)))) {
    const figures = columns.map(([, gas]) => {
      const used = gas[operation];
      return used === undefined ? '' : Number(used).toLocaleString('en');
    });
    process.stdout.write(`| ${[operation, ...figures].join(' | ')} |\n`);
  }
  process.stdout.write('\n');
}

const command = COMMANDS[what ?? ''];
if (command === undefined) {
  process.stderr.write(
    `farebox: one of ${Object.keys(COMMANDS).join(', ')} can be asked of the contracts.\n`,
  );
  process.exit(1);
}
process.exitCode = await command();
