/** The server that tests start as a process of its own: bundled once for all of them, as its package is, since half of a start is the loading of single files. */
import { globSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type RunOptions, runProgram } from './test-process.ts';

/**
 * Bundles the server.
 *
 * @param into a folder that does not exist yet
 * @returns the variable that names its program to `startServerProcess`; none when it could not be bundled, as where the registry of
 *   packages cannot be reached: then it is started from its source
 */
export async function bundleServer(into: string, options: RunOptions): Promise<Record<string, string>> {
  const { failed, output } = await runProgram(join(options.cwd, 'scripts/bundle.ts'), options, [into]);
  if (failed.length > 0) {
    process.stdout.write(
      `\nThe server could not be bundled, so tests start it from its source:\n${output}\n`,
    );
    return {};
  }
  // Tools are installed on first use: once for this repository and every bundle of it.
  for (const tool of globSync('packages/*/tools/*', { cwd: into })) {
    rmSync(join(into, tool), { recursive: true });
    symlinkSync(join(options.cwd, tool), join(into, tool), 'dir');
  }
  return { TEST_SERVER_PROGRAM: join(into, 'apps/shop/src/main.js') };
}
