/** `npm start` as its user meets it: real processes, from first start to restart. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { x402Client, x402HTTPClient } from '@x402/core/client';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { evm, Mppx } from 'mppx/client';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { freePort } from '../../process/src/free-port.ts';
import { accountsOf } from './chain/accounts.ts';
import { ETHEREUM } from './chain/addresses.ts';
import { META_MORPHO } from './chain/lending/addresses.ts';
import { runningOn } from './chain/state-files.ts';

const QUIET = '--disable-warning=ExperimentalWarning';
const execute = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
/** What an installation bundles, at the depth at which it has it. */
const BUNDLE = join(ROOT, `node_modules/.cache/farebox-start-test-${process.pid}`);
const HERE = join(BUNDLE, 'packages/sandbox/src');

let folder: string;
const children: ChildProcess[] = [];
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-start-'));
  await execute(process.execPath, [QUIET, join(ROOT, 'scripts/bundle.ts'), BUNDLE, '--here=sandbox']);
});
after(() => {
  // Only those that a failed test left behind.
  for (const child of children) child.kill('SIGKILL');
  rmSync(BUNDLE, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

/** What `npm start` writes in its folder once. */
const HALF_WRITTEN = [
  ...['accounts-seed', 'secret', 'wallet-key', 'mpp-key', 'card-key', 'card-webhook-secret', 'admin-token'],
  ...['mqtt-key.pem', 'mqtt-cert.pem', 'devices-key', 'server.pid'],
];

interface World {
  url: string;
  key: string | undefined;
  /** What it has printed until now. */
  readonly printed: string;
  process: ChildProcess;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

function environment(name: string, port: number): NodeJS.ProcessEnv {
  return { ...process.env, FAREBOX_DATA_DIR: join(folder, name), PORT: String(port) };
}

/** What the world of a folder has written down about itself. */
function noteOf(name: string): string {
  return readFileSync(join(folder, name, 'world.json'), 'utf8');
}

async function start(name: string, port: number, configured: Record<string, string> = {}): Promise<World> {
  const env = { ...environment(name, port), ...configured };
  const child = spawn(process.execPath, [QUIET, join(HERE, 'start.js')], { env });
  children.push(child);
  let printed = '';
  const ready = new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      printed += chunk;
      if (printed.includes('/api/keys/me')) resolve();
    });
    child.stderr.on('data', (chunk) => {
      printed += chunk;
    });
    child.on('exit', (code) => reject(new Error(`ended with ${code}: ${printed}`)));
  });
  await ready;
  return {
    url: `http://127.0.0.1:${port}`,
    key: /fbx_live_[0-9a-f]{64}/.exec(printed)?.[0],
    get printed() {
      return printed;
    },
    process: child,
    async stop(signal = 'SIGTERM') {
      const ended = once(child, 'exit');
      child.kill(signal);
      const [code] = await ended;
      return code;
    },
  };
}

/** While it runs this process hears that idle connections end, which it would else use for its next request. */
async function command(name: string, port: number, program: string, ...args: string[]): Promise<string> {
  const options = { env: environment(name, port) };
  const { stdout } = await execute(process.execPath, [QUIET, join(HERE, program), ...args], options);
  return stdout;
}

const KEYS_THAT_SIGN = [
  ...['X402_REFUND_KEYS', 'X402_REFUND_KEY_SOLANA', 'MPP_TEMPO_REFUND_KEY'],
  ...['IDENTITY_REGISTRAR_KEY', 'YIELD_KEEPER_KEY'],
];
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_E = '0x20C000000000000000000000b9537d11c60E8b50';

async function usdcOf(wallet: { rpcUrl: string; address: string }, token = USDC): Promise<number> {
  const balanceOf = `0x70a08231${wallet.address.slice(2).toLowerCase().padStart(64, '0')}`;
  const call = { to: token, data: balanceOf };
  const answer = await fetch(wallet.rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_call', params: [call, 'latest'] }),
  });
  return Number(JSON.parse(await answer.text()).result) / 1e6;
}

/** Buys a call by x402 and one by MPP, as wallets do: what they sign says until when it is good. */
async function payFromWallet({ url }: World, privateKey: Hex): Promise<void> {
  const account = privateKeyToAccount(privateKey);
  const posting = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  const client = new x402HTTPClient(new x402Client().register('eip155:*', new ExactEvmScheme(account)));
  const unpaid = await fetch(`${url}/x402/first-call`, posting);
  const asked = client.getPaymentRequiredResponse((name) => unpaid.headers.get(name), await unpaid.json());
  const paid = client.encodePaymentSignatureHeader(await client.createPaymentPayload(asked));
  const headers = { ...posting.headers, ...paid };
  const byX402 = await fetch(`${url}/x402/first-call`, { ...posting, headers });
  assert.equal(byX402.status, 200, await byX402.text());
  const charge = evm.charge({ account, authorization: { name: 'USD Coin', version: '2' } });
  const byMpp = await Mppx.create({ polyfill: false, methods: [charge] }).fetch(`${url}/mpp/ping`, posting);
  assert.equal(byMpp.status, 200, await byMpp.text());
}

