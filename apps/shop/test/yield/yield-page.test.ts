/** The page of the vault in a real Chromium, with a wallet that the page finds as it finds any (EIP-6963) and asks by EIP-1193. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { type Address, encodeFunctionData, type Hex, parseAbi } from 'viem';
import { SANDBOX_ACCOUNTS } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import {
  AAVE_CONFIGURATOR,
  AAVE_USDC,
  COMET,
  META_MORPHO,
} from '../../../../packages/sandbox/src/chain/lending/addresses.ts';
import { transact } from '../../../../packages/sandbox/src/chain/node.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { startYieldWorld, type Wallet, type YieldWorld } from '../yield.fixture.ts';

const HOUR_MS = 3_600_000;
const USDC: Address = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const PAUSES = parseAbi([
  'function setReservePause(address asset, bool paused)',
  'function sandboxPause(bool supply, bool withdraw, bool transfer)',
  'function setSupplyQueue(bytes32[] queue)',
]);
const CONTRACTS = join(import.meta.dirname, '../../../../contracts');

let database: TestDatabase;
let world: YieldWorld;
let browser: Browser;
before(async () => {
  database = await openTestDatabase();
  world = await startYieldWorld(database);
  browser = await launchBrowser();
});
after(async () => {
  await browser.close();
  await world.stop();
  await database.close();
});

/** What stands in the page: an EIP-1193 provider that announces itself when it is asked to. */
const INJECTED = `(() => {
  const request = async ({ method, params = [] }) => {
    const answer = await window.askTestWallet(method, JSON.stringify(params));
    if (answer.error) throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
    return answer.result;
  };
  const detail = Object.freeze({ info: { uuid: '6f8d-test', name: 'Test wallet', icon: '', rdns: 'test.wallet' }, provider: { request } });
  window.addEventListener('eip6963:requestProvider', () =>
    window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail })));
})()`;

/** What a wallet is like: the accounts that it shows, its chain, and where it goes once it has sent something. */
interface Habits {
  accounts: readonly string[];
  chainId: string;
  afterSending?: () => void;
  /** Whether it knows of no transaction that it is mined. */
  isBehind?: boolean;
}

/** A page with a wallet that asks nobody before it signs; `refuses` is what its owner says no to. */
async function openWith(
  wallet: Wallet,
  refuses: { method: string | null } = { method: null },
  habits: Habits = { accounts: [wallet.address], chainId: '0x1' },
  context?: BrowserContext,
) {
  const page = await (context?.newPage() ?? browser.newPage({ viewport: { width: 1280, height: 900 } }));
  const asked: string[] = [];
  const troubles: string[] = [];
  page.on('pageerror', (error) => troubles.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(world.server.url)) troubles.push(`asked ${request.url()}`);
  });
  const perform = async (method: string, params: readonly never[]): Promise<unknown> => {
    asked.push(method);
    if (method === refuses.method) throw Object.assign(new Error('User rejected'), { code: 4001 });
    if (method === 'eth_requestAccounts') return [wallet.address];
    if (method === 'eth_accounts') return habits.accounts;
    if (method === 'eth_chainId') return habits.chainId;
    if (method === 'wallet_switchEthereumChain') {
      habits.chainId = '0x2105';
      return null;
    }
    if (method === 'eth_getTransactionReceipt')
      return habits.isBehind === true ? null : world.client.request({ method, params } as never);
    assert.equal(habits.chainId, '0x2105', 'nothing is signed for another chain');
    if (method === 'eth_signTypedData_v4') return wallet.account.signTypedData(JSON.parse(params[1] ?? ''));
    if (method === 'eth_sendTransaction') {
      const { to, data, gas, chainId } = params[0] as unknown as Record<string, Hex>;
      assert.equal(chainId, '0x2105', 'a wallet that knows the field holds its owner to it');
      const { account } = wallet;
      const hash = await world.client.sendTransaction({
        account,
        to: to ?? '0x',
        data,
        gas: BigInt(gas ?? 0),
      });
      habits.afterSending?.();
      return hash;
    }
    return world.client.request({ method, params } as never);
  };
  await page.exposeFunction('askTestWallet', async (method: string, params: string) => {
    try {
      return { result: await perform(method, JSON.parse(params)) };
    } catch (error) {
      const { message, code } = error as Error & { code?: number };
      return { error: { message, code } };
    }
  });
  await page.addInitScript(INJECTED);
  await page.goto(`${world.server.url}/yield`, { waitUntil: 'networkidle' });
  return { page, asked, troubles };
}

