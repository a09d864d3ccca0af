/** For tests: the programs of the server. */
import { dirname, join } from 'node:path';

/** `npm test` bundles the server once, with its commands, for who imports this file, and names the program. */
const BUNDLED = process.env.TEST_SERVER_PROGRAM;

/**
 * A program of the server, as its package has it: half of a start is the loading of single files. Its source where there is no bundle.
 *
 * @param name its path below `apps/shop/src`, without an ending
 */
export function programOf(name: string): string {
  return BUNDLED === undefined
    ? join(import.meta.dirname, '../src', `${name}.ts`)
    : join(dirname(BUNDLED), `${name}.js`);
}
