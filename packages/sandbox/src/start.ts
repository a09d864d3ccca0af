/**
 * `npm start`: the whole world on one machine. Starts the sandbox parts that are not configured, then the server with
 * their addresses, and says what runs where. In production it starts the server alone.
 */
import { fork } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { stopEmbeddedPostgres } from '../../process/src/embedded-postgres.ts';
import { StartError } from '../../process/src/start-error.ts';
import { dataDirOf } from './data-dir.ts';
import type { SandboxDevices } from './devices/devices.ts';
import type { World } from './world.ts';

const SERVER = join(import.meta.dirname, '../../../apps/server/src');
const SANDBOX_KEY_USD = '200';
const CHECKOUT_PATH = '/api/m2m/credits/checkout/session';

const environment = { ...process.env };
if (process.argv.includes('--live')) environment.FAREBOX_UPSTREAMS = 'live';
const startedAtMs = performance.now();
const production = environment.FAREBOX_MODE === 'production';
const world: World | null = production ? null : await openWorld();
const serverEnvironment = { ...environment, ...world?.environment };

const server = fork(join(SERVER, 'main.ts'), {
  env: serverEnvironment,
  execArgv: ['--disable-warning=ExperimentalWarning'],
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
});
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
  devicesKey()
    .then(async (apiKey) => {
      await announce(baseUrl);
      if (apiKey !== null) devices = await startReporting(baseUrl, apiKey);
    })
    .catch((error: unknown) => {
      if (!stopping) process.stderr.write(`farebox: ${error instanceof Error ? error.message : error}\n`);
    });
});
server.on('exit', (code) => {
  void endAll().finally(() => process.exit(broken ? 1 : (code ?? 1)));
});

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
    return await startWorld(environment, { live: environment.FAREBOX_UPSTREAMS === 'live' });
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    process.stderr.write(`farebox: ${error.message}\n`);
    process.exit(2);
  }
}

/** Says what runs where, and what to paste. The key is made on the first start only, and shown this once. */
async function announce(baseUrl: string): Promise<void> {
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
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
  const key = production ? null : await firstKey();
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

/** The key that owns the sandbox's devices: made on the first start. Null where there is no sandbox. */
async function devicesKey(): Promise<string | null> {
  if (world === null) return null;
  const file = join(dataDirOf(environment), 'devices-key');
  if (!existsSync(file)) {
    const key = await granted('1', 'sandbox devices', 'owner of the devices of the sandbox');
    writeFileSync(file, key, { mode: 0o600 });
  }
  return readFileSync(file, 'utf8');
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

async function firstKey(): Promise<string | null> {
  const mark = join(dataDirOf(environment), 'sandbox-key-issued');
  if (existsSync(mark)) return null;
  const apiKey = await granted(SANDBOX_KEY_USD, 'sandbox', 'first start of the sandbox');
  writeFileSync(mark, new Date().toISOString());
  return apiKey;
}

/** A new key with so much credit. */
async function granted(usd: string, label: string, reason: string): Promise<string> {
  // With a channel, so that it ends when this process does, whatever ends it.
  const making = fork(
    join(SERVER, 'commands/grant.ts'),
    ['--usd', usd, '--label', label, '--reason', reason, '--json'],
    {
      ...{ env: serverEnvironment, signal: ending.signal },
      execArgv: ['--disable-warning=ExperimentalWarning'],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    },
  );
  const { stdout: said, stderr: complained } = making;
  if (said === null || complained === null) throw new Error('a command has no output to read');
  const closed = new Promise<number | null>((resolve) => making.once('close', resolve));
  granting = closed;
  // What aborts it says so here; that it has ended is told by its code.
  making.on('error', () => {});
  const [stdout, stderr, code] = await Promise.all([text(said), text(complained), closed]);
  if (code !== 0) throw new Error(`no key could be made: ${stderr.trim()}`);
  const { apiKey }: { apiKey: string } = JSON.parse(stdout);
  return apiKey;
}
