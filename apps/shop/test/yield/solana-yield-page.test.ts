/** The page of the Solana portal in a real Chromium, with a wallet that announces itself by the wallet standard. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { getBase58Encoder } from '@solana/kit';
import {
  ComputeBudgetInstruction,
  ComputeBudgetProgram,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import type { Browser, Page } from 'playwright-core';
import { z } from 'zod';
import { launchBrowser } from '../../../../packages/sandbox/src/browser.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { assertReadable } from '../look.fixture.ts';
import { type SolanaWallet, type SolanaYieldWorld, startSolanaYieldWorld } from './solana-yield.fixture.ts';

const USDC = 1_000_000;
/** Nothing here is about how fast it is: a machine that is busy may take its time. */
const PATIENCE_MS = 180_000;

let database: TestDatabase;
let world: SolanaYieldWorld;
let browser: Browser;
before(async () => {
  database = await openTestDatabase();
  world = await startSolanaYieldWorld(database);
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await world?.stop();
  await database?.close();
});

/** What stands in the page: a wallet that registers itself, whether it or the page comes first. */
const INJECTED = `(() => {
  const ask = async (what, argument) => {
    const { error, result } = await window.askTestWallet(what, argument);
    if (error) throw new Error(error);
    return result;
  };
  const chains = ['solana:mainnet'];
  const accounts = [];
  const wallet = {
    version: '1.0.0', name: 'Test wallet', icon: 'data:image/svg+xml;base64,', chains, accounts,
    features: {
      'standard:connect': {
        version: '1.0.0',
        connect: async () => {
          const address = await ask('connect', '');
          accounts.push({ address, publicKey: new Uint8Array(32), chains, features: ['solana:signAndSendTransaction'] });
          return { accounts };
        },
      },
      'solana:signAndSendTransaction': {
        version: '1.0.0', supportedTransactionVersions: ['legacy', 0],
        signAndSendTransaction: async ({ account, transaction, chain }) => {
          if (account !== accounts[0] || chain !== chains[0]) throw new Error('another account or chain');
          return [{ signature: Uint8Array.from(await ask('send', btoa(String.fromCharCode(...transaction)))) }];
        },
      },
    },
  };
  const callback = ({ register }) => register(wallet);
  window.dispatchEvent(new CustomEvent('wallet-standard:register-wallet', { detail: callback }));
  window.addEventListener('wallet-standard:app-ready', ({ detail }) => callback(detail));
})()`;

/** What the owner of the wallet says no to: the so-and-so-many-th transaction that is asked for, from 1 on. */
interface Refusal {
  refused: number;
}

/** Lets the page find a wallet whose owner signs. */
async function equip(page: Page, wallet: SolanaWallet, refusal: Refusal = { refused: 0 }) {
  page.setDefaultTimeout(PATIENCE_MS);
  const asked: string[] = [];
  const troubles: string[] = [];
  page.on('pageerror', (error) => troubles.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(world.server.url)) troubles.push(`asked ${request.url()}`);
  });
  const send = world.byWeb3(wallet);
  await page.exposeFunction('askTestWallet', async (what: string, argument: string) => {
    try {
      if (what === 'connect') return { result: wallet.address };
      asked.push(argument);
      if (asked.length === refusal.refused) throw new Error('User rejected the request.');
      return { result: [...getBase58Encoder().encode(await send(argument))] };
    } catch (error) {
      return { error: (error as Error).message };
    }
  });
  await page.addInitScript(INJECTED);
  return { asked, troubles };
}

async function openWith(wallet: SolanaWallet, refusal?: Refusal) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const equipped = await equip(page, wallet, refusal);
  await connect(page);
  return { page, ...equipped };
}

async function connect(page: Page) {
  await page.goto(`${world.server.url}/yield`);
  await page.getByRole('button', { name: 'Connect Test wallet' }).click();
  await page.getByLabel('USDC to deposit').waitFor();
}

/** Waits until the page shows what the position is worth: it asks for that once a move is done. */
const worth = (page: Page, value: RegExp) =>
  page
    .getByRole('region', { name: 'Your position on Solana' })
    .locator('dd')
    .first()
    .filter({ hasText: value })
    .waitFor();

/** A deposit takes up to a unit or two less than it offers. */
async function assertHolds(address: string, units: bigint): Promise<void> {
  const more = (await world.node.holds(address)) - units;
  assert(more >= 0n && more <= 2n, `${more} units beside the ${units}`);
}

/** What a transaction pays for a unit of work, in micro-lamports, as web3.js reads it. */
function priceIn(base64: string): number | bigint | undefined {
  const { message } = VersionedTransaction.deserialize(Buffer.from(base64, 'base64'));
  const ofBudget = TransactionMessage.decompile(message).instructions.filter(({ programId }) =>
    programId.equals(ComputeBudgetProgram.programId),
  );
  const price = ofBudget.find(
    (each) => ComputeBudgetInstruction.decodeInstructionType(each) === 'SetComputeUnitPrice',
  );
  return price === undefined
    ? undefined
    : ComputeBudgetInstruction.decodeSetComputeUnitPrice(price).microLamports;
}

