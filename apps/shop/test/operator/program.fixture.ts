import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { SURROUNDINGS } from '../surroundings.fixture.ts';

/** Runs a command of the shop to its end. @returns its exit code, and what it wrote to standard output */
export async function runProgram(
  program: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ code: number | null; out: string }> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...args], {
    env: { ...SURROUNDINGS, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    err += chunk;
  });
  const [code] = await once(child, 'close');
  return { code, out: out === '' ? err : out };
}
