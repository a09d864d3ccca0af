/** The process: configuration, parts, listen, drain. Nothing else. */
import { createRequire } from 'node:module';
import { loadServices } from '@farebox/catalogue/services/registry';
import { ABOUT_TAGS } from '@farebox/catalogue/services/tags';
import { ConfigError, databaseOf, readConfig } from '@farebox/core/config';
import { OpeningStopped, openDatabase } from '@farebox/core/db/open';
import type { Silence } from '@farebox/core/db/silence';
import { createStartPatience } from '@farebox/core/db/start-patience';
import { startJobs } from '@farebox/core/jobs/schedule';
import { redaction } from '@farebox/core/operations/redaction';
import { chooseServices } from '@farebox/core/service/choose';
import { isDatabaseLost } from '@farebox/core/words/database-away';
import { StartError } from '@farebox/process/start-error';
import pino, { type Logger } from 'pino';
import { createApp, DECLARED } from './app.ts';

const { version }: { version: string } = createRequire(import.meta.url)('../package.json');

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

async function main(): Promise<void> {
  const toldToStop = signalToStop();
  const config = readConfig(process.env, DECLARED);
  const { publicUrl, drainTimeoutMs, logLevel } = config.house;
  const logger = pino({ level: logLevel, ...redaction }, pino.destination({ dest: 2, sync: false }));
  const chosen = await chosenServices(config.house.services);
  const patience = createStartPatience({
    waits: (error) => logger.warn({ err: error }, 'the start waits for the database, for a minute at most'),
  });
  const opened = databaseOf(config);
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
    report({ what, pid, ...rest }) {
      const line = { postgresPid: pid, ...rest };
      if (what === 'gone') logger.error(line, 'the embedded PostgreSQL has ended: starting it again');
      else logger.warn(line, 'the embedded PostgreSQL is back');
    },
  });
  const stop: (() => Promise<unknown>)[] = [() => database.close()];
  const stopAll = async () => {
    for (const each of stop.reverse()) await each();
  };
  try {
    const baseUrl = publicUrl ?? localUrlOf(config.house);
    const { nowMs } = database.clock;
    const app = createApp({ config, baseUrl, version, pools: database, ...chosen, logger, nowMs });
    stop.push(() => app.close());
    isReady = await Promise.race([app.prepare(patience).then(() => true), toldToStop.then(() => false)]);
    if (!isReady) return await stopAll();
    await listen(app.http, config.house);
    const jobs = startJobs(app.jobs, (job, error) => logger.error({ job, err: error }, 'job failed'));
    stop.push(() => jobs.stop());
    process.send?.({ ready: true, baseUrl });
    logger.info({ baseUrl, services: chosen.services.length, version }, 'listening');
    endWithFaultsOfOurs(logger);

    const signal = await Promise.race([toldToStop, database.lost.then((why) => endWithDatabase(why, app))]);
    logger.info({ signal }, 'draining: no new calls, running ones end');
    app.drain();
    const forced = setTimeout(() => {
      logger.error(
        leftBy(app),
        'draining took too long; what is left will be released later; what is undelivered, look at by hand',
      );
      process.exit(1);
    }, drainTimeoutMs);
    const silent = leaveWhenSilent(database.silence, () => {
      logger.error(
        leftBy(app),
        'the database is silent: what is left will be released later; what is undelivered, look at by hand',
      );
    });
    await stopAll();
    clearTimeout(forced);
    clearInterval(silent);
  } catch (error) {
    await stopAll();
    throw error;
  }
}

/**
 * Ends the process once a drain has had its time and the database is silent: nothing can be settled with it, and what is open
 * is given back by whoever lives.
 */
function leaveWhenSilent(silence: Silence, tell: () => void): NodeJS.Timeout {
  const sinceMs = performance.now();
  return setInterval(() => {
    if (performance.now() - sinceMs < LEAVE_SILENT_WITHIN_MS || !silence.isSilent) return;
    tell();
    process.exit(1);
  }, LOOK_FOR_SILENCE_MS);
}

/** What is open when a process is ended by force. Of what is undelivered nobody else knows: it may have been charged. */
function leftBy({ paidCall, reconciler }: ReturnType<typeof createApp>) {
  return { running: paidCall.running, undelivered: reconciler.unnoted().map(({ id }) => id) };
}

/** What the operator sells, of what there is. @throws ConfigError when an entry of `SERVICES` fits nothing */
async function chosenServices(entries: readonly string[]) {
  const { sold, leftOut, problems } = chooseServices(await loadServices(), entries);
  if (problems.length > 0) throw new ConfigError(problems.map((problem) => `SERVICES: ${problem}`));
  return { services: sold, leftOut, tags: ABOUT_TAGS };
}

interface Place {
  host: string;
  port: number;
}

function localUrlOf({ host, port }: Place): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** @throws StartError when somebody else listens there */
async function listen(http: ReturnType<typeof createApp>['http'], { host, port }: Place): Promise<void> {
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

/** From here on a stop is heard, and does not end the process before its database has stopped. @returns what told it */
function signalToStop(): Promise<string> {
  return new Promise((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => resolve(name));
    // Whoever started us with a channel is gone when it closes: do not outlive them.
    process.once('disconnect', () => resolve('disconnect'));
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

main().then(() => process.exit(0), leave);
