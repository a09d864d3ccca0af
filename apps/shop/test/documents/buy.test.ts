/** The programs of docs/buy.md, as a reader copies them, against a server. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { fund } from '../../../../packages/sandbox/src/chain/faucet.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { startTestServer, startUpstreams, type TestServer } from '../server.fixture.ts';
import { type PaymentWorld, startPaymentWorld } from '../x402.fixture.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const document = readFileSync(join(ROOT, 'docs/buy.md'), 'utf8');
const blocks = (language: string) =>
  [...document.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    ([, code = '']) => code,
  );
const folder = mkdtempSync(join(tmpdir(), 'farebox-buy-'));
/** Inside of the repository, where the name `farebox` is known. */
const programs = join(ROOT, 'node_modules/.cache/buy');
let world: PaymentWorld;
let database: TestDatabase;
let upstreams: Awaited<ReturnType<typeof startUpstreams>>;
let server: TestServer;
let environment: Record<string, string>;
before(async () => {
  [world, database, upstreams] = await Promise.all([
    startPaymentWorld(),
    openTestDatabase(),
    startUpstreams(),
  ]);
  server = await startTestServer({
    pools: database,
    environment: { ...world.environment, ...world.made },
    upstreamsUrl: upstreams.url,
  });
  const walletKey = generatePrivateKey();
  const { address } = privateKeyToAccount(walletKey);
  await fund(world.chain.url, address, { usdcMicros: 1_000_000n, ethWei: 0n });
  mkdirSync(programs, { recursive: true });
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const program = join(ROOT, 'packages/client/src/cli/main.ts');
  writeFileSync(
    join(bin, 'npx'),
    `#!/bin/sh\nshift\nexec ${process.execPath} --disable-warning=ExperimentalWarning ${program} "$@"\n`,
    { mode: 0o755 },
  );
  writeFileSync(join(bin, 'uuidgen'), '#!/bin/sh\ncat /proc/sys/kernel/random/uuid\n', { mode: 0o755 });
  environment = {
    PATH: `${bin}:${process.env.PATH}`,
    FAREBOX_URL: server.url,
    FAREBOX_API_KEY: await server.key('5'),
    FAREBOX_HOME: join(folder, 'home'),
    WALLET_KEY: walletKey,
  };
});
after(async () => {
  await server?.close();
  await Promise.all([world?.stop(), database?.close(), upstreams?.stop()]);
  rmSync(folder, { recursive: true, force: true });
  rmSync(programs, { recursive: true, force: true });
});

async function run(program: string, args: string[], { env = environment, cwd = folder } = {}) {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, error] = [text(child.stdout), text(child.stderr)];
  const [code] = await once(child, 'exit');
  return { code, out: await out, error: await error };
}

test('its programs of TypeScript fit the types, and buy', async () => {
  assert.equal(blocks('ts').length, 2);
  for (const [n, code] of blocks('ts').entries()) writeFileSync(join(programs, `program${n}.ts`), code);
  const settings = {
    extends: '../../../tsconfig.json',
    compilerOptions: { incremental: false },
    include: ['*.ts'],
  };
  writeFileSync(join(programs, 'tsconfig.json'), JSON.stringify(settings));
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const types = spawnSync(process.execPath, [tsc, '--project', programs], { encoding: 'utf8' });
  assert.equal(types.status, 0, types.stdout);
  for (const [n, said] of [/^\d+(\.\d+)?\n$/, /^true 0\.05 0x[0-9a-f]{64} \[\]\n$/].entries()) {
    // From where the name `farebox` is known, and without a file there.
    const program = (blocks('ts')[n] ?? '').replace(
      "'.farebox/purchases'",
      JSON.stringify(join(folder, 'kept')),
    );
    const args = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e', program];
    const { code, out, error } = await run(process.execPath, args, { cwd: ROOT });
    assert.equal(code, 0, error);
    assert.match(out, said);
  }
});

test('its commands buy, and print an answer', async () => {
  const [, commandLine = '', curl = ''] = blocks('sh').map((code) =>
    code.replaceAll('http://127.0.0.1:8402', server.url),
  );
  const { FAREBOX_API_KEY: key = '', ...without } = environment;
  const bought = await run('bash', ['-euc', `FAREBOX_API_KEY=${key}\n${commandLine}`], { env: without });
  assert.equal(bought.code, 0, bought.error);
  assert.match(bought.out, /"symbol":"ETH"|"price":/);
  const asked = await run('bash', ['-euc', curl]);
  assert.equal(asked.code, 0, asked.error);
  assert.equal(JSON.parse(asked.out).success, true, asked.out);
});

test('its configuration for an agent is JSON, and names a script that is there', () => {
  const [config = '', ...others] = blocks('json');
  assert.equal(others.length, 0);
  const { args } = JSON.parse(config).mcpServers.farebox;
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  assert.ok(Object.hasOwn(scripts, args.at(-1)));
});
