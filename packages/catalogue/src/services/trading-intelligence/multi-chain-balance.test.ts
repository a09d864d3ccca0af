import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { erc20Abi, formatUnits, parseAbi, parseEther } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { evmUpstream } from '../../upstreams/adapters/evm.ts';
import { connectUpstream } from '../../upstreams/http.ts';
import { down, reply } from '../run-context.fixture.ts';
import {
  buy,
  ETH,
  pricesOf,
  USDC_COIN,
  WALLET,
  walletContext,
} from '../shared/wallet/wallet-context.fixture.ts';
import multiChainBalance from './multi-chain-balance.ts';

const SOLANA_WALLET = '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM';
const SOLANA_USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const WETH = '0x4200000000000000000000000000000000000006';
const PRICES = { [ETH]: 2_000, [USDC_COIN]: 0.99 };

let chain: TestChain;
before(async () => {
  chain = await startTestChain();
  const { client, accounts } = chain;
  await client.setBalance({ address: WALLET, value: parseEther('1.5') });
  const account = privateKeyToAccount(accounts.faucet.privateKey);
  const pay = { abi: erc20Abi, address: USDC, functionName: 'transfer' } as const;
  const hash = await client.writeContract({ ...pay, account, args: [WALLET, 12_345_678n] });
  await client.waitForTransactionReceipt({ hash });
});
after(() => chain.stop());

