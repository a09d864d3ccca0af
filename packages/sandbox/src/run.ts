/**
 * Runs one of the server's commands against the world of this folder; in production against what is configured. With
 * `--live` among the arguments its sources of data are the real ones, as for `npm start`.
 */
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [program, ...args] = process.argv.slice(2);
if (program === undefined) throw new Error('usage: run.ts <program> [arguments]');
if (process.env.FAREBOX_MODE !== 'production') {
  const { environmentOfWorld } = await import('./world.ts');
  if (args.includes('--live')) process.env.FAREBOX_UPSTREAMS = 'live';
  for (const [name, value] of Object.entries(environmentOfWorld(process.env))) process.env[name] ||= value;
}
const path = resolve(join(import.meta.dirname, '../../..', program));
process.argv = [process.execPath, path, ...args];
await import(pathToFileURL(path).href);
