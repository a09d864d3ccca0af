/** The first hour with a device, as docs/devices.md has it: each of its commands and programs runs as it stands there. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { openCertificate } from '../devices.fixture.ts';
import { startTestServer, type TestServer } from '../server.fixture.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const execute = promisify(execFile);

const certificate = openCertificate();
const folder = mkdtempSync(join(tmpdir(), 'farebox-first-hour-'));
let database: TestDatabase;
let server: TestServer;
let blocks: { language: string; text: string }[];
/** The variables that the reader has in the shell by then. */
let shell: Record<string, string>;
before(async () => {
  const page = readFileSync(join(ROOT, 'docs/devices.md'), 'utf8');
  const [, section = ''] = /^## The first hour$(.*?)^## /ms.exec(page) ?? [];
  blocks = [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({
    language,
    text,
  }));
  database = await openTestDatabase();
  server = await startTestServer({ pools: database, environment: certificate.environment });
  shell = {
    PATH: process.env.PATH ?? '',
    KEY: await server.key('5'),
    FAREBOX_URL: server.url,
    CA: certificate.environment.DEVICE_MQTT_CERT_FILE,
  };
  // The addresses of the sandbox stand in the first block; here they are others.
  const register = block('sh', 'POST $FAREBOX_URL/api/devices').replace(/^export FAREBOX_URL.*$/m, '');
  const told = await run('sh', ['-c', `${register}echo "$SECRET $MQTT_PORT"`], folder);
  const [secret = '', port = ''] = told.trim().split(' ');
  shell = { ...shell, SECRET: secret, MQTT_PORT: port };
});
after(async () => {
  await server.close();
  await database.close();
  certificate.close();
  rmSync(folder, { recursive: true, force: true });
});

function block(language: string, holds: string): string {
  const found = blocks.filter((each) => each.language === language && each.text.includes(holds));
  assert.equal(found.length, 1, `one block of ${language} with ${holds}`);
  return found[0]?.text ?? '';
}

async function run(command: string, args: readonly string[], cwd = ROOT): Promise<string> {
  return (await execute(command, args, { cwd, env: shell })).stdout;
}

/** Skips where a program is not installed, and says so. */
function isThere(context: TestContext, command: string, args: readonly string[]): boolean {
  const { status } = spawnSync(command, args, { env: shell });
  if (status === 0) return true;
  context.skip(`not installed here: ${command} ${args.join(' ')}`);
  return false;
}

async function assertStored(temperature: number): Promise<void> {
  const rows = await database.sql<{ stored: number }[]>`
    select (r.measured ->> 'temperature')::double precision as stored
    from device_readings r join devices d on d.no = r.device where d.id = 'greenhouse-7'`;
  assert(
    rows.some(({ stored }) => stored === temperature),
    `${temperature} is stored`,
  );
  const seen = JSON.parse(await run('sh', ['-c', block('sh', 'curl -s $FAREBOX_URL/api/devices/')]));
  assert.deepEqual([seen.readings, seen.lastRefusal], [rows.length, null]);
}

test('mosquitto_pub', async (context) => {
  if (!isThere(context, 'sh', ['-c', 'command -v mosquitto_pub'])) return;
  await run('sh', ['-c', block('sh', 'mosquitto_pub')]);
  await assertStored(21.4);
});

test('mqtt.js', async () => {
  await run(process.execPath, ['--input-type=module', '-e', block('js', "from 'mqtt'")]);
  await assertStored(21.5);
});

test('paho', async (context) => {
  // Debian's package is for Debian's own Python, which need not be the first.
  const python = existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';
  if (!isThere(context, python, ['-c', 'import paho.mqtt.publish'])) return;
  await run(python, ['-c', block('python', 'paho.mqtt')]);
  await assertStored(21.6);
});

test('HTTPS', async () => {
  const told = await run(process.execPath, ['--input-type=module', '-e', block('js', "from 'node:crypto'")]);
  assert.deepEqual(JSON.parse(told), { success: true, stored: 1, known: 0 });
  await assertStored(21.7);
});