/**
 * Nothing on it changes its colour any more. A transition whose element goes is cancelled, and then its `finished` is
 * refused: then the page is asked again.
 */
async function still(page: Page): Promise<void> {
  await page.locator('button:disabled').first().waitFor({ state: 'detached' });
  await page.evaluate(`(async () => {
    for (let running; (running = document.getAnimations()).length > 0; )
      await Promise.allSettled(running.map(({ finished }) => finished));
  })()`);
}

const done = (page: Page) => page.getByText('Done: every transaction is mined.').waitFor();

test('somebody connects a wallet, deposits in two steps and by permit, and leaves', async () => {
  const wallet = await world.wallet(300_000_000n);
  const { page, asked, troubles } = await openWith(wallet);
  await page.getByText(/entry fee is earned back after \d+ days/).waitFor();
  const risk = page.getByText(/Not audited by others.*leaving earlier than \d+ days.*less than you brought/);
  const connect = page.getByRole('button', { name: 'Connect Test wallet' });
  const [told, acts] = [await risk.boundingBox(), await connect.boundingBox()];
  assert(told !== null && acts !== null && told.y < acts.y, 'the risk is told before anybody acts');
  await connect.click();
  await page.getByText(wallet.address).first().waitFor();

  await page.getByLabel('USDC', { exact: true }).fill('100');
  await page.getByRole('button', { name: 'Deposit', exact: true }).click();
  await done(page);
  assert.equal(await page.locator('.state.mined').count(), 2);
  await page.locator('#position').getByText('$99.50').first().waitFor();

  await page.getByLabel(/One transaction/).check();
  await page.getByLabel('USDC', { exact: true }).fill('200');
  await page.getByRole('button', { name: 'Deposit', exact: true }).click();
  await page.locator('#position').getByText('$298.50').first().waitFor();
  await done(page);
  assert.equal(await page.locator('.state.mined').count(), 1);
  assert.equal(asked.filter((method) => method === 'eth_sendTransaction').length, 3);

  await page.getByRole('button', { name: 'Leave with all' }).click();
  await page.locator('#position').getByText('holds no shares').waitFor();
  await done(page);
  assert.deepEqual(troubles, []);
  await page.close();
});

test('a tab that closes while a transaction is under way leads to no second one: the next tab waits for it', async () => {
  const wallet = await world.wallet(50_000_000n);
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const habits: Habits = { accounts: [wallet.address], chainId: '0x2105', isBehind: true };
  const { page } = await openWith(wallet, undefined, habits, context);
  await page.getByRole('button', { name: 'Connect Test wallet' }).click();
  await page.getByLabel('USDC', { exact: true }).fill('20');
  await page.getByRole('button', { name: 'Deposit', exact: true }).click();
  const sent = await page.locator('.state.sent').getByText('sent: 0x').textContent();
  const hash = sent?.replace('sent: ', '') ?? '';
  await page.close();

  const next = await openWith(wallet, undefined, habits, context);
  await next.page.getByRole('button', { name: 'Connect Test wallet' }).click();
  const told = next.page.locator('#act-message');
  await told.getByText(hash).waitFor();
  assert.match((await told.textContent()) ?? '', /not mined yet/);
  habits.isBehind = false;
  await told.getByText('is mined. Your position shows what came of it.').waitFor();
  await next.page.close();

  const last = await openWith(wallet, undefined, habits, context);
  await last.page.getByRole('button', { name: 'Connect Test wallet' }).click();
  await last.page.locator('#position').getByText('holds no shares').waitFor();
  assert.equal(await last.page.locator('#act-message').textContent(), '');
  assert.equal(await last.page.evaluate('localStorage.length'), 0);
  assert.deepEqual(last.troubles, []);
  await context.close();
});