/** What so many shares of the MetaMorpho are worth that a second's interest shows. */
async function lentWorth(rpcUrl: string): Promise<number> {
  const data = `0x07a2d13a${(10n ** 24n).toString(16).padStart(64, '0')}`;
  const answer = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'eth_call',
      params: [{ to: META_MORPHO, data }, 'latest'],
    }),
  });
  return Number(JSON.parse(await answer.text()).result);
}

const buy = (world: World, key: string, headers: Record<string, string> = {}) =>
  fetch(`${world.url}/x402/first-call`, { method: 'POST', headers: { 'x-api-key': key, ...headers } });

/** Buys what the server does in a thread of its own, and what it does in a process that a thread starts. */
async function buyFromThreads({ url }: World, key: string): Promise<void> {
  const assets = { BTC: 0.5, ETH: 4, SOL: 50 };
  const holdings = Object.entries(assets).map(([asset, amount]) => ({ asset, amount }));
  const calls = {
    'portfolio-optimization': { holdings, riskTolerance: 'medium' },
    'smart-contract-audit': { contractAddress: '0x4200000000000000000000000000000000000006', chain: 'base' },
  };
  for (const [service, input] of Object.entries(calls)) {
    const headers = { 'x-api-key': key, 'content-type': 'application/json' };
    const body = JSON.stringify(input);
    const answer = await fetch(`${url}/x402/${service}`, { method: 'POST', headers, body });
    assert.equal(answer.status, 200, `${service}: ${await answer.text()}`);
  }
}

