import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { parseGwei } from 'viem';
import type { z } from 'zod';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import {
  down,
  type FakeUpstreams,
  NOW_MS,
  notConfigured,
  reply,
  runContext,
} from '../run-context.fixture.ts';
import gasPriceOracle, { type output } from './gas-price-oracle.ts';

const ETH_USD = 3_000;
const SOL_USD = 150;
const coin = (symbol: string, price: number) => ({
  symbol,
  price,
  timestamp: NOW_MS / 1_000,
  confidence: 0.99,
});
const prices: FakeUpstreams = {
  defillama: {
    currentPrices: async () =>
      reply('defillama', {
        coins: { 'coingecko:ethereum': coin('ETH', ETH_USD), 'coingecko:solana': coin('SOL', SOL_USD) },
      }),
  },
};
const noSolana: FakeUpstreams = { solana: { recentPriorityFees: notConfigured('solana') } };

let chain: TestChain;
before(async () => {
  chain = await startTestChain();
  // What is read are the newest blocks: none may come by itself.
  await chain.client.setAutomine(false);
});
after(() => chain.stop());

async function run(body: Record<string, unknown>, fakes: FakeUpstreams) {
  const upstreams = { ...chain.upstreams, ...noSolana, ...fakes };
  const made = await gasPriceOracle.run(gasPriceOracle.input.parse(body), runContext(upstreams));
  assert(gasPriceOracle.output.safeParse(made.fields).success);
  return { ...made, fields: made.fields as z.output<typeof output> };
}
async function readBase(fakes: FakeUpstreams = prices) {
  const { fields, notes } = await run({ chains: ['base'] }, fakes);
  const [row] = fields.gasPrices;
  assert(row !== undefined);
  return { row, notes };
}

/** A block with a transfer for each of these tips. */
async function payTips(...tipsGwei: number[]): Promise<void> {
  const senders = await chain.client.getAddresses();
  for (const [index, tip] of tipsGwei.entries()) {
    const account = senders[index];
    assert(account !== undefined);
    await chain.client.sendTransaction({
      account,
      chain: null,
      to: chain.accounts.faucet.address,
      maxPriorityFeePerGas: parseGwei(String(tip)),
      maxFeePerGas: parseGwei('100'),
      gas: 21_000n,
    });
  }
  await chain.client.mine({ blocks: 1 });
}

describe('gas price oracle', () => {
  it('has the tips that recent blocks paid and the base fee that the next block has', async () => {
    // Of three transfers, the cheapest covers the 10th percentile of gas, the next the 50th, the dearest the 90th.
    for (let block = 0; block < 20; block++) {
      if (block % 5 === 4) await payTips(50, 60, 70);
      else await payTips(4, 1, 2);
    }
    const { row } = await readBase();
    assert.deepEqual(
      [row.chainId, row.slow.priorityFeeGwei, row.standard.priorityFeeGwei, row.fast.priorityFeeGwei],
      [8453, 1, 2, 4],
    );
    await chain.client.mine({ blocks: 1 });
    const next = await chain.client.getBlock();
    assert.equal(row.baseFeeGwei, Number(next.baseFeePerGas) / 1e9);
    assert.equal(row.blockNumber, Number(next.number) - 1);
  });

  it('caps the fee at what one, three and six full blocks can raise it to', async () => {
    const { row } = await readBase();
    const base = row.baseFeeGwei ?? 0;
    const caps = [row.slow, row.standard, row.fast].map(
      (fee) => (fee.maxFeeGwei ?? 0) - (fee.priorityFeeGwei ?? 0),
    );
    for (const [index, blocks] of [1, 3, 6].entries()) {
      // (9/8)^n, each step rounded up to a whole wei.
      assert(
        Math.abs((caps[index] ?? 0) - base * 1.125 ** blocks) < 1e-8,
        `${blocks}: ${caps[index]} of ${base}`,
      );
    }
  });

  it('prices a transfer: gas at base fee and tip, and the data on Ethereum', async () => {
    const { row } = await readBase();
    assert.equal(row.transferGas, 21_000);
    // The sandbox's oracle asks (16 · 2269 gwei + 1055762 wei) / 16e6 for each gas of calldata, 68 bytes of signature
    // added; the unsigned transfer has 50 bytes or so.
    const weiPerGas = 2.269e6;
    const l1 = Number(row.l1FeeWei);
    assert(l1 > (68 + 25) * 16 * weiPerGas && l1 < (68 + 65) * 16 * weiPerGas, String(l1));
    const wei = ((row.baseFeeGwei ?? 0) + 2) * 1e9 * 21_000 + l1;
    assert.equal(row.nativePriceUsd, ETH_USD);
    assert(Math.abs((row.standard.usdTransfer ?? 0) / ((wei / 1e18) * ETH_USD) - 1) < 1e-5);
  });

  it('has null for USD without a price', async () => {
    const { row, notes } = await readBase({ defillama: { currentPrices: down('defillama') } });
    assert.deepEqual([row.nativePriceUsd, row.fast.usdTransfer], [null, null]);
    assert.match(notes.join(' '), /No prices in USD: defillama did not answer/);
  });

  it('says so when nobody paid a tip', async () => {
    await chain.client.mine({ blocks: 20 });
    const { row, notes } = await readBase();
    assert.match(notes.join(' '), /last 20 blocks of base were empty/);
    const suggested = await chain.client.estimateMaxPriorityFeePerGas();
    assert.equal(row.slow.priorityFeeWei, String(suggested));
  });

  it('has Solana in its own units', async () => {
    const fees = [0, 0, 0, 100_000, 0, 0, 0, 2_000_000, 0, 0].map((microLamportsPerComputeUnit, index) => ({
      slot: 348_000_000 + index,
      microLamportsPerComputeUnit,
    }));
    const { fields } = await run(
      { chains: 'solana' },
      { ...prices, solana: { recentPriorityFees: async () => reply('solana', fees) } },
    );
    const [row] = fields.gasPrices;
    assert.deepEqual(
      [
        row?.slow.priorityFeeMicroLamports,
        row?.standard.priorityFeeMicroLamports,
        row?.fast.priorityFeeMicroLamports,
      ],
      [0, 0, 100_000],
    );
    // 5,000 lamports, and 450 units at 0.1 lamports.
    assert.equal(row?.fast.usdTransfer, (5_045 / 1e9) * SOL_USD);
    assert.deepEqual([row?.baseFeeGwei, row?.chainId, row?.blockNumber], [null, null, 348_000_009]);
  });

  it('reads what there is when asked for all, and says what could not be read of what was named', async () => {
    const all = await run({}, prices);
    assert.deepEqual([all.fields.gasPrices.map((row) => row.chain), all.fields.unavailable], [['base'], []]);
    assert.match(all.notes.join(' '), /Not configured on this server: ethereum, polygon/);
    const named = await run({ chains: ['base', 'bsc'] }, prices);
    assert.deepEqual(named.fields.unavailable, [{ chain: 'bsc', reason: 'not_configured' }]);
    await assert.rejects(run({ chains: ['bsc'] }, prices), { status: 422, field: 'chains' });
    const broken = { ...prices, solana: { recentPriorityFees: down('solana') } };
    await assert.rejects(run({ chains: ['bsc', 'solana'] }, broken), { status: 503 });
  });
});