test('somebody connects a wallet, deposits in two steps, and leaves in one', async () => {
  const wallet = await world.wallet(300 * USDC);
  const { page, asked, troubles } = await openWith(wallet);
  await page.getByText(/both fees are earned back after \d+ days/).waitFor();
  await page.getByText('On Base: a vault').waitFor({ state: 'hidden' });
  const { usdc } = z
    .object({ usdc: z.object({ netApyPct: z.number() }) })
    .parse(await (await fetch(`${world.server.url}/api/solana-yield/rates`)).json());
  const shown = page
    .getByRole('region', { name: 'On Solana: a lending reserve' })
    .getByText('APY now, after the performance fee')
    .locator('xpath=following-sibling::dd');
  assert.equal(await shown.textContent(), `${usdc.netApyPct.toFixed(2)}%`);
  assert.match(String(await page.locator('.notice.warn').first().textContent()), /Not audited by others/);

  await page.getByLabel('USDC to deposit').fill('100');
  await page.getByRole('button', { name: 'Deposit on Solana' }).click();
  await page.getByText('Done: the chain has your deposit.').waitFor();
  assert.equal(await page.locator('.state.mined').count(), 2);
  assert.equal(asked.length, 2);
  await worth(page, /^\$99\.\d+$/);
  await assertHolds(wallet.address, 200n * BigInt(USDC));

  await page.getByLabel('USDC to withdraw').fill('40');
  await page.getByRole('button', { name: 'Withdraw this' }).click();
  await page.getByText(/^Done: [\d.]+ USDC or a little more are in your wallet/).waitFor();
  await page.getByRole('button', { name: 'Withdraw all' }).click();
  await page.getByText('This wallet holds nothing here.', { exact: false }).waitFor();
  await worth(page, /^\$0\.00$/);
  assert.equal(asked.length, 4);
  assert.deepEqual(troubles, []);
  await page.close();
});

test('a wallet pays the priority fee that was chosen, and is told what it comes to before it signs', async () => {
  const wallet = await world.wallet(300 * USDC);
  const { page, asked, troubles } = await openWith(wallet);
  assert.equal(await page.getByLabel('Priority fee').inputValue(), 'medium');
  assert.equal(await page.getByLabel('Micro-lamports for a unit of work').isVisible(), false);
  await page.getByLabel('Priority fee').selectOption('High');
  await page.getByLabel('USDC to deposit').fill('100');
  await page.getByRole('button', { name: 'Deposit on Solana' }).click();
  await page.getByText('Done: the chain has your deposit.').waitFor();
  // 240,000 units at 5,000 micro-lamports, and what rounding leaves of each transaction.
  await page.getByText(/At most 0\.00000120\d SOL goes to the chain .* 5000 .* the level high/).waitFor();
  assert.deepEqual(asked.map(priceIn).map(Number), [5_000, 5_000]);

  await page.getByLabel('Priority fee').selectOption('A price of my own');
  await page.getByLabel('Micro-lamports for a unit of work').fill('much');
  await page.getByRole('button', { name: 'Withdraw all' }).click();
  await page.getByText(/priority must be low, medium or high, or a whole number/).waitFor();
  assert.equal(asked.length, 2);
  // Less than any level has at least: what others pay makes the prices of the tests that follow.
  await page.getByLabel('Micro-lamports for a unit of work').fill('4321');
  await page.getByRole('button', { name: 'Withdraw all' }).click();
  await page.getByText(/^Done: [\d.]+ USDC/).waitFor();
  await page.getByText(/4321 micro-lamports for a unit of work, as you asked/).waitFor();
  assert.equal(Number(priceIn(asked[2] ?? '')), 4_321);
  assert.deepEqual(troubles, []);
  await page.close();
});

test('a tab that closes between the fee and the deposit loses nothing: the next one goes on', async () => {
  const wallet = await world.wallet(300 * USDC);
  const context = await browser.newContext();
  const first = await context.newPage();
  await equip(first, wallet, { refused: 2 });
  await connect(first);
  await first.getByLabel('USDC to deposit').fill('100');
  await first.getByRole('button', { name: 'Deposit on Solana' }).click();
  await first.getByText('User rejected the request.').first().waitFor();
  assert.equal(await world.node.holds(wallet.address), 299_500_000n, 'the fee is paid');
  await first.close();

  const second = await context.newPage();
  const { asked, troubles } = await equip(second, wallet);
  await connect(second);
  await second.getByText(/A deposit of \$100\.00 is not finished/).waitFor();
  // The price of then may have been too low to land.
  await second.getByLabel('Priority fee').selectOption('High');
  await second.getByRole('button', { name: 'Finish the deposit' }).click();
  await second.getByText('Done: the chain has your deposit.').waitFor();
  assert.deepEqual(asked.map(priceIn).map(Number), [5_000], 'no second fee');
  await assertHolds(wallet.address, 200n * BigInt(USDC));
  assert.equal(await second.getByText(/is not finished/).count(), 0);
  assert.deepEqual(troubles, []);
  await context.close();
});

