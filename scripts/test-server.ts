/** The server that tests start as a process of its own: bundled once for all of them, as its package is, since half of a start is the loading of single files. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { linkTools } from './bundle.ts';
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
  linkTools(globSync('packages/*/tools/*', { cwd: into }), { from: options.cwd, into });
  return { TEST_SERVER_PROGRAM: join(into, 'apps/shop/src/main.js') };
}
