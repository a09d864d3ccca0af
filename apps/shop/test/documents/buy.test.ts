/** The programs of docs/buy.md, as a reader copies them, against a server. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { x402Client, x402HTTPClient } from '@x402/core/client';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { evm, Mppx } from 'mppx/client';
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
    environment: { ...world.environment, ...world.made, MPP_METHODS: 'evm', MPP_SECRET_KEY: 'm'.repeat(40) },
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

/** Which of the documented headers each of these answers has, in the order of the table's columns. */
async function headersOfAnswers(names: readonly string[]): Promise<string[][]> {
  const account = privateKeyToAccount(environment.WALLET_KEY as `0x${string}`);
  const posting = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  const byKey = { 'x-api-key': environment.FAREBOX_API_KEY ?? '', 'idempotency-key': 'headers' };
  const client = new x402HTTPClient(new x402Client().register('eip155:*', new ExactEvmScheme(account)));
  const unpaid = await fetch(`${server.url}/x402/ping`, posting);
  const asked = client.getPaymentRequiredResponse((name) => unpaid.headers.get(name), await unpaid.json());
  const byX402 = client.encodePaymentSignatureHeader(await client.createPaymentPayload(asked));
  const charge = evm.charge({ account, authorization: { name: 'USD Coin', version: '2' } });
  const wallet = Mppx.create({ polyfill: false, methods: [charge] });
  const challenged = await fetch(`${server.url}/mpp/ping`, posting);
  const byMpp = { authorization: await wallet.createCredential(challenged) };
  const answers: string[][] = [];
  for (const [path, paid] of [
    ['/x402/ping', byKey],
    ['/x402/ping', byX402],
    ['/mpp/ping', byMpp],
  ] as const)
    for (const time of ['first', 'again']) {
      const headers = { ...posting.headers, ...paid };
      const answer = await fetch(server.url + path, { ...posting, headers });
      assert.equal(answer.status, 200, `${path} ${time}: ${await answer.text()}`);
      answers.push(names.filter((name) => answer.headers.has(name)));
    }
  return answers;
}

test('the headers of a paid answer are those that docs/paid-call.md has, by how it was paid and whether it came before', async () => {
  const text = readFileSync(join(ROOT, 'docs/paid-call.md'), 'utf8');
  const [, section = ''] = text.split('\n## The headers of a paid answer\n');
  const rows = [...section.matchAll(/^\| `([\w-]+)` \| .+? \|((?: (?:yes)? ?\|){6})$/gm)].map(
    ([, name = '', cells = '']) => ({ name, cells: cells.split('|').slice(0, -1) }),
  );
  assert(rows.length >= 8, `${rows.length} headers`);
  const told = [0, 1, 2, 3, 4, 5].map((column) =>
    rows.filter(({ cells }) => cells[column]?.trim() === 'yes').map(({ name }) => name),
  );
  assert.deepEqual(await headersOfAnswers(rows.map(({ name }) => name)), told);
});

test('the commands of the README ask a price and buy, on whichever port the server listens', async () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const commands = [...readme.matchAll(/^```sh\n([\s\S]*?)^```/gm)]
    .flatMap(([, block = '']) => block.split('\n'))
    .filter((line) => /^(curl|npm run -s farebox) /.test(line))
    .map((line) =>
      line.replaceAll('http://127.0.0.1:8402', server.url).replace('npm run -s farebox --', 'npx farebox'),
    );
  assert.equal(commands.length, 3);
  const { FAREBOX_URL: _, ...withoutAddress } = environment;
  const env = { ...withoutAddress, KEY: environment.FAREBOX_API_KEY ?? '', PORT: new URL(server.url).port };
  const outputs = [];
  for (const command of commands) {
    const { code, out, error } = await run('bash', ['-euc', command], { env });
    assert.equal(code, 0, `${command}: ${error}`);
    outputs.push(out);
  }
  const [price = '', bought = '', byClient = ''] = outputs;
  assert.match(price, /^HTTP\/1.1 402 [\s\S]*x-payment-price: \$0.25 USDC/);
  assert.match(bought, /^HTTP\/1.1 200 [\s\S]*x-credits-used: 0.2500/);
  assert.equal(JSON.parse(byClient).service, 'token-price');
});