test('first start, commands to paste, a wallet, restart with everything kept, two copies, reset, half a world', async () => {
  const port = await freePort();
  const first = await start('one', port);
  // The keys that sign transactions stay in the process that starts the world.
  const { environment: told, secrets } = JSON.parse(noteOf('one'));
  for (const name of KEYS_THAT_SIGN) {
    assert.match(told[name], /^signer:\/.+\.sock@/, name);
    assert(!secrets.includes(name), name);
  }
  const { key } = first;
  assert(key !== undefined, first.printed);

  // The commands that it prints are for a shell, and work as they stand.
  const pasted = [...first.printed.matchAll(/^ {2}(curl .*)$/gm)].map(([, line]) => line ?? '');
  assert.equal(pasted.length, 4);
  const answers = [];
  for (const line of pasted) answers.push(JSON.parse((await execute('sh', ['-c', line])).stdout));
  for (const [index, answer] of answers.slice(0, 3).entries())
    assert.equal(answer.success, true, pasted[index]);
  const checkout: string = answers[3].checkoutUrl;
  assert.match(await (await fetch(checkout)).text(), /Sandbox card provider\..*10\.00/s);
  await buyFromThreads(first, key);
  const sameCall = { 'idempotency-key': 'kept' };
  const bought = await (await buy(first, key, sameCall)).text();
  assert.match(
    await command('one', port, 'run.js', 'apps/shop/src/commands/books.js'),
    /The books balance\./,
  );
  const probe = await command('one', port, 'run.js', 'apps/shop/src/commands/probe.js');
  assert(probe.includes('fits') && !probe.includes('FAILS'), probe);

  // One command makes several keys, each with its own credit and reason.
  const grant = [
    'run.js',
    'apps/shop/src/commands/grant.js',
    '--json',
    '--usd',
    '1',
    '--reason',
    'one',
  ] as const;
  const granted = (await command('one', port, ...grant, '--usd', '2.5', '--reason', 'two'))
    .trim()
    .split('\n');
  assert.deepEqual(
    granted.map((line) => JSON.parse(line).balanceUsd),
    ['1.00', '2.50'],
  );
  const keys = new Set([key, ...granted.map((line) => JSON.parse(line).apiKey)]);
  assert.equal(keys.size, 3);
  await assert.rejects(command('one', port, ...grant, '--usd', '2.5'), /--reason must say why, for each key/);

  // The trial that every document sends newcomers to is given to this machine.
  assert.match(
    await (await fetch(`${first.url}/api/m2m/credits/trial`)).text(),
    /"success":true,"apiKey":"fbx_live_/,
  );

  // A wallet for the sandbox's chains; no key of theirs is written down.
  const made = JSON.parse(await command('one', port, 'wallet.js', '--json'));
  assert.deepEqual(made.solana.holds, { usdc: '100', native: '0.1' });
  assert.equal(await usdcOf(made.base), 100);
  assert.equal(made.ethereum.privateKey, made.base.privateKey);
  assert.equal(await usdcOf(made.ethereum, ETHEREUM.usdc), 100);
  const { tempo } = JSON.parse(await command('one', port, 'wallet.js', '--tempo', '--json'));
  assert.deepEqual(tempo.holds, { usdc: '100' });
  assert.equal(await usdcOf(tempo, USDC_E), 100);

  // Half a year passes for what is lent, and for no payment: before, meanwhile, after, and after the restart below.
  await payFromWallet(first, made.base.privateKey);
  const lentBefore = await lentWorth(made.base.rpcUrl);
  const warped = execute(process.execPath, [QUIET, join(HERE, 'warp.js'), '180d'], {
    env: environment('one', port),
  });
  await payFromWallet(first, made.base.privateKey);
  assert.match((await warped).stdout, /180d passed .* The clock stayed\./);
  await payFromWallet(first, made.base.privateKey);
  const lentAfter = await lentWorth(made.base.rpcUrl);
  const earned = lentAfter / lentBefore - 1;
  assert(earned > 0.005 && earned < 0.03, `earned ${earned}`);
  await assert.rejects(command('one', port, 'warp.js', '180'), /usage: npm run sandbox:warp/);
  const walletLeft = await usdcOf(made.base);
  assert.equal(walletLeft.toFixed(2), '99.10', 'three times 0.05 by x402 and 0.25 by MPP');

  const noted = noteOf('one');
  const named = JSON.parse(noted).environment;
  const parts = 'upstreams,chain,ethereum,solana,facilitator,tempo,cards,mailbox';
  const namesOf = (value: string) =>
    value
      .split(',')
      .map((part) => part.split('=')[0])
      .join();
  assert.equal(namesOf(named.FAREBOX_SANDBOX_PARTS), parts);
  const seed = readFileSync(join(folder, 'one', 'accounts-seed'), 'utf8');
  const accounts = accountsOf(seed);
  assert.equal(named.X402_RECIPIENT, accounts.recipient.address);
  assert.equal(named.X402_NETWORKS, 'base,solana');
  assert.equal(named.MPP_METHODS, 'tempo,evm');
  assert.equal(named.MPP_TEMPO_CURRENCY, USDC_E);
  assert.match(named.YIELD_VAULT_ADDRESS, /^0x[0-9a-fA-F]{40}$/);
  for (const { privateKey } of Object.values(accounts)) assert(!noted.includes(privateKey));
  for (const secret of [
    'wallet-key',
    'mpp-key',
    'card-key',
    'card-webhook-secret',
    'admin-token',
    'accounts-seed',
  ]) {
    const written = readFileSync(join(folder, 'one', secret), 'utf8');
    assert(!noted.includes(written) && !first.printed.includes(written), secret);
  }
  const adminTokenFile = join(folder, 'one', 'admin-token');
  assert(first.printed.includes(`${first.url}/admin `) && first.printed.includes(adminTokenFile));
  // The card provider's page is at its root; the mailbox's is where it is said to be.
  assert.match(await (await fetch(named.CARD_PROVIDER_URL)).text(), /Here you are the bank/);
  const mailPage = /^ {2}mailbox +(\S+)/m.exec(first.printed)?.[1] ?? '';
  assert.match(await (await fetch(mailPage)).text(), /Nothing has arrived/);

  // What is configured is not stood in for.
  const elsewhere = {
    CARD_PROVIDER_URL: named.CARD_PROVIDER_URL,
    CARD_PROVIDER_KEY: `sk_test_${readFileSync(join(folder, 'one', 'card-key'), 'utf8')}`,
    CARD_WEBHOOK_SECRET: `whsec_${'e'.repeat(64)}`,
    ADMIN_TOKENS: `me:${'0123456789abcdef'.repeat(4)}`,
    SMTP_URL: named.SMTP_URL,
    MAIL_FROM: 'me@example.com',
  };
  const second = await start('two', await freePort(), elsewhere);
  assert(second.key !== undefined && second.key !== key);
  const notedByTwo = JSON.parse(noteOf('two')).environment;
  assert.equal(namesOf(notedByTwo.FAREBOX_SANDBOX_PARTS), parts.replace(',cards,mailbox', ''));
  assert.notEqual(notedByTwo.X402_RECIPIENT, named.X402_RECIPIENT, 'nobody is paid by two sandboxes');
  for (const name of Object.keys(elsewhere)) assert.equal(notedByTwo[name], undefined, name);
  assert(!second.printed.includes('admin-token'));
  assert.equal((await buy(second, key)).status, 402, "another copy's key");
  assert.equal(await second.stop('SIGINT'), 0);

  // Real money and sandbox money never meet: the start is refused, with the line to change.
  const facilitator = { FACILITATOR_URL: 'https://facilitator.example' };
  await assert.rejects(
    start('three', await freePort(), facilitator),
    /ended with 2: .*FACILITATOR_URL: is not part of this sandbox.*Remove the variable/s,
  );
  await assert.rejects(start('three', port), /port \d+ on 127\.0\.0\.1 is taken/);
  await assert.rejects(start('one', await freePort()), /another sandbox \(pid \d+\) runs on/);
  await assert.rejects(command('one', port, 'reset.js'), /a server runs on/);

  assert.equal(await first.stop(), 0);
  const again = await start('one', port);
  assert.equal(again.key, undefined, 'a key is shown once');
  assert.equal(await (await buy(again, key, sameCall)).text(), bought, 'the stored answer');
  const me = await fetch(`${again.url}/api/keys/me`, { headers: { 'x-api-key': key } });
  assert.match(await me.text(), /"balanceUsd":"187\.150000"/);
  const kept = JSON.parse(noteOf('one')).environment;
  assert.equal((await fetch(checkout)).status, 200, 'a page to pay on stays where it was');
  assert.equal((await fetch(mailPage)).status, 200);
  const baseAgain = { ...made.base, rpcUrl: kept.UPSTREAM_BASE_BASE_URL };
  assert.equal(await usdcOf(baseAgain), walletLeft);
  assert((await lentWorth(baseAgain.rpcUrl)) >= lentAfter);
  await payFromWallet(again, made.base.privateKey);
  assert.equal(kept.UPSTREAM_ETHEREUM_BASE_URL, named.UPSTREAM_ETHEREUM_BASE_URL);
  assert.match(named.DEVICE_MQTT_PORT, /^[1-9]/);
  assert.equal(kept.DEVICE_MQTT_PORT, named.DEVICE_MQTT_PORT, 'a device of yesterday finds its broker');
  assert.equal(await usdcOf({ ...tempo, rpcUrl: kept.MPP_TEMPO_RPC_URL }, USDC_E), 100);
  assert.equal(await again.stop(), 0);

  writeFileSync(join(folder, 'one', 'world.json.1'), 'of one that was killed before it could rename it');
  await command('one', port, 'reset.js');
  assert.deepEqual(readdirSync(join(folder, 'one')), []);
  // What a first start leaves that was killed while it wrote.
  for (const name of HALF_WRITTEN) writeFileSync(join(folder, 'one', name), '');
  writeFileSync(join(folder, 'one', 'world.json'), '{"pid":');
  const anew = await start('one', port);
  assert(anew.key !== undefined && anew.key !== key);
  for (const name of HALF_WRITTEN) assert(readFileSync(join(folder, 'one', name)).length > 0, name);
  const paid: string = JSON.parse(noteOf('one')).environment.X402_RECIPIENT;
  assert.notEqual(paid, accountsOf('').recipient.address, 'an account whose key everybody can make');
  assert.equal((await buy(anew, key)).status, 402);

  // Half a world is none: when the chain's node is killed, everything ends and says why.
  const ended = once(anew.process, 'exit');
  process.kill(runningOn(join(folder, 'one', 'chain'))?.keeperPid ?? assert.fail(), 'SIGKILL');
  assert.deepEqual(await ended, [1, null]);
  assert.match(anew.printed, /the sandbox chain ended: .* everything stops/);
  await command('two', port, 'reset.js');
  await assert.rejects(command('two', port, 'wallet.js'), /no sandbox runs on/);
  await assert.rejects(command('two', port, 'warp.js', '1d'), /no sandbox runs on/);
});

test('where nothing can be kept, the start says so and what to do', async () => {
  writeFileSync(join(folder, 'file'), 'of somebody else');
  // A file in place of the folder: whom these tests run as may write in every folder.
  await assert.rejects(start('file', await freePort()), ({ message }: Error) => {
    assert.match(
      message,
      /^ended with 2: farebox: nothing can be kept in \S+file \(EEXIST.*FAREBOX_DATA_DIR/,
    );
    assert(!message.includes('    at '), message);
    return true;
  });
  assert.equal(readFileSync(join(folder, 'file'), 'utf8'), 'of somebody else');
});

test('production starts no sandbox part, and says everything that is missing at once', async () => {
  const child = spawn(process.execPath, [QUIET, join(HERE, 'start.js')], {
    env: {
      ...environment('production', await freePort()),
      FAREBOX_MODE: 'production',
      TRIAL_ALLOW_INTERNAL: 'true',
    },
  });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  const [code] = await once(child, 'exit');
  assert.equal(code, 2);
  for (const name of ['FAREBOX_SECRET', 'PUBLIC_URL', 'TRIAL_ALLOW_INTERNAL'])
    assert(said.includes(name), said);
});
