/**
 * `npm start`: the whole world on one machine. Starts the sandbox parts that are not configured, then the server with
 * their addresses, and says what runs where. In production it starts the server alone.
 */
import { fork } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { prepareEmbeddedPostgres, stopEmbeddedPostgres } from '../../process/src/embedded-postgres.ts';
import { STAYING } from '../../process/src/node-flags.mjs';
import { StartError } from '../../process/src/start-error.ts';
import { isWritten, replaceFile } from '../../process/src/whole-file.ts';
import { dataDirOf } from './data-dir.ts';
import type { SandboxDevices } from './devices/devices.ts';
import type { FromServer, ToServer } from './load-server-program.ts';
import type { World } from './world.ts';

/** The server's program, which ends as this file does: they are bundled together. */
const SERVER = join(import.meta.dirname, `../../../apps/shop/src/main${extname(import.meta.filename)}`);
const SANDBOX_KEY_USD = '200';
const SHOWN_GRANT = { usd: SANDBOX_KEY_USD, label: 'sandbox', reason: 'first start of the sandbox' };
const DEVICES_GRANT = { usd: '1', label: 'sandbox devices', reason: 'owner of the devices of the sandbox' };
const CHECKOUT_PATH = '/api/m2m/credits/checkout/session';

const environment = { ...process.env };
const hasDatabase = Boolean(environment.DATABASE_URL || environment.DATABASE_URL_FILE);
if (process.argv.includes('--live')) environment.FAREBOX_UPSTREAMS = 'live';
const production = environment.FAREBOX_MODE === 'production';
// In a sandbox it loads its code and brings its database up while the world begins, and waits for the addresses then.
const loadsFirst = production ? [] : ['--import', join(import.meta.dirname, 'load-server-program.ts')];
const server = fork(SERVER, process.argv.slice(2), {
  env: environment,
  execArgv: [...STAYING, ...loadsFirst],
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
});
// Heard from now on: it may go while the world begins.
let serverIsGone = false;
const serverGone = new Promise<number | null>((resolve) => {
  server.once('exit', (code) => {
    serverIsGone = true;
    resolve(code);
  });
});
const world: World | null = production ? null : await openWorld();
const serverEnvironment = { ...environment, ...world?.environment };
let stopping = false;
let devices: SandboxDevices | null = null;
let broken = false;
void world?.broken.then((what) => {
  process.stderr.write(`farebox: ${what}. A part of the sandbox is missing, so everything stops.\n`);
  broken = true;
  stopping = true;
  server.kill('SIGTERM');
});
/** Stops the server: with Ctrl-C, or without a parent, at once; with another signal after it has left its balancer. */
function stop(told: NodeJS.Signals | 'disconnect'): void {
  if (!stopping) process.stdout.write('Stopping: running calls end, nothing new begins.\n');
  stopping = true;
  void devices?.stop();
  server.kill(told === 'SIGTERM' ? 'SIGTERM' : 'SIGINT');
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop(signal));
// A server in production that sells by a file, or has secrets in files, reads them anew, as when a supervisor reloads it; otherwise a terminal was closed.
let readsAnew =
  production &&
  (process.argv.some((each) => /^--config(=|$)/.test(each)) || Boolean(environment.FAREBOX_CONFIG));
process.on('SIGHUP', () => (readsAnew ? server.kill('SIGHUP') : stop('SIGHUP')));
// Whoever started us with a channel is gone when it closes: do not outlive them.
process.on('disconnect', () => stop('disconnect'));
server.on('message', (message: FromServer) => {
  if (!('ready' in message)) return;
  const { baseUrl } = message;
  readsAnew ||= production && message.renewsSecrets;
  makeFirstKeys()
    .then(async ({ ofDevices, shown }) => {
      announce(baseUrl, shown);
      // What only the start needed: Node would take it along for minutes.
      globalThis.gc?.();
      if (ofDevices !== null)
        devices = await startReporting(baseUrl, ofDevices).catch((error: unknown) => {
          throw new Error(
            `the sandbox's devices do not report: ${error instanceof Error ? error.message : error}`,
          );
        });
    })
    .catch((error: unknown) => {
      if (!stopping) process.stderr.write(`farebox: ${error instanceof Error ? error.message : error}\n`);
    });
});
void serverGone.then(ended);
if (world !== null) tellServer({ world: world.environment });

function ended(code: number | null): void {
  void endAll().finally(() => process.exit(broken ? 1 : (code ?? 1)));
}

/** A server that was killed has left its database running. */
async function endAll(): Promise<void> {
  if (!hasDatabase) await stopEmbeddedPostgres(dataDirOf(environment));
  await world?.stop();
}

/** That it is gone is noticed elsewhere. */
function tellServer(what: ToServer): void {
  if (!serverIsGone) server.send(what, () => undefined);
}

async function openWorld(): Promise<World> {
  // In production not a line of the sandbox is loaded.
  const { startWorld } = await import('./world.ts');
  try {
    const starting = startWorld(environment, { live: environment.FAREBOX_UPSTREAMS === 'live' });
    // One that is refused, because another one runs on the folder, has nothing to do with the database there.
    let isRefused = false;
    starting.catch(() => {
      isRefused = true;
    });
    // That no database can be made here is the server's to tell.
    await Promise.allSettled([starting, hasDatabase ? null : prepareDatabase(() => isRefused)]);
    return await starting;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    process.stderr.write(`farebox: ${error.message}\n`);
    process.exit(2);
  }
}