test('a refusal in the wallet, too little money and a wrong amount are told, and nothing more is asked for', async () => {
  const wallet = await world.wallet(50_000_000n);
  const refuses: { method: string | null } = { method: 'eth_sendTransaction' };
  const { page, asked } = await openWith(wallet, refuses);
  await page.getByRole('button', { name: 'Connect Test wallet' }).click();
  await page.getByLabel('USDC', { exact: true }).fill('20');
  await page.getByRole('button', { name: 'Deposit', exact: true }).click();
  await page.locator('.state.failed').getByText('You refused it in the wallet.').waitFor();
  assert.equal(
    asked.filter((method) => method === 'eth_sendTransaction').length,
    1,
    'the second step is not asked for',
  );

  await page.getByLabel('USDC', { exact: true }).fill('1000');
  await page.getByRole('button', { name: 'Deposit', exact: true }).click();
  await page.getByText(/950\.000000 too little/).waitFor();
  await page.getByLabel('USDC', { exact: true }).fill('a lot');
  await page.getByRole('button', { name: 'Deposit', exact: true }).click();
  await page.getByText(/amount must be USD/).waitFor();
  assert.equal(asked.filter((method) => method === 'eth_sendTransaction').length, 1);
  await page.close();
});

test('at whatever may cost money the page stops and asks: an exit while a protocol cannot be read, a deposit that would lie idle', async (t) => {
  const wallet = await world.wallet(300_000_000n);
  const { steps } = await world.answer(`deposit-tx?recipient=${wallet.address}&preset=100`);
  await wallet.send(steps);
  let id = await world.client.snapshot();
  t.after(() => world.client.revert({ id }));
  const { page, asked, troubles } = await openWith(wallet);
  await page.getByRole('button', { name: 'Connect Test wallet' }).click();
  await page.locator('#position').getByText('$99.50').first().waitFor();
  const told = page.locator('#act-message');
  const sent = () => asked.filter((method) => method === 'eth_sendTransaction').length;

  await world.client.setCode({ address: AAVE_USDC, bytecode: '0xfe' });
  await page.getByRole('button', { name: 'Leave with all' }).click();
  await told.getByText('cannot be read at the moment, and its part would be lost').waitFor();
  await page.locator('#position').getByText('counts as nothing in these figures').waitFor();
  const inKind = told.getByRole('button', { name: 'Give up what is not handed over, and take the rest' });
  await inKind.waitFor();
  await still(page);
  await assertReadable(page, 'while a protocol cannot be read');
  await told.getByRole('button', { name: 'Take my part of what can be read' }).click();
  await told.getByText('forfeits their part of the rest').waitFor();
  assert.equal(sent(), 0, 'nothing is signed before it was read');
  await world.client.revert({ id });

  id = await world.client.snapshot();
  await transact(world.node, {
    from: SANDBOX_ACCOUNTS.lender.address,
    to: AAVE_CONFIGURATOR,
    data: encodeFunctionData({ abi: PAUSES, functionName: 'setReservePause', args: [USDC, true] }),
  });
  await transact(world.node, {
    from: SANDBOX_ACCOUNTS.borrower.address,
    to: COMET,
    data: encodeFunctionData({ abi: PAUSES, functionName: 'sandboxPause', args: [true, false, false] }),
  });
  await transact(world.node, {
    from: SANDBOX_ACCOUNTS.lender.address,
    to: META_MORPHO,
    data: encodeFunctionData({ abi: PAUSES, functionName: 'setSupplyQueue', args: [[]] }),
  });
  await page.getByLabel('USDC', { exact: true }).fill('20');
  await page.getByRole('button', { name: 'Deposit', exact: true }).click();
  await told.getByText('All of it would lie idle in the vault').waitFor();
  assert.equal(sent(), 0);
  await still(page);
  await assertReadable(page, 'before a deposit that would lie idle');
  await told.getByRole('button', { name: 'go on all the same' }).click();
  await done(page);
  assert.equal(sent(), 2);
  assert.deepEqual(troubles, []);
  await page.close();
});

