/**
 * What can be asked of the contracts beside their tests: `npm run contracts:deep`, `contracts:mutate`, `contracts:coverage`,
 * `contracts:deploy` and `bench:gas`. Ends with forge's own exit code.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cometCompiler, compileComet, hasComet } from './comet.ts';
import { coverage } from './coverage.ts';
import { deploy } from './deploy.ts';
import { buildAll, ROOT, runForge } from './forge.ts';
import { mutate } from './mutate.ts';
import { NotDeployable, readSetup } from './setup.ts';

const [what, ...more] = process.argv.slice(2);

const COMMANDS: Readonly<Record<string, () => Promise<number>>> = {
  /** The same tests with thousands of runs each. */
  deep: async () => {
    const [flag, folder, ...others] = more;
    if (flag === '--comet') return realComet(folder, others);
    if (!(await buildAll())) return 1;
    if (flag === '--suite') return publishedSuite(folder, others);
    process.stderr.write(
      'farebox: the real Comet is skipped: it needs a checkout of it (-- --comet <folder>).\n',
    );
    const args = ['test', '--no-match-contract', 'GasMeasure', ...more];
    return (await runForge(args, { shows: 'output', environment: { FOUNDRY_PROFILE: 'deep' } })).exitCode;
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
async function realComet(folder: string | undefined, more: readonly string[]): Promise<number> {
  if (folder === undefined || !hasComet(folder)) {
    process.stderr.write(
      'usage: npm run contracts:deep -- --comet <a checkout of github.com/compound-finance/comet>\n',
    );
    return 2;
  }
  const compiler = cometCompiler();
  if (compiler === undefined) {
    process.stderr.write(
      'farebox: the real Comet is skipped: its compiler (solc-comet of contracts/package.json) is not installed.\n',
    );
    return 0;
  }
  if (!(await buildAll())) return 1;
  compileComet(compiler, folder);
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
      ...{ rpcUrl, key: key as `0x${string}`, setup: readSetup(file) },
      ...{ send: flags.includes('--send'), recordFile: `${file.replace(/\.json$/, '')}.deployed.json` },
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
  const figure = (gas: string | undefined) => (gas === undefined ? '' : Number(gas).toLocaleString('en'));
  const vaults = groups.filter(([name]) => name !== 'direct');
  const operations = [...new Set(vaults.flatMap(([, gas]) => Object.keys(gas)))];
  process.stdout.write(
    `| with this protocol active | ${vaults.map(([name]) => name).join(' | ')} |\n|---|${'---:|'.repeat(vaults.length)}\n`,
  );
  for (const operation of operations) {
    const figures = vaults.map(([, gas]) => figure(gas[operation]));
    process.stdout.write(`| ${operation} | ${figures.join(' | ')} |\n`);
  }
  process.stdout.write('\n| the protocol itself | gas |\n|---|---:|\n');
  for (const [operation, gas] of Object.entries(Object.fromEntries(groups).direct ?? {})) {
    process.stdout.write(`| ${operation} | ${figure(gas)} |\n`);
  }
  return 0;
}

const command = COMMANDS[what ?? ''];
if (command === undefined) {
  process.stderr.write(
    `farebox: one of ${Object.keys(COMMANDS).join(', ')} can be asked of the contracts.\n`,
  );
  process.exit(1);
}
process.exitCode = await command();
