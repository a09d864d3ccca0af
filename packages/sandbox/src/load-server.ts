/**
 * Loaded by the server's process before the server itself (`node --import`): it loads the server's code, which takes as long
 * as the world does to begin, and hands over when it has been told the world's addresses.
 *
 * Node gives what a process was started with to its threads, and to processes that it forks. Nobody tells those anything:
 * they would wait for ever, before their own program has begun. So they load nothing here.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';

const SERVER = join(import.meta.dirname, '../../../apps/server/src');
const load = (file: string) => import(pathToFileURL(join(SERVER, file)).href);

if (isMainThread && process.argv[1] === join(SERVER, 'main.ts')) await loadUntilTold();

async function loadUntilTold(): Promise<void> {
  // Whoever started us with a channel is gone when it closes. Once the server runs, it looks after that itself.
  process.once('disconnect', () => process.listenerCount('disconnect') > 0 || process.exit(1));
  const told = new Promise<NodeJS.ProcessEnv>((resolve) => process.once('message', resolve));
  await load('app.ts');
  const { loadServices }: { loadServices(): Promise<unknown> } = await load('services/registry.ts');
  await loadServices();
  Object.assign(process.env, await told);
}