test('a wallet that goes to another chain or account between two steps is asked to sign nothing there', async () => {
  const wallet = await world.wallet(50_000_000n);
  const refuses = { method: 'wallet_switchEthereumChain' };
  const strays: [(habits: Habits) => void, RegExp][] = [
    [(habits) => (habits.chainId = '0x1'), /stays on another chain than Base/],
    [(habits) => (habits.accounts = [`0x${'12'.repeat(20)}`]), /shows another account than 0x/],
    [(habits) => (habits.accounts = []), /shows another account than 0x/],
  ];
  for (const [stray, told] of strays) {
    const habits: Habits = { accounts: [wallet.address.toLowerCase()], chainId: '0x2105' };
    habits.afterSending = () => void stray(habits);
    const { page, asked } = await openWith(wallet, refuses, habits);
    await page.getByRole('button', { name: 'Connect Test wallet' }).click();
    await page.getByLabel('USDC', { exact: true }).fill('20');
    await page.getByRole('button', { name: 'Deposit', exact: true }).click();
    await page.locator('#act-message').getByText(told).waitFor();
    assert.equal(await page.locator('.state.mined').count(), 1, 'what was sent before is mined, and shown');
    assert.equal(asked.filter((method) => method === 'eth_sendTransaction').length, 1);
    await page.close();
  }
});

