/** Fees and deposits that are written down in any order, and at once: each fee finds its deposit, against a real database. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openTestDatabase, type TestDatabase } from '../../../../apps/shop/test/database.fixture.ts';
import { type Book, createBook } from './book.ts';
import { feeIn } from './effects.ts';
import { createFees, type Fees } from './fees.ts';
import { createMoves } from './moves.ts';
import { type Landed, type Node, openNode } from './node.ts';
import { openPortal, type Portal } from './portal.ts';
import {
  depositScript,
  feeScript,
  newWallet,
  type Script,
  type ScriptedNode,
  startScriptedNode,
} from './scripted-node.fixture.ts';

const [NET, FEE, COLLATERAL] = [995_000_000n, 5_000_000n, 856_110_718n];

let database: TestDatabase;
let chain: ScriptedNode;
let node: Node;
let portal: Portal;
let fees: Fees;
let book: Book;
let nowMs = Date.now();
before(async () => {
  database = await openTestDatabase();
  chain = await startScriptedNode(await newWallet());
  const clock = () => nowMs;
  node = openNode(() => [chain.url], clock);
  portal = openPortal(node, { treasury: chain.treasury, sinceSlot: 0, nowMs: clock });
  fees = createFees(database.sql, clock);
  const moves = createMoves(database.sql, clock);
  book = createBook({ sql: database.sql, portal, moves, fees, nowMs: clock });
});
after(async () => {
  await node?.close();
  await chain?.stop();
  await database?.close();
});

async function landed(script: Script): Promise<Landed> {
  const found = await node.transaction(chain.land(script), 'confirmed');
  return found === null || found === 'unreadable' ? assert.fail() : found;
}

/** A fee, and the deposit that it was paid for, as the chain shows them. */
async function paid() {
  const wallet = await newWallet();
  const fee = await landed(await feeScript(wallet, portal.treasuryAccount, FEE));
  const deposit = await landed(await depositScript(wallet, { usdc: NET, collateral: COLLATERAL }));
  return { wallet, fee, deposit };
}

async function standingOf(wallet: string) {
  const [fee] = await database.sql<{ state: string; deposit: string | null }[]>`
    SELECT state, deposit_signature AS deposit FROM solana_yield_fees WHERE wallet = ${wallet}`;
  const moves = await database.sql<{ signature: string; final: boolean }[]>`
    SELECT signature, final FROM solana_yield_moves WHERE wallet = ${wallet}`;
  return { fee, moves: [...moves] };
}

test('a deposit whose fee waits for it is matched with it at once, while the chain can still take it back', async () => {
  const { wallet, fee, deposit } = await paid();
  await book.enter(fee, true);
  assert.deepEqual(await standingOf(wallet), { fee: { state: 'waiting', deposit: null }, moves: [] });
  await book.enter(deposit, false);
  const { signature } = deposit;
  assert.deepEqual(await standingOf(wallet), {
    fee: { state: 'used', deposit: signature },
    moves: [{ signature, final: false }],
  });
  assert.equal(await fees.takeDue(), null, 'no deposit is looked for any more');
});

test('a fee that comes after its deposit finds it, though nothing was matched when that was kept', async () => {
  const { wallet, fee, deposit } = await paid();
  await book.enter(deposit, false);
  await book.enter(fee, true);
  assert.deepEqual((await standingOf(wallet)).fee, { state: 'used', deposit: deposit.signature });
});

for (const [next, bring] of [
  [
    'the look for it',
    async ({ wallet, fee }: Awaited<ReturnType<typeof paid>>) => {
      nowMs += 3_600_000;
      assert.equal((await fees.takeDue())?.signature, fee.signature);
      assert.equal(await fees.matchNow(wallet, fee.signature), true);
    },
  ],
  ['its end on the chain', ({ deposit }: Awaited<ReturnType<typeof paid>>) => book.enter(deposit, true)],
] as const)
  test(`a fee and a deposit that are written down at once do not see each other; ${next} brings them together`, async () => {
    const both = await paid();
    const { wallet, fee, deposit } = both;
    const { signature, atMs } = fee;
    await database.sql.begin(async (transaction) => {
      const of = feeIn(fee, portal.treasuryAccount) ?? assert.fail();
      await fees.keep(transaction, { ...of, signature, slot: BigInt(fee.slot), atMs }, nowMs);
      assert.equal(await fees.match(transaction, wallet), 0);
      // Its commit is still to come.
      await book.enter(deposit, false);
    });
    const { signature: deposited } = deposit;
    const apart = await standingOf(wallet);
    assert.deepEqual(apart.fee, { state: 'waiting', deposit: null });
    assert.deepEqual(apart.moves, [{ signature: deposited, final: false }]);
    await bring(both);
    const together = await standingOf(wallet);
    assert.deepEqual(together.fee, { state: 'used', deposit: deposited });
    assert.equal(together.moves.length, 1, 'it is one deposit');
  });
