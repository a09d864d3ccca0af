import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { erc20Abi, type Hash, parseEther } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { reply } from '../run-context.fixture.ts';
import { startPrunedNode } from '../shared/wallet/pruned-node.fixture.ts';
import {
  buy,
  ETH,
  pricesOf,
  USDC_COIN,
  WALLET,
  walletContext,
} from '../shared/wallet/wallet-context.fixture.ts';
import portfolioTracker from './portfolio-tracker.ts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const DAY_MS = 86_400_000;

let chain: TestChain;
/** The first midnight that the chain lived to see, and the present: five and a half days later. */
let firstMidnightMs: number;
let nowMs: number;

before(async () => {
  chain = await startTestChain();
  const { client } = chain;
  const account = privateKeyToAccount(chain.accounts.faucet.privateKey);
  const { timestamp } = await client.getBlock();
  firstMidnightMs = Math.ceil((Number(timestamp) * 1_000) / DAY_MS) * DAY_MS;
  const atDay = (day: number) =>
    client.setNextBlockTimestamp({ timestamp: BigInt(firstMidnightMs + day * DAY_MS) / 1_000n });
  const sendUsdc = (amount: bigint) =>
    client.writeContract({
      abi: erc20Abi,
      address: USDC,
      functionName: 'transfer',
      account,
      args: [WALLET, amount],
    });

  // The node takes a transaction before it mines it: the next time must not come to its block.
  const mined = async (hash: Hash) =>
    void (await client.waitForTransactionReceipt({ hash, pollingInterval: 10 }));
  await atDay(0.5);
  await mined(await client.sendTransaction({ account, to: WALLET, value: parseEther('1') }));
  await atDay(2.5);
  await mined(await sendUsdc(100_000_000n));
  await atDay(4.5);
  await mined(await sendUsdc(50_000_000n));
  await atDay(5.5);
  await client.mine({ blocks: 1 });
  nowMs = firstMidnightMs + 5.5 * DAY_MS;
});
after(() => chain.stop());

/** ETH stood at 1,000 USD at the first midnight and gained 100 each day; USDC was always at 1. */
function market() {
  return {
    ...pricesOf({ [ETH]: 2_000, [USDC_COIN]: 1 }, nowMs),
    changes24h: async () => reply('defillama', { coins: { [ETH]: 25, [USDC_COIN]: 0 } }),
    priceChart: async (coin: string, startMs: number, count: number) =>
      reply(
        'defillama',
        Array.from({ length: count }, (_, day) => {
          const atMs = startMs + day * DAY_MS;
          const days = (atMs - firstMidnightMs) / DAY_MS;
          return { atMs, priceUsd: coin === ETH ? 1_000 + 100 * days : 1 };
        }),
      ),
  };
}

describe('portfolio tracker', () => {
  it('weighs the holdings and tells the change of what is held now', async () => {
    const context = walletContext(chain, { defillama: market() }, nowMs);
    const { fields, notes } = await buy(portfolioTracker, { walletAddress: WALLET }, context);
    assert.equal(portfolioTracker.output.safeParse(fields).error, undefined);
    const holdings = fields.holdings as { symbol: string; balance: string; allocationPct: number }[];
    const wei = await chain.client.getBalance({ address: WALLET });
    assert.equal(wei, parseEther('1'));
    assert.deepEqual(
      holdings.map(({ symbol, balance, allocationPct }) => [symbol, balance, allocationPct.toFixed(3)]),
      [
        ['ETH', '1', '93.023'],
        ['USDC', '150', '6.977'],
      ],
    );
    // 2,000 + 150 now; 1,600 + 150 a day ago.
    assert.equal(fields.totalValueUsd, 2_150);
    assert(Math.abs(Number(fields.change24hPct) - (2_150 / 1_750 - 1) * 100) < 1e-7);
    assert.equal(fields.history, null);
    assert.doesNotMatch(notes.join(' '), /history/);
  });

  it('tells the value of past midnights from the state of the chain at them', async () => {
    const context = walletContext(chain, { defillama: market() }, nowMs);
    const { fields, notes } = await buy(
      portfolioTracker,
      { walletAddress: WALLET, includeHistory: true, chains: ['base'] },
      context,
    );
    const history = fields.history as { at: string; valueUsd: number; blocks: { blockNumber: number }[] }[];
    assert.deepEqual(
      history.map(({ at, valueUsd }) => [(Date.parse(at) - firstMidnightMs) / DAY_MS, valueUsd]),
      [
        [0, 0],
        [1, 1_100],
        [2, 1_200],
        [3, 1_300 + 100],
        [4, 1_400 + 100],
        [5, 1_500 + 150],
      ],
    );
    for (const { at, blocks } of history) {
      const blockNumber = BigInt(blocks[0]?.blockNumber ?? -1);
      const [block, next] = await Promise.all([
        chain.client.getBlock({ blockNumber }),
        chain.client.getBlock({ blockNumber: blockNumber + 1n }),
      ]);
      const midnight = Date.parse(at) / 1_000;
      assert(Number(block.timestamp) <= midnight);
      assert(Number(next.timestamp) > midnight || midnight - Number(block.timestamp) <= 300);
    }
    // The seventh midnight back was before the chain began.
    assert.match(notes.join(' '), /history begins where all chains have blocks: 6 day/);
  });

  it('has no history, rather than a guess, where the chain is younger than all midnights', async () => {
    const context = walletContext(chain, { defillama: market() }, firstMidnightMs - DAY_MS);
    const body = { walletAddress: WALLET, includeHistory: true, chains: ['base'] };
    const { fields, notes } = await buy(portfolioTracker, body, context);
    assert.equal(fields.history, null);
    assert.match(notes.join(' '), /history is null: base has no block of the last 7 midnights/);
  });

  it('has no history where the node keeps no old state', async () => {
    const head = await chain.client.getBlock();
    const pruned = await startPrunedNode(chain.url, head.number);
    const fakes = { base: pruned.base, defillama: market() };
    const body = { walletAddress: WALLET, includeHistory: true };
    const { fields, notes } = await buy(portfolioTracker, body, walletContext(chain, fakes, nowMs));
    await pruned.stop();
    assert.deepEqual([fields.history, fields.totalValueUsd], [null, 2_150]);
    assert.match(notes.join(' '), /history is null: the node of base does not have the state of past blocks/);
  });

  it('leaves out of the change what has no price, and has null where nothing has one', async () => {
    const priced = { ...market(), ...pricesOf({ [ETH]: 2_000 }, nowMs) };
    const partial = await buy(
      portfolioTracker,
      { walletAddress: WALLET },
      walletContext(chain, { defillama: priced }, nowMs),
    );
    assert.deepEqual([partial.fields.change24hPct, partial.fields.totalIsPartial], [25, true]);
    assert.match(partial.notes.join(' '), /Not in change24hPct.*USDC on base/);
    const priceless = { ...market(), ...pricesOf({}, nowMs) };
    const nothing = await buy(
      portfolioTracker,
      { walletAddress: WALLET },
      walletContext(chain, { defillama: priceless }, nowMs),
    );
    const holdings = nothing.fields.holdings as { allocationPct: number | null }[];
    assert.deepEqual(
      [nothing.fields.change24hPct, holdings.map(({ allocationPct }) => allocationPct)],
      [null, [null, null]],
    );
  });
});
