/** `npm run backup` while the sandbox sells, and `npm run restore`: the copy is one moment, and its books prove. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { ExactEvmScheme } from '@x402/evm';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { freePort } from '../../process/src/free-port.ts';

const QUIET = '--disable-warning=ExperimentalWarning';
const HERE = import.meta.dirname;

let folder: string;
const children: ChildProcess[] = [];
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-backup-'));
});
after(() => {
  // Only those that a failed test left behind.
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

const environment = (name: string, port: number) => ({
  ...process.env,
  FAREBOX_DATA_DIR: join(folder, name),
  PORT: String(port),
});

async function start(name: string) {
  const port = await freePort();
  const child = spawn(process.execPath, [QUIET, join(HERE, 'start.ts')], { env: environment(name, port) });
  children.push(child);
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        printed += chunk;
        if (printed.includes('/api/keys/me')) resolve();
      });
    child.on('exit', (code) => reject(new Error(`ended with ${code}: ${printed}`)));
  });
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    key: /fbx_live_[0-9a-f]{64}/.exec(printed)?.[0] ?? '',
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      assert.deepEqual(await ended, [0, null]);
    },
  };
}

async function command(name: string, port: number, program: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [QUIET, join(HERE, program), ...args], {
    env: environment(name, port),
  });
  return stdout;
}

const BOOKS = 'apps/shop/src/commands/books.ts';
const RECOVER = 'apps/shop/src/commands/recover.ts';

/** A restored installation sells nothing until somebody has looked for what was sold since: here, nothing. */
async function open(name: string, { port, url }: { port: number; url: string }): Promise<void> {
  const isReady = async () => (await fetch(`${url}/health/ready`)).ok;
  assert.equal(await isReady(), false);
  assert.match(
    await command(name, port, 'run.ts', RECOVER),
    /Nothing was sold since.*\nNothing was changed\./,
  );
  assert.equal(await isReady(), false);
  const said = await command(name, port, 'run.ts', RECOVER, '--apply', '--by', 'test');
  assert.match(said, /the shop is open/);
  while (!(await isReady())) await new Promise((next) => setTimeout(next, 100));
}

const posting = (body: unknown, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

test('a backup while calls are sold is one moment, with the chains; restored, its books prove and it sells on', async () => {
  const original = await start('original');
  const { base } = JSON.parse(await command('original', original.port, 'wallet.ts', '--json'));
  const client = new x402Client().register(
    'eip155:8453',
    new ExactEvmScheme(privateKeyToAccount(base.privateKey)),
  );
  const paying = wrapFetchWithPayment(fetch, client);
  const buy = async (byWallet: boolean, headers: Record<string, string> = {}) => {
    const request = posting({}, byWallet ? headers : { 'x-api-key': original.key, ...headers });
    const answer = await (byWallet ? paying : fetch)(`${original.url}/x402/first-call`, request);
    return { status: answer.status, text: await answer.text() };
  };
  // Purchases from before the backup are in the copy.
  const before = await buy(false, { 'idempotency-key': 'before' });
  assert.equal(before.status, 200, before.text);
  assert.equal((await buy(true)).status, 200);

  let over = false;
  let sold = 0;
  const callers = [false, false, true].map(async (byWallet) => {
    while (!over) {
      const { status, text } = await buy(byWallet);
      // When the moment lasts too long, the answer says so and charges nothing.
      assert([200, 503].includes(status), text);
      if (status === 200) sold += 1;
    }
  });
  const target = join(folder, 'copy');
  const said = await command('original', original.port, 'backup.ts', target);
  assert.match(said, /Copied .* in [\d.]+ s, for [\d.]+ s of which new calls waited/);
  const soldByThen = sold;
  while (sold < soldByThen + 5)
    await Promise.race([Promise.all(callers), new Promise((next) => setTimeout(next, 50))]);
  over = true;
  await Promise.all(callers);
  assert(!readdirSync(target).some((name) => ['server.pid', 'world.json'].includes(name)));
  assert(!existsSync(join(target, 'postgres/data/postmaster.pid')));
  for (const chain of ['chain', 'ethereum', 'tempo'])
    assert(existsSync(join(target, chain, 'state.json.gz')), chain);
  await original.stop();

  assert.match(
    await command('restored', original.port, 'restore.ts', target),
    /is as it was in the moment of/,
  );
  const restored = await start('restored');
  assert.equal(restored.key, '', 'the key of the first start is known there');
  await open('restored', restored);
  const again = await fetch(
    `${restored.url}/x402/first-call`,
    posting({}, { 'x-api-key': original.key, 'idempotency-key': 'before' }),
  );
  assert.equal(await again.text(), before.text, 'the stored answer');
  const more = await fetch(`${restored.url}/x402/first-call`, posting({}, { 'x-api-key': original.key }));
  assert.equal(more.status, 200);
  // Calls that were running at that moment end as after a crash: within the time that the reconciler needs.
  const books = async () => JSON.parse(await command('restored', restored.port, 'run.ts', BOOKS, '--json'));
  const BASE = ({ network }: { network: string }) => network === 'eip155:8453';
  let proven = await books();
  const isSettled = () => proven.balanced && proven.chains.find(BASE).unmatched.length === 0;
  for (let round = 0; !isSettled() && round < 60; round += 1) proven = await books();
  assert.equal(proven.balanced, true, JSON.stringify(proven));
  const onBase = proven.chains.find(BASE);
  assert(onBase.settlements >= 1);
  assert.deepEqual(onBase.findings, []);
  assert.deepEqual(onBase.unmatched, [], 'nothing was paid that the books of the copy do not know');
  await restored.stop();

  // A stopped installation can be copied too.
  await command('restored', restored.port, 'backup.ts', join(folder, 'cold'));
  await command('thawed', restored.port, 'restore.ts', join(folder, 'cold'));
  const thawed = await start('thawed');
  await open('thawed', thawed);
  assert.equal(
    (await fetch(`${thawed.url}/api/keys/me`, { headers: { 'x-api-key': original.key } })).status,
    200,
  );
  await thawed.stop();
});

test('a folder that is not a backup, or that would be overwritten, is refused and left as it is', async () => {
  mkdirSync(join(folder, 'full'));
  writeFileSync(join(folder, 'full', 'mine'), 'mine');
  const refused = (work: Promise<unknown>, why: RegExp) =>
    assert.rejects(
      work,
      (error: { stderr: string; code: number }) => error.code === 2 && why.test(error.stderr),
    );
  await refused(command('none', 1, 'backup.ts', join(folder, 'full')), /is not empty/);
  await refused(command('none', 1, 'backup.ts', join(folder, 'new')), /no embedded database below/);
  assert(!existsSync(join(folder, 'new')));
  await refused(command('none', 1, 'backup.ts'), /usage: npm run backup/);
  await refused(command('none', 1, 'restore.ts', join(folder, 'full')), /is not a backup/);
  writeFileSync(join(folder, 'full', 'backup.json'), '{}');
  await refused(command('full', 1, 'restore.ts', join(folder, 'full')), /is not empty/);
  const elsewhere = promisify(execFile)(
    process.execPath,
    [QUIET, join(HERE, 'backup.ts'), join(folder, 'new')],
    {
      env: { ...environment('none', 1), DATABASE_URL: 'postgres://db.example/farebox' },
    },
  );
  await refused(elsewhere, /DATABASE_URL: back it up with its own tools, such as pg_dump/);
});