describe('multi-chain balance', () => {
  it('says what the chain itself says, at the block that it names', async () => {
    const context = walletContext(chain, { defillama: pricesOf(PRICES) });
    const { fields, sources, notes } = await buy(
      multiChainBalance,
      { walletAddress: WALLET, chains: ['base'] },
      context,
    );
    assert.equal(multiChainBalance.output.safeParse(fields).success, true);
    const [base] = fields.balances as { [field: string]: unknown; blockNumber: number }[];
    assert(base !== undefined);
    const blockNumber = BigInt(base.blockNumber);
    const usdc = await chain.client.readContract({
      abi: erc20Abi,
      address: USDC,
      functionName: 'balanceOf',
      args: [WALLET],
      blockNumber,
    });
    const wei = await chain.client.getBalance({ address: WALLET, blockNumber });
    assert.deepEqual([base.native, base.nativeRaw, base.error], [formatUnits(wei, 18), String(wei), null]);
    assert.deepEqual(base.tokens, [
      {
        symbol: 'USDC',
        address: USDC,
        decimals: 6,
        balance: '12.345678',
        balanceRaw: String(usdc),
        priceUsd: 0.99,
        priceAgreement: 'one_source',
        pricesBy: [{ source: 'defillama', priceUsd: 0.99 }],
        valueUsd: 12.222221,
      },
    ]);
    // 1.5 x 2,000 and 12.345678 x 0.99, to the millionth.
    assert.equal(base.nativeUsd, 3_000);
    assert.deepEqual([fields.totalValueUsd, fields.totalIsPartial], [3_012.222221, true]);
    const coins = await buy(
      multiChainBalance,
      { walletAddress: WALLET, chains: ['base'], includeTokens: false },
      walletContext(chain, { defillama: pricesOf(PRICES) }),
    );
    assert.deepEqual([coins.fields.totalValueUsd, coins.fields.totalIsPartial], [3_000, true]);
    assert.equal(sources[0]?.name, 'base');
    assert.equal(sources[0]?.sandbox, true);
    assert.match(notes.join(' '), /Only the tokens in tokensChecked were looked for/);
  });

  it('lists as checked only tokens whose contracts answered', async () => {
    const context = walletContext(chain, { defillama: pricesOf(PRICES) });
    const { fields, notes } = await buy(multiChainBalance, { walletAddress: WALLET }, context);
    const [base, ...more] = fields.balances as { chain: string; tokensChecked: string[] }[];
    assert(base !== undefined && base.chain === 'base' && more.length === 0);
    // DAI is on the list of Base, but nobody deployed it on this chain.
    assert(base.tokensChecked.includes('USDC') && !base.tokensChecked.includes('DAI'));
    assert.match(notes.join(' '), /no answer from the contracts of: .*DAI/);
    assert.match(notes.join(' '), /No published list of tokens of base could be used: only 8 well-known/);
  });

  it('leaves out of the total, and says so, what has no sure price', async () => {
    const wrap = parseAbi(['function deposit() payable']);
    const account = privateKeyToAccount(chain.accounts.faucet.privateKey);
    const hash = await chain.client.writeContract({
      abi: wrap,
      address: WETH,
      functionName: 'deposit',
      account,
      value: 10n ** 18n,
    });
    await chain.client.waitForTransactionReceipt({ hash });
    const body = { walletAddress: account.address, chains: 'base' };
    const unknown = walletContext(chain, { defillama: pricesOf(PRICES) });
    const { fields, notes } = await buy(multiChainBalance, body, unknown);
    const [base] = fields.balances as {
      tokens: { symbol: string; balance: string; valueUsd: number | null }[];
    }[];
    const weth = base?.tokens.find(({ symbol }) => symbol === 'WETH');
    assert.deepEqual([weth?.balance, weth?.valueUsd, fields.totalIsPartial], ['1', null, true]);
    assert.match(notes.join(' '), /for want of a sure price: WETH on base/);

    const old = walletContext(chain, { defillama: pricesOf(PRICES, 0) });
    const stale = await buy(multiChainBalance, { walletAddress: WALLET, chains: 'base' }, old);
    assert.deepEqual([stale.fields.totalValueUsd, stale.fields.totalIsPartial], [0, true]);
  });

  it('names chains that it could not read, and charges nothing when there is none or no price source', async () => {
    const context = walletContext(chain, { defillama: pricesOf(PRICES) });
    const mixed = {
      walletAddress: WALLET,
      chains: ['polygon', 'eip155:8453', 'solana'],
    };
    const { fields, notes } = await buy(multiChainBalance, mixed, context);
    const balances = fields.balances as { chain: string; error: string | null; native: string | null }[];
    assert.deepEqual(
      balances.map(({ chain: name, error, native }) => [name, error, native]),
      [
        ['polygon', 'not_configured', null],
        ['base', null, '1.5'],
        ['solana', 'other_kind_of_address', null],
      ],
    );
    assert.equal(fields.totalIsPartial, true);
    assert.match(notes.join(' '), /polygon is not in the total: not configured/);

    const none = { walletAddress: WALLET, chains: ['polygon'] };
    await assert.rejects(buy(multiChainBalance, none, context), {
      status: 422,
      code: 'NO_CHAIN_TO_READ',
      message: /Configured are: base\./,
    });
    const priceless = walletContext(chain, { defillama: { currentPrices: down('defillama') } });
    await assert.rejects(buy(multiChainBalance, { walletAddress: WALLET }, priceless), { status: 503 });
  });

  it('answers about the others when one chain is down', async () => {
    const polygon = evmUpstream('polygon');
    const config = { baseUrl: 'http://127.0.0.1:1' };
    const connection = connectUpstream(polygon, config, {
      userAgent: 'test',
      acceptSandbox: true,
      nowMs: Date.now,
    });
    const fakes = { polygon: polygon.open(connection.http), defillama: pricesOf(PRICES) };
    const { fields, notes } = await buy(
      multiChainBalance,
      { walletAddress: WALLET },
      walletContext(chain, fakes),
    );
    await connection.close();
    const balances = fields.balances as { chain: string; error: string | null }[];
    assert.equal(balances.find(({ chain: name }) => name === 'polygon')?.error, 'unavailable');
    assert.deepEqual([fields.totalValueUsd, fields.totalIsPartial], [3_012.222221, true]);
    assert.match(notes.join(' '), /polygon is not in the total: unavailable/);
  });

  it('reads all token accounts of a Solana wallet', async () => {
    const at = <T>(value: T) => ({ ...reply('solana', value), slot: 7 });
    const context = walletContext(chain, {
      defillama: pricesOf({ 'coingecko:solana': 100, [`solana:${SOLANA_USDC}`]: 1 }),
      solana: {
        balanceOf: async () => at(2_500_000_000n),
        tokenBalancesOf: async () => at([{ mint: SOLANA_USDC, amount: 5_000_000n, decimals: 6 }]),
      },
    });
    const { fields } = await buy(multiChainBalance, { walletAddress: SOLANA_WALLET }, context);
    // Of a Solana wallet every token account is read, so nothing is missing from the sum.
    assert.deepEqual([fields.totalValueUsd, fields.totalIsPartial], [255, false]);
    const [solana] = fields.balances as { native: string; tokensChecked: null; blockNumber: number }[];
    assert.deepEqual([solana?.native, solana?.tokensChecked, solana?.blockNumber], ['2.5', null, 7]);
  });

  it('says that the total of a Solana wallet is partial where a token has no price or is left out', async () => {
    const total = async (mints: readonly string[], chains?: readonly string[]) => {
      const at = <T>(value: T) => ({ ...reply('solana', value), slot: 7 });
      const prices = Object.fromEntries(
        mints.filter((mint) => mint !== 'unpriced').map((mint) => [`solana:${mint}`, 1]),
      );
      const context = walletContext(chain, {
        defillama: pricesOf({ ...prices, 'coingecko:solana': 100 }),
        solana: {
          balanceOf: async () => at(0n),
          tokenBalancesOf: async () => at(mints.map((mint) => ({ mint, amount: 1_000_000n, decimals: 6 }))),
        },
      });
      const { fields } = await buy(multiChainBalance, { walletAddress: SOLANA_WALLET, chains }, context);
      return [fields.totalValueUsd, fields.totalIsPartial];
    };
    assert.deepEqual(await total([SOLANA_USDC]), [1, false]);
    // A chain for another kind of address can hold nothing of it.
    assert.deepEqual(await total([SOLANA_USDC], ['solana', 'base']), [1, false]);
    assert.deepEqual(await total([SOLANA_USDC, 'unpriced']), [1, true]);
    const many = Array.from({ length: 61 }, (_, index) => `mint${index}`);
    assert.deepEqual(await total(many), [60, true]);
  });

  it('refuses what is no address', () => {
    for (const walletAddress of [undefined, '0x12', `${WALLET.slice(0, -1)}g`, 'z'.repeat(44)]) {
      assert.equal(multiChainBalance.input.safeParse({ walletAddress }).success, false);
    }
  });
});
