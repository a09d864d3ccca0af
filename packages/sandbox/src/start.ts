/**
 * `npm start`: the whole world on one machine. Starts the sandbox parts that are not configured, then the server with
 * their addresses, and says what runs where. In production it starts the server alone.
 */
import { fork } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { prepareEmbeddedPostgres, stopEmbeddedPostgres } from '../../process/src/embedded-postgres.ts';
import { StartError } from '../../process/src/start-error.ts';
import { isWritten, replaceFile } from '../../process/src/whole-file.ts';
import { dataDirOf } from './data-dir.ts';
import type { SandboxDevices } from './devices/devices.ts';
import type { World } from './world.ts';

const SERVER = join(import.meta.dirname, '../../../apps/server/src');
const SANDBOX_KEY_USD = '200';
const DEVICES_GRANT = { usd: '1', label: 'sandbox devices', reason: 'owner of the devices of the sandbox' };
const CHECKOUT_PATH = '/api/m2m/credits/checkout/session';

const environment = { ...process.env };
if (process.argv.includes('--live')) environment.FAREBOX_UPSTREAMS = 'live';
const production = environment.FAREBOX_MODE === 'production';
// In a sandbox it loads its code while the world begins, and waits for the addresses then.
const loadsFirst = production ? [] : ['--import', join(import.meta.dirname, 'load-server.ts')];
const server = fork(join(SERVER, 'main.ts'), {
  env: environment,
  execArgv: ['--disable-warning=ExperimentalWarning', ...loadsFirst],
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
/** Ends what still runs for the start itself. */
const ending = new AbortController();
/** Settles when no key is being made: whoever makes one uses the database, and starts it where it is gone. */
let granting: Promise<unknown> = Promise.resolve();
let devices: SandboxDevices | null = null;
let broken = false;
void world?.broken.then((what) => {
  process.stderr.write(`farebox: ${what}. A part of the sandbox is missing, so everything stops.\n`);
  broken = true;
  stopping = true;
  server.kill('SIGTERM');
});
function stop(): void {
  if (!stopping) process.stdout.write('Stopping: running calls end, nothing new begins.\n');
  stopping = true;
  ending.abort();
  void devices?.stop();
  server.kill('SIGTERM');
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
// Whoever started us with a channel is gone when it closes: do not outlive them.
process.on('disconnect', stop);
server.on('message', (message: { ready?: boolean; baseUrl?: string }) => {
  if (message.ready !== true || message.baseUrl === undefined) return;
  const { baseUrl } = message;
  makeFirstKeys()
    .then(async ({ ofDevices, shown }) => {
      announce(baseUrl, shown);
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
const makeFirstKeys = prepareFirstKeys();
void serverGone.then(ended);
// One that ends meanwhile is told of above.
if (world !== null && !serverIsGone) server.send(world.environment, () => undefined);

function ended(code: number | null): void {
  void endAll().finally(() => process.exit(broken ? 1 : (code ?? 1)));
}

/** A server that was killed has left its database running. */
async function endAll(): Promise<void> {
  ending.abort();
  await granting;
  if (!environment.DATABASE_URL) await stopEmbeddedPostgres(dataDirOf(environment));
  await world?.stop();
}

async function openWorld(): Promise<World> {
  // In production not a line of the sandbox is loaded.
  const { startWorld } = await import('./world.ts');
  try {
    const starting = startWorld(environment, { live: environment.FAREBOX_UPSTREAMS === 'live' });
    // That no database can be made here is the server's to tell.
    const prepared = environment.DATABASE_URL ? null : prepareEmbeddedPostgres(dataDirOf(environment));
    await Promise.allSettled([starting, prepared]);
    return await starting;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    process.stderr.write(`farebox: ${error.message}\n`);
    process.exit(2);
  }
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
      environment.DATABASE_URL ? 'DATABASE_URL' : 'embedded PostgreSQL',
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

/**
 * Makes them on the first start: one process makes both, and is loaded while the server starts.
 *
 * @returns makes what is not there yet, as soon as there is a database; both are null in production, and without a server
 */
function prepareFirstKeys(): () => Promise<FirstKeys> {
  if (world === null || serverIsGone) return async () => ({ ofDevices: null, shown: null });
  const file = join(dataDirOf(environment), 'devices-key');
  const mark = join(dataDirOf(environment), 'sandbox-key-issued');
  const devicesHave = isWritten(file);
  const isShown = existsSync(mark);
  const makeKeys = prepareGrants([
    ...(devicesHave ? [] : [DEVICES_GRANT]),
    ...(isShown ? [] : [{ usd: SANDBOX_KEY_USD, label: 'sandbox', reason: 'first start of the sandbox' }]),
  ]);
  return async () => {
    const made = await makeKeys();
    const ofDevices = devicesHave ? readFileSync(file, 'utf8') : (made.shift() ?? '');
    if (!devicesHave) replaceFile(file, ofDevices);
    if (isShown) return { ofDevices, shown: null };
    writeFileSync(mark, new Date().toISOString());
    return { ofDevices, shown: made.shift() ?? null };
  };
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

/** @returns makes keys with so much credit, in the order in which they are asked for */
function prepareGrants(
  grants: readonly { usd: string; label: string; reason: string }[],
): () => Promise<string[]> {
  if (grants.length === 0) return async () => [];
  const asked = grants.flatMap(({ usd, label, reason }) => [
    '--usd',
    usd,
    '--label',
    label,
    '--reason',
    reason,
  ]);
  // With a channel, so that it ends when this process does, whatever ends it.
  const making = fork(join(SERVER, 'commands/grant.ts'), [...asked, '--json'], {
    ...{ env: serverEnvironment, signal: ending.signal },
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const { stdout: said, stderr: complained } = making;
  if (said === null || complained === null) throw new Error('a command has no output to read');
  const closed = new Promise<number | null>((resolve) => making.once('close', resolve));
  granting = closed;
  // What aborts it says so here; that it has ended is told by its code.
  making.on('error', () => {});
  const answer = Promise.all([text(said), text(complained), closed]);
  return async () => {
    making.send('there is a database', () => undefined);
    const [stdout, stderr, code] = await answer;
    if (code !== 0) throw new Error(`no key could be made: ${stderr.trim()}`);
    return stdout
      .trim()
      .split('\n')
      .map((line) => {
        const { apiKey }: { apiKey: string } = JSON.parse(line);
        return apiKey;
      });
  };
}
