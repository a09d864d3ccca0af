/** Runs forge, which comes as a binary in an npm package, on the contracts: from the root, where packages are. */
import { type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';

export const ROOT = join(import.meta.dirname, '..');

/** By what npm calls a platform: what the packages call it. */
const PACKAGES: Readonly<Record<string, string>> = {
  'linux-x64': '@foundry-rs/forge-linux-amd64',
  'linux-arm64': '@foundry-rs/forge-linux-arm64',
  'darwin-x64': '@foundry-rs/forge-darwin-amd64',
  'darwin-arm64': '@foundry-rs/forge-darwin-arm64',
  'win32-x64': '@foundry-rs/forge-win32-amd64',
};

/** @throws when no package has a binary for this platform */
function findForge(): string {
  const name = PACKAGES[`${process.platform}-${process.arch}`];
  if (name === undefined) throw new Error(`there is no forge for ${process.platform} ${process.arch}`);
  const folder = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
  return join(folder, 'bin', process.platform === 'win32' ? 'forge.exe' : 'forge');
}

export interface ForgeRun {
  exitCode: number;
  /** What it wrote to its output; empty when that was the terminal's. */
  output: string;
}

/**
 * Compiles the contracts, and those of others that their tests run on: the tests read the code that comes of it.
 *
 * @returns whether it could
 */
export async function buildAll(): Promise<boolean> {
  return (
    (await runForge(['build', 'contracts/src', 'contracts/sandbox'], { shows: 'nothing' })).exitCode === 0
  );
}

/**
 * Runs forge to its end. What it says about its progress goes to our error stream.
 *
 * @param shows where its output goes: to the terminal, or into the result
 * @param timeoutMs it is killed then, and has failed; unbounded unless given
 */
export async function runForge(
  args: readonly string[],
  options: {
    shows: 'output' | 'nothing';
    environment?: Readonly<Record<string, string>>;
    timeoutMs?: number;
  },
): Promise<ForgeRun> {
  const settings: SpawnOptions = {
    cwd: ROOT,
    env: { ...process.env, FOUNDRY_CONFIG: 'contracts/foundry.toml', ...options.environment },
    stdio: ['ignore', options.shows === 'output' ? 'inherit' : 'pipe', 'inherit'],
    ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs, killSignal: 'SIGKILL' }),
  };
  // Formatting asks for no compiler, and does not know the option.
  const offline = args[0] === 'fmt' ? [] : ['--offline'];
  const child = spawn(findForge(), [...args, '--root', ROOT, ...offline], settings);
  const ended = once(child, 'close');
  const output = child.stdout === null ? '' : await text(child.stdout);
  const [exitCode]: (number | null)[] = await ended;
  return { exitCode: exitCode ?? 1, output };
}
