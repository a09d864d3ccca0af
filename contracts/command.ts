/**
 * What can be asked of the contracts beside their tests: `npm run contracts:deep`, `contracts:mutate` and `bench:gas`. Ends with forge's own exit code.
 */
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, runForge } from './forge.ts';
import { mutate } from './mutate.ts';

const [what, ...more] = process.argv.slice(2);

const COMMANDS: Readonly<Record<string, () => Promise<number>>> = {
  /** The same tests with thousands of runs each. */
  deep: async () => {
    const args = ['test', '--no-match-contract', 'GasMeasure', ...more];
    return (await runForge(args, { shows: 'output', environment: { FOUNDRY_PROFILE: 'deep' } })).exitCode;
  },
  mutate: () => mutate(more),
  gas: measureGas,
};

/** Each operation as a transaction of its own, as a table. */
async function measureGas(): Promise<number> {
  const folder = join(ROOT, 'contracts/out/gas');
  rmSync(folder, { recursive: true, force: true });
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
