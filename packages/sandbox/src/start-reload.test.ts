/** `npm run serve` in production with a file: SIGHUP reaches the server below its parent, which reads the file anew and goes on. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openTestDatabase } from '../../../apps/shop/test/database.fixture.ts';
import { until } from '../../../apps/shop/test/fire/until.fixture.ts';
import { freePort } from '../../process/src/free-port.ts';

/** On a machine that does much else meanwhile. */
const START_WITHIN_MS = 180_000;

const configOf = (price: string) => `
upstreams: { api: { url: "http://127.0.0.1:9", prefix: "/" } }
routes: { "GET /v1/thing": { upstream: api, price: "${price}" } }
`;

test('a server of production that sells by a file reads it anew on SIGHUP to its parent, and ends on SIGTERM', async (t) => {
  const [database, folder, port] = await Promise.all([
    openTestDatabase(),
    mkdtemp(join(tmpdir(), 'serve-')),
    freePort(),
  ]);
  t.after(async () => {
    await database.close();
    await rm(folder, { recursive: true, force: true });
  });
  const file = join(folder, 'farebox.config.yaml');
  await writeFile(file, configOf('0.02'));
  const parent = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'start.ts'), '--config', file],
    {
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        FAREBOX_MODE: 'production',
        FAREBOX_SECRET: 'a-secret-of-the-tests-and-of-nothing-else',
        PUBLIC_URL: 'https://fare.test',
        DATABASE_URL: database.url,
        X402_NETWORKS: '',
        HOST: '127.0.0.1',
        PORT: String(port),
        DRAIN_DELAY_MS: '0',
        LOG_LEVEL: 'info',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let said = '';
  parent.stderr.on('data', (bytes) => {
    said += bytes;
  });
  const ended = once(parent, 'exit');
  t.after(() => parent.kill('SIGKILL'));
  const priceOf = async () => {
    assert.equal(parent.exitCode, null, said);
    const answer = await fetch(`http://127.0.0.1:${port}/v1/thing`).catch(() => null);
    return answer === null ? null : ((await answer.json()) as { price_usd?: number }).price_usd;
  };
  await until('the server to sell', async () => (await priceOf()) === 0.02, START_WITHIN_MS);
  // A change of the file is seen without a signal too, and that it is as it was is told to whoever sent one.
  parent.kill('SIGHUP');
  await until('the file to be read anew', () => said.includes('the configuration is as it was'));
  await writeFile(file, configOf('0.03'));
  parent.kill('SIGHUP');
  await until('the new price to be in force', async () => (await priceOf()) === 0.03);
  parent.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null], said);
});
