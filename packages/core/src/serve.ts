/**
 * Runs a shop as a process: reads the configuration, opens the database, listens, and drains when it is told to stop.
 */
import { StartError } from '@farebox/process/start-error';
import { listenForStop } from '@farebox/process/stop-signals';
import pino, { type Logger } from 'pino';
import {
  type AnyDeclared,
  ConfigError,
  type ConfigOf,
  databaseOf,
  readConfig,
  renewSecrets,
  variablesOf,
} from './config.ts';
import type { DATABASE } from './db/declared.ts';
import { OpeningStopped, openDatabase } from './db/open.ts';
import type { Silence } from './db/silence.ts';
import { createStartPatience } from './db/start-patience.ts';
import type { HouseNeeds, Server } from './house.ts';
import { startJobs } from './jobs/schedule.ts';
import { redaction } from './operations/redaction.ts';
import { hasSecretFiles } from './secret-files.ts';
import { chooseServices } from './service/choose.ts';
import type { Service } from './service/define.ts';
import { isDatabaseLost } from './words/database-away.ts';

/** From a database that is gone for good to the end of the process. */
const LEAVE_WITHIN_MS = 2_000;

class DatabaseGone extends Error {
  constructor(why: string) {
    super(`the embedded PostgreSQL has ended and could not be started again: ${why}`);
  }
}

/** A silent database gets no more of a drain's time than every caller needs to be told. */
const LEAVE_SILENT_WITHIN_MS = 6_000;
/** How often a drain that goes on looks whether the database has fallen silent. */
const LOOK_FOR_SILENCE_MS = 250;

/** A shop: what it is configured by, what it sells, and how its list of parts becomes a server. */
export interface ShopProcess<Parts extends WithDatabase> {
  /** The declarations of the parts; the database's declaration is among them. */
  declared: Parts;
  createApp(needs: HouseNeeds & { config: ConfigOf<Parts> }): Server;
  /** Everything there is to sell, in catalog order; `SERVICES` chooses from it. Called once. */
  services(): readonly Service[] | Promise<readonly Service[]>;
  /** Paths of services that are not sold, whatever `SERVICES` says; none unless given. Asked once the services are loaded. */
  withheld?(): readonly string[];
  /** The categories of the services, in the order of the catalog, and what each holds. A function is asked once they are loaded. */
  tags: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>);
  version: string;
}

type WithDatabase = readonly [typeof DATABASE, ...(readonly AnyDeclared[])];

/**
 * Runs a shop until the process is told to stop (SIGINT, SIGTERM, or the end of the channel to its parent), and then
 * ends the process: with 0, with 2 when the start was refused, with 1 when something failed.
 *
 * @param environment such as `process.env`: all that the shop is configured by
 */
export function serve<const Parts extends WithDatabase>(
  shop: ShopProcess<Parts>,
  environment: Readonly<Record<string, string | undefined>>,
): void {
  run(shop, environment).then(() => process.exit(0), leave);
}

async function run<const Parts extends WithDatabase>(
  shop: ShopProcess<Parts>,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const stopSignals = listenForStop(process, () => performance.now());
  const { told: toldToStop } = stopSignals;
  const { version } = shop;
  const config = readConfig(environment, shop.declared);
  const { publicUrl, drainDelayMs, drainTimeoutMs, logLevel } = config.house;
  const logger = pino({ level: logLevel, ...redaction }, pino.destination({ dest: 2, sync: false }));
  const renewsSecrets = renewOnHangUp(config, environment, { declared: shop.declared, logger });
  const services = await shop.services();
  const withheld = shop.withheld?.().map((path) => `!${path}`) ?? [];
  const chosen = choose(services, [...config.house.services, ...withheld]);
  const tags = typeof shop.tags === 'function' ? shop.tags() : shop.tags;
  const patience = createStartPatience({
    waits: (error) => logger.warn({ err: error }, 'the start waits for the database, for a minute at most'),
  });
  const opened = databaseOf(config as ConfigOf<WithDatabase>);
  let isReady = false;
  void toldToStop.then((signal) => {
    if (isReady) return;
    logger.info({ signal }, 'told to stop before it was ready');
    // An embedded database that is starting is stopped, which takes its time.
    const withinMs = opened.databaseUrl === null ? drainTimeoutMs : LEAVE_SILENT_WITHIN_MS;
    setTimeout(() => process.exit(1), withinMs);
  });
  const database = await openDatabase(opened, {
    exclusive: true,
    patience,
    stopped: toldToStop,
    report: reportTo(logger),
  });
  const stop: (() => Promise<unknown>)[] = [() => database.close()];
  const stopAll = async () => {
    for (const each of stop.reverse()) await each();
  };
  try {
    const baseUrl = publicUrl ?? localUrlOf(config.house);
    const { nowMs } = database.clock;
    const app = shop.createApp({ config, baseUrl, version, tags, pools: database, ...chosen, logger, nowMs });
    stop.push(() => app.close());
    isReady = await Promise.race([app.prepare(patience).then(() => true), toldToStop.then(() => false)]);
    if (!isReady) return await stopAll();
    globalThis.gc?.(); // What only the start needed goes while nobody waits yet, where Node was told to let us.
    await listen(app.http, config.house);
    const jobs = startJobs(app.jobs, (job, error) => logger.error({ job, err: error }, 'job failed'));
    stop.push(() => jobs.stop());
    process.send?.({ ready: true, baseUrl, renewsSecrets });
    logger.info({ baseUrl, services: chosen.services.length, version }, 'listening');
    endWithFaultsOfOurs(logger);

    const lost = database.lost.then((why) => endWithDatabase(why, app));
    const signal = await Promise.race([toldToStop, lost]);
    // Ctrl-C is somebody who waits, and an embedded database has no other replica to send calls to.
    if (signal === 'SIGTERM' && opened.databaseUrl !== null) {
      logger.info({ signal, drainDelayMs }, 'not ready any more, and calls are still taken');
      app.leave();
      await delayUnless([stopSignals.toldAgain, lost], drainDelayMs, database.silence);
    }
    logger.info({ signal }, 'draining: no new calls, running ones end');
    app.drain();
    const giveUp = endWhenDrainHangs(app, { logger, silence: database.silence, drainTimeoutMs });
    await stopAll();
    giveUp.cancel();
  } catch (error) {
    await stopAll();
    throw error;
  }
}

