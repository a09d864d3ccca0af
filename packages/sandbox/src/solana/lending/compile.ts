/** Compiles the double of the lending program, where there is a clang that can. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { definitions } from './layout.ts';
import { link } from './link.ts';
import { SOURCE_DIR } from './program.ts';

/** Another version makes other code of the same source. */
const CLANG_MAJOR = 14;
const FLAGS = [
  ...['-target', 'bpfel', '-mcpu=v2', '-O2', '-ffreestanding', '-fno-builtin'],
  ...['-Wall', '-Wextra', '-Werror', '-fno-ident'],
];
const TIMEOUT_MS = 60_000;

/** The compiler that the program is built with; null where there is none of its version. */
export function findClang(
  environment: Readonly<Record<string, string | undefined>>,
): { path: string; version: string } | null {
  const named = environment.CLANG;
  for (const path of named ? [named] : [`clang-${CLANG_MAJOR}`, 'clang']) {
    const { stdout, status } = spawnSync(path, ['--version'], { encoding: 'utf8', timeout: TIMEOUT_MS });
    const [, version, major] = /clang version ((\d+)\.[\w.]+)/.exec(stdout ?? '') ?? [];
    if (status === 0 && version !== undefined && Number(major) === CLANG_MAJOR)
      return { path, version: `clang ${version}` };
  }
  return null;
}

/**
 * Compiles and links the program.
 *
 * @throws Error with what the compiler says
 */
export function compile(clang: string): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'farebox-program-'));
  try {
    const object = join(folder, 'lending.o');
    const defined = Object.entries(definitions()).map(([name, value]) => `-D${name}=${value}`);
    const args = [...FLAGS, ...defined, '-c', 'lending.c', '-o', object];
    const run = spawnSync(clang, args, { cwd: SOURCE_DIR, encoding: 'utf8', timeout: TIMEOUT_MS });
    if (run.status !== 0) throw new Error(run.stderr || `${clang} did not run`);
    return link(readFileSync(object));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
