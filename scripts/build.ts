/**
 * `npm run bundle`: bundles what the commands of this repository start, as an installation does. After a change to the source, until it has
 * run, they start the source itself.
 */
import { join } from 'node:path';
import { build } from '../packages/process/src/built.mjs';

await build(join(import.meta.dirname, '..'), process.execPath);