/** Reads secrets again that stand in files, whenever the process gets SIGHUP. Without such files the signal is left as it is. */
function renewOnHangUp(
  config: object,
  environment: Readonly<Record<string, string | undefined>>,
  { declared, logger }: { declared: readonly AnyDeclared[]; logger: Logger },
): boolean {
  if (!hasSecretFiles(environment, variablesOf(declared))) return false;
  process.on('SIGHUP', () => {
    try {
      const { renewed, waiting } = renewSecrets(config, environment, declared);
      logger.info({ renewed }, 'secrets were read again');
      if (waiting.length > 0) logger.warn({ waiting }, 'these new secrets wait for the next start');
    } catch (error) {
      logger.error({ err: error }, 'secrets were read again, and the old ones stay');
    }
  });
  return true;
}

/** Logs what becomes of the embedded PostgreSQL. */
function reportTo(logger: Logger): NonNullable<Parameters<typeof openDatabase>[1]['report']> {
  return ({ what, pid, ...rest }) => {
    const line = { postgresPid: pid, ...rest };
    if (what === 'gone') logger.error(line, 'the embedded PostgreSQL has ended: starting it again');
    else logger.warn(line, 'the embedded PostgreSQL is back');
  };
}

/** Ends the process by force, and logs what it leaves open, when a drain takes too long or the database is silent. */
function endWhenDrainHangs(
  app: Server,
  { logger, silence, drainTimeoutMs }: { logger: Logger; silence: Silence; drainTimeoutMs: number },
): { cancel(): void } {
  const end = (why: string) => {
    logger.error(
      app.leftOpen(),
      `${why}: what is left will be released later; what is undelivered, look at by hand`,
    );
    process.exit(1);
  };
  const forced = setTimeout(() => end('draining took too long'), drainTimeoutMs);
  const silent = leaveWhenSilent(silence, () => end('the database is silent'));
  return {
    cancel() {
      clearTimeout(forced);
      clearInterval(silent);
    },
  };
}

/**
 * Ends the process once a drain has had its time and the database is silent: nothing can be settled with it, and what is open
 * is given back by whoever lives.
 */
function leaveWhenSilent(silence: Silence, end: () => void): NodeJS.Timeout {
  const sinceMs = performance.now();
  return setInterval(() => {
    if (performance.now() - sinceMs >= LEAVE_SILENT_WITHIN_MS && silence.isSilent) end();
  }, LOOK_FOR_SILENCE_MS);
}

/** Chooses the services that the operator sells. @throws ConfigError when an entry of `SERVICES` fits nothing */
function choose(services: readonly Service[], entries: readonly string[]) {
  const { sold, leftOut, problems } = chooseServices(services, entries);
  if (problems.length > 0) throw new ConfigError(problems.map((problem) => `SERVICES: ${problem}`));
  return { services: sold, leftOut };
}

interface Place {
  host: string;
  port: number;
}

function localUrlOf({ host, port }: Place): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** @throws StartError when somebody else listens there */
async function listen(http: Server['http'], { host, port }: Place): Promise<void> {
  await http.listen({ host, port }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new StartError(`port ${port} on ${host} is taken. Stop what listens there, or set PORT.`);
  });
}

/** A promise that nobody holds is a fault of ours, unless all that it says is that a connection to the database broke. */
function endWithFaultsOfOurs(logger: Logger): void {
  process.on('unhandledRejection', (error) => {
    if (isDatabaseLost(error)) return logger.warn({ err: error }, 'a database connection broke');
    logger.fatal({ err: error }, 'nobody expected this');
    process.exit(1);
  });
}

/** Waits for a delay; shorter when one of the reasons comes, or the database is silent. @throws what a reason throws */
async function delayUnless(reasons: Promise<unknown>[], delayMs: number, silence: Silence): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const delay = setTimeout(resolve, delayMs);
  const looking = setInterval(() => {
    if (silence.isSilent) resolve();
  }, LOOK_FOR_SILENCE_MS);
  await Promise.race([promise, ...reasons]).finally(() => {
    clearTimeout(delay);
    clearInterval(looking);
  });
}

/** @throws at once, so that what can be stopped is stopped */
function endWithDatabase(why: string, app: { drain(): void }): never {
  app.drain();
  // Nothing that is running can end well any more.
  setTimeout(() => leave(new DatabaseGone(why)), LEAVE_WITHIN_MS);
  throw new DatabaseGone(why);
}

/** Ends the process with a line that says why. */
function leave(error: unknown): never {
  const known = error instanceof StartError || error instanceof DatabaseGone;
  if (error instanceof OpeningStopped) process.exit(0);
  process.stderr.write(
    `farebox: ${error instanceof Error ? (known ? error.message : error.stack) : String(error)}\n`,
  );
  process.exit(error instanceof StartError ? 2 : 1);
}
