/**
 * Loaded by the server's process before the server itself (`node --import`): it loads the server's code and brings its database
 * up, which takes as long as the world does to begin, and hands over when it has been told the world's addresses. Later it
 * makes the sandbox's keys there, where all that is needed for it is loaded.
 *
 * Node gives what a process was started with to its threads, and to processes that it forks. Nobody tells those anything:
 * they would wait for ever, before their own program has begun. So they load nothing here.
 */
import { extname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';

/** What `start.ts` tells this process, each kind once at most and in this order. */
export type ToServer =
  /** A database has been made, in the folder that is named here, and can be started. */
  | { database: Record<string, string> }
  /** All addresses of the world: the server can begin. */
  | { world: Record<string, string> }
  /** Which keys to make. The server listens by then. */
  | { grants: { usd: string; label: string; reason: string }[] };

/** What it is told by this process and by the server. */
export type FromServer =
  | { ready: true; baseUrl: string; renewsSecrets: boolean }
  | { keys: string[] }
  | { noKeys: string };

const SERVER = join(import.meta.dirname, '../../../apps/shop/src');
const CATALOGUE = join(import.meta.dirname, '../../catalogue/src');
/** As this file ends: they are bundled together. */
const CODE = extname(import.meta.filename);
const load = (path: string) => import(pathToFileURL(path + CODE).href);
/** A database that is being brought up is waited for before it is stopped, but not for ever. */
const COMES_UP_WITHIN_MS = 10_000;
const LOOKED_EVERY_MS = 5;

if (isMainThread && process.argv[1] === join(SERVER, `main${CODE}`)) await loadUntilTold();

async function loadUntilTold(): Promise<void> {
  let leave = async (): Promise<void> => process.exit(1);
  let isHandedOver = false;
  let isLeaving = false;
  const heard = async (event: NodeJS.Signals | 'disconnect') => {
    // The server hears it itself once it runs.
    if (process.listenerCount(event) > 0) return;
    if (!isHandedOver) {
      isLeaving = true;
      return leave();
    }
    while (process.listenerCount(event) === 0) await sleep(LOOKED_EVERY_MS);
    process.emit(event as 'disconnect');
  };
  // Whoever started us with a channel is gone when it closes.
  process.once('disconnect', () => void heard('disconnect'));

  const world = Promise.withResolvers<Record<string, string>>();
  const loaded = loadServer();
  let database: Promise<void> | null = null;
  process.on('message', (told: ToServer) => {
    if ('world' in told) world.resolve(told.world);
    if ('grants' in told) void makeKeys(told.grants);
    if ('database' in told) {
      const environment = { ...process.env, ...told.database };
      database = loaded.then(({ bringDatabaseUp, letGoOfDatabase }) => {
        // From here on somebody has to stop it.
        for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void heard(signal));
        // What keeps it from coming up, the server finds as well and says.
        const up = bringDatabaseUp(environment).catch(() => undefined);
        leave = async () => {
          await Promise.race([up, sleep(COMES_UP_WITHIN_MS)]);
          await letGoOfDatabase(environment).finally(() => process.exit(1));
        };
        return up;
      });
    }
  });
  await loaded;
  const environment = await world.promise;
  await database;
  // The server would start the database again that is being stopped.
  if (isLeaving) await new Promise<never>(() => {});
  Object.assign(process.env, environment);
  isHandedOver = true;
}

interface BesideStart {
  bringDatabaseUp(environment: NodeJS.ProcessEnv): Promise<void>;
  letGoOfDatabase(environment: NodeJS.ProcessEnv): Promise<void>;
  makeKeys(environment: NodeJS.ProcessEnv, grants: object[]): Promise<string[]>;
}

async function loadServer(): Promise<BesideStart> {
  await load(join(SERVER, 'app'));
  const { loadServices }: { loadServices(): Promise<unknown> } = await load(
    join(CATALOGUE, 'services/registry'),
  );
  await loadServices();
  return load(join(SERVER, 'commands/beside-start'));
}

async function makeKeys(grants: object[]): Promise<void> {
  const { makeKeys: make }: BesideStart = await load(join(SERVER, 'commands/beside-start'));
  const answer: FromServer = await make(process.env, grants).then(
    (keys) => ({ keys }),
    (error: unknown) => ({ noKeys: error instanceof Error ? error.message : String(error) }),
  );
  // Whoever asked may be gone.
  if (process.connected) process.send?.(answer);
}