test('every promise leads to the code that keeps it and to the test that proves it, as they stand in the source', async () => {
  const page = await (await fetch(`${world.server.url}/yield`)).text();
  const rows = page.match(/<tr><th scope="row">.*?<\/tr>/g) ?? [];
  assert.equal(rows.length, 5);
  for (const row of rows) {
    const linked = [...row.matchAll(/href="(\/api\/yield\/source\/[^"]+)"/g)].map(([, path]) => path ?? '');
    assert(
      linked.some((path) => path.includes('/test/')) && linked.some((path) => !path.includes('/test/')),
      row,
    );
    const texts = await Promise.all(
      linked.map(async (path) => {
        const answer = await fetch(world.server.url + path);
        assert.equal(answer.status, 200, path);
        assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8');
        return answer.text();
      }),
    );
    for (const [, named = ''] of row.matchAll(/<code>(\w+)<\/code>/g))
      assert(
        texts.some((text) => text.includes(`function ${named}(`)),
        named,
      );
  }
  const served = world.server.app.routes.flatMap(({ method, path }) =>
    method === 'GET' && path.startsWith('/api/yield/source/') ? path.slice('/api/yield/source/'.length) : [],
  );
  const written = (folder: string, prefix: string) =>
    readdirSync(join(CONTRACTS, folder), { withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.sol'))
      .map(({ name }) => prefix + name.replace('FareboxVault', 'Vault'));
  assert.deepEqual(
    served.sort(),
    [...written('src', ''), ...written('src/interfaces', 'interfaces/'), ...written('test', 'test/')].sort(),
  );
  assert.equal((await fetch(`${world.server.url}/api/yield/source/..%2Fpackage.json`)).status, 404);
});

test('the page is readable on a phone and a desk, by day and by night', async () => {
  const wallet = await world.wallet(1_000_000_000n);
  const { steps } = await world.answer(`deposit-tx?recipient=${wallet.address}&preset=1000`);
  await wallet.send(steps);
  const vault = world.chain.vault.toLowerCase();
  const told = (hour: number) =>
    JSON.stringify({
      aave: { apyPercent: hour === 20 ? null : 3.5 + Math.sin(hour / 5) / 2, assets: '1000000' },
      compound: { apyPercent: 4, assets: '0' },
      morpho: { apyPercent: 2.4 + hour / 100, assets: '0' },
    });
  for (let hour = 1; hour <= 48; hour += 1)
    await database.sql`
      INSERT INTO yield_samples (vault, at, block_number, total_assets, priced_assets, active, protocols, idle)
      VALUES (${vault}, ${new Date(Date.now() - hour * HOUR_MS)}, 1, 1000000, ${String(10n ** 24n)}, 'aave',
        ${told(hour)}::text::jsonb, 0)`;
  await database.sql`
    INSERT INTO yield_keeper_moves
      (vault, block_number, log_index, at, transaction_hash, from_protocol, to_protocol, assets, received)
    VALUES (${vault}, 1, 0, ${new Date(Date.now() - 10 * HOUR_MS)}, '0x', 'aave', 'compound', 123450000, 123449999)`;
  await database.sql`
    INSERT INTO yield_keeper_reasons (vault, allowed_at, noted_at, from_protocol, to_protocol, assets, reason)
    VALUES (${vault}, 0, now(), 'aave', 'compound', 123450000, '{"yearlyPercentBefore":{"from":1.25,"to":4},
      "yearlyPercentAfter":3.75,"gainMicrosPerYear":"3000000","costMicros":"1000","partial":null}')`;
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [390, 1280]) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      await page.goto(`${world.server.url}/yield`, { waitUntil: 'networkidle' });
      const moved = page.getByRole('row', { name: /Aave to Compound/ });
      await moved.getByText('$123.45').waitFor();
      await moved
        .getByText('Aave paid 1.25%, Compound 4.00% and 3.75% after it: $3.00 more a year.')
        .waitFor();
      await page.getByText('This browser shows no wallet.').waitFor();
      await page.locator('polyline.rate').first().waitFor({ state: 'attached' });
      await page.getByLabel('Wallet').fill(wallet.address);
      await page.getByRole('button', { name: 'Look' }).click();
      await page.locator('#position').getByText('$995.00').first().waitFor();
      await assertReadable(page, `${width} px, ${colorScheme}`);
      await page.close();
    }
  }
});

test('nothing moves while the page loads, and without scripts it says what it needs', async () => {
  for (const width of [390, 1280]) {
    const page = await browser.newPage({ viewport: { width, height: 900 } });
    await page.addInitScript(`
      window.shifted = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
      }).observe({ type: 'layout-shift', buffered: true });
    `);
    // The figures come only after the page was drawn without them, however fast the chain answers.
    let release = () => {};
    const drawn = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route('**/api/yield/**', async (route) => {
      await drawn;
      await route.continue();
    });
    await page.goto(`${world.server.url}/yield`);
    await page.evaluate(
      'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(null))))',
    );
    assert(await page.getByText('Reading the chains').isVisible());
    release();
    await page.getByText(/entry fee is earned back after \d+ days/).waitFor();
    await page.waitForLoadState('networkidle');
    const shifted = Number(await page.evaluate('window.shifted'));
    assert(shifted < 0.02, `at ${width} the page moves by ${shifted} while it loads`);
    await page.close();
  }
  const plain = await browser.newContext({ javaScriptEnabled: false });
  const page = await plain.newPage();
  await page.goto(`${world.server.url}/yield`);
  const notice = page.locator('main noscript .notice');
  assert(await notice.isVisible());
  assert.match((await notice.textContent()) ?? '', /needs JavaScript.*openapi\.json/);
  assert.equal(await page.getByText('Reading the chains').isVisible(), false);
  await plain.close();
});