test('a refusal, too little money and a wrong amount are told, and nothing more is asked for', async () => {
  const wallet = await world.wallet(50 * USDC);
  const { page, asked } = await openWith(wallet, { refused: 1 });
  await page.getByLabel('USDC to deposit').fill('20');
  await page.getByRole('button', { name: 'Deposit on Solana' }).click();
  await page.getByText('User rejected the request.').first().waitFor();
  assert.equal(asked.length, 1, 'the second transaction is not asked for');
  assert.equal(
    await page.getByText(/is not finished/).count(),
    0,
    'nothing was paid, so nothing is unfinished',
  );

  await page.getByLabel('USDC to deposit').fill('1000');
  await page.getByRole('button', { name: 'Deposit on Solana' }).click();
  await page.locator('[aria-live] .notice.warn').first().waitFor();
  await page.getByLabel('USDC to deposit').fill('a lot');
  await page.getByRole('button', { name: 'Deposit on Solana' }).click();
  await page.getByText(/amount_usdc/).waitFor();
  await page.getByRole('button', { name: 'Withdraw all' }).click();
  await page.locator('.notice.bad').waitFor();
  assert.equal(asked.length, 1);
  await page.close();
});

test('a withdrawal that would pay something else than the model says is told before the wallet signs', async () => {
  const wallet = await world.wallet(300 * USDC);
  const send = world.byWeb3(wallet);
  const { transactions } = await world.answer('deposit-tx', { wallet: wallet.address, amount_usdc: 100 });
  for (const { base64 } of transactions) await send(base64);
  const { page, asked } = await openWith(wallet, { refused: 1 });
  // The server's answer, with the warning that a reserve with rewards leads to.
  await page.route('**/api/solana-yield/withdraw-tx', async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    const warnings = [{ code: 'MODEL_DIFFERS', message: 'It pays another amount <b>than</b> the model.' }];
    await route.fulfill({ response, json: { ...answer, warnings } });
  });
  await page.getByRole('button', { name: 'Withdraw all' }).click();
  await page.getByText('User rejected the request.').first().waitFor();
  await page.getByText('It pays another amount <b>than</b> the model.').waitFor();
  assert.equal(asked.length, 1);
  await page.close();
});

test('a wallet with more fees than one page has sees all of them, and what is due in all', async () => {
  const wallet = await world.wallet(0);
  await database.sql`
    INSERT INTO solana_yield_fees (signature, wallet, usdc, slot, at, state, reason, next_at)
    SELECT rpad('fee' || translate(g::text, '0', 'z') || 'x', 64, '1'), ${wallet.address}, 25000, g, now(), 'unused', 'NO_DEPOSIT', now()
    FROM generate_series(1, 250) AS g`;
  const { page, troubles } = await openWith(wallet);
  const fees = page.getByText(/^A fee of \$0\.025 was paid \(fee/);
  await page.getByText('In all $6.25 of fees without a deposit is due back to this wallet.').waitFor();
  assert.equal(await fees.count(), 100);
  const older = page.getByRole('button', { name: 'Show older fees' });
  await page.route('**/fee-refunds/*?after=*', (route) => route.abort(), { times: 1 });
  await older.click();
  await page.getByText('The server could not be reached.').waitFor();
  await older.click();
  await fees.nth(199).waitFor();
  assert.equal(await page.getByText('The server could not be reached.').count(), 0);
  await older.click();
  await fees.nth(249).waitFor();
  await older.waitFor({ state: 'detached' });
  const told = await fees.allTextContents();
  assert.equal(new Set(told).size, 250);
  assert.match(told[0] ?? '', /\(fee25zx/);
  assert.match(told[249] ?? '', /\(fee1x1/);
  assert.deepEqual(troubles, []);
  await database.sql`DELETE FROM solana_yield_fees WHERE wallet = ${wallet.address}`;
  await page.close();
});

test('the page is readable on a phone and a desk, by day and by night', async () => {
  const wallet = await world.wallet(1_000 * USDC);
  const send = world.byWeb3(wallet);
  const { transactions } = await world.answer('deposit-tx', { wallet: wallet.address, amount_usdc: 500 });
  for (const { base64 } of transactions) await send(base64);
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [390, 1280]) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      await equip(page, wallet);
      await connect(page);
      await page.getByText('You would receive now').waitFor();
      await page.getByLabel('Priority fee').selectOption('A price of my own');
      await assertReadable(page, `${width} px, ${colorScheme}`);
      await page.close();
    }
  }
});