/** Makes it where there is none, and has the server's process start it. */
async function prepareDatabase(isRefused: () => boolean): Promise<void> {
  const dataDir = dataDirOf(environment);
  await prepareEmbeddedPostgres(dataDir);
  if (!isRefused()) tellServer({ database: { FAREBOX_DATA_DIR: dataDir } });
}

/** Says what runs where, and what to paste. @param key the sandbox's, which is shown once; null: it was before */
function announce(baseUrl: string, key: string | null): void {
  const seconds = (performance.now() / 1_000).toFixed(1);
  const lines = [`Farebox is ready (${seconds} s)`, ''];
  const row = (name: string, url: string, what: string) => `  ${name.padEnd(12)}${url.padEnd(30)}${what}`;
  lines.push(row('server', baseUrl, 'open it in a browser'));
  lines.push(
    row(
      'database',
      hasDatabase ? 'DATABASE_URL' : 'embedded PostgreSQL',
      `state in ${dataDirOf(environment)}`,
    ),
  );
  for (const { name, url, standsFor } of world?.parts ?? [])
    lines.push(row(name, url, `sandbox: ${standsFor}`));
  if (world?.adminTokenFile)
    lines.push(row('operator', `${baseUrl}/admin`, `opens with the token in ${world.adminTokenFile}`));
  if (key !== null)
    lines.push('', `  Your sandbox key, ${SANDBOX_KEY_USD} USD, shown this once:`, '', `  ${key}`);
  if (!production) {
    lines.push(
      '',
      key === null ? '  Paste (with your key in place of <key>):' : '  Paste:',
      '',
      ...commands(baseUrl, key ?? '<key>'),
    );
  }
  process.stdout.write(`${lines.join('\n')}\n\n`);
}

function commands(baseUrl: string, key: string): string[] {
  const post = (path: string, body: string) =>
    `  curl -s -X POST ${baseUrl}/x402/${path} -H 'X-API-KEY: ${key}' -H 'Content-Type: application/json' -d '${body}'`;
  return [
    post('first-call', '{}'),
    post('trade-signals', '{"token":"ETH/USDT","timeframe":"4h"}'),
    `  curl -s ${baseUrl}/api/keys/me -H 'X-API-KEY: ${key}'`,
    // Answers with a page for a browser, where a test card pays.
    `  curl -s -X POST ${baseUrl}${CHECKOUT_PATH} -H 'Content-Type: application/json' -d '{"amountUsd":10}'`,
  ];
}

/** The keys that a sandbox has: its devices', and one to be shown once. */
interface FirstKeys {
  ofDevices: string | null;
  shown: string | null;
}

/** Makes what is not there yet, on the first start; both are null in production. */
async function makeFirstKeys(): Promise<FirstKeys> {
  if (world === null) return { ofDevices: null, shown: null };
  const file = join(dataDirOf(environment), 'devices-key');
  const mark = join(dataDirOf(environment), 'sandbox-key-issued');
  const devicesHave = isWritten(file);
  const isShown = existsSync(mark);
  const made = await makeKeys([...(devicesHave ? [] : [DEVICES_GRANT]), ...(isShown ? [] : [SHOWN_GRANT])]);
  const ofDevices = devicesHave ? readFileSync(file, 'utf8') : (made.shift() ?? '');
  if (!devicesHave) replaceFile(file, ofDevices);
  if (isShown) return { ofDevices, shown: null };
  writeFileSync(mark, new Date().toISOString());
  return { ofDevices, shown: made.shift() ?? null };
}

/** Has the server's process make keys (`load-server-program.ts`). @returns them, in the order in which they are asked for */
async function makeKeys(grants: { usd: string; label: string; reason: string }[]): Promise<string[]> {
  if (grants.length === 0) return [];
  const answered = new Promise<FromServer>((resolve) => {
    server.on('message', (message: FromServer) => {
      if (!('ready' in message)) resolve(message);
    });
  });
  tellServer({ grants });
  const ended = serverGone.then(() => ({ noKeys: 'the server has ended' }));
  const answer = await Promise.race([answered, ended]);
  if ('keys' in answer) return answer.keys;
  throw new Error(`no key could be made: ${'noKeys' in answer ? answer.noKeys : 'it was not said why'}`);
}

/** Devices that report to the server as anybody's would. Nothing waits for them. */
async function startReporting(baseUrl: string, apiKey: string): Promise<SandboxDevices> {
  const { startDevices } = await import('./devices/devices.ts');
  const certificate = serverEnvironment.DEVICE_MQTT_CERT_FILE;
  return startDevices({
    serverUrl: baseUrl,
    apiKey,
    ca: certificate === undefined ? null : readFileSync(certificate, 'utf8'),
    everyMs: 10_000,
    nowMs: Date.now,
    failed: (what) => void (stopping || process.stderr.write(`farebox: sandbox device ${what}\n`)),
  });
}
