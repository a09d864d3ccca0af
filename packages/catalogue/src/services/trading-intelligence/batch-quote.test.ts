import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Address, type Hash, maxUint256, parseAbi, parseEther } from 'viem';
import type { z } from 'zod';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { sourceUnavailable } from '../../../../core/src/words/failure.ts';
import { UNISWAP_POSITIONS, UNISWAP_ROUTER } from '../../../../sandbox/src/chain/addresses.ts';
import { evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import { type FakeUpstreams, runContext } from '../run-context.fixture.ts';
import batchQuote, { type output } from './batch-quote.ts';

const { usdc, wrappedNative, uniswapV3 } = evmChainFacts('base');
const WETH = wrappedNative.address;
/** A token whose only pool is against WETH. */
const OTHER: Address = '0xc000000000000000000000000000000000000001';

const ABI = parseAbi([
  'struct Single { address tokenIn; address tokenOut; uint256 amountIn; uint24 fee; uint160 sqrtPriceLimitX96; }',
  'function quoteExactInputSingle(Single single) returns (uint256 amountOut, uint160, uint32, uint256)',
  'struct Path { bytes path; address recipient; uint256 deadline; uint256 amountIn; uint256 amountOutMinimum; }',
  'function exactInput(Path swap) payable returns (uint256)',
  'struct Swap { address tokenIn; address tokenOut; uint24 fee; address recipient; uint256 deadline; uint256 amountIn; uint256 amountOutMinimum; uint160 sqrtPriceLimitX96; }',
  'function exactInputSingle(Swap swap) payable returns (uint256)',
  'function createAndInitializePoolIfNecessary(address token0, address token1, uint24 fee, uint160 sqrtPriceX96) payable returns (address)',
  'struct Position { address token0; address token1; uint24 fee; int24 tickLower; int24 tickUpper; uint256 amount0Desired; uint256 amount1Desired; uint256 amount0Min; uint256 amount1Min; address recipient; uint256 deadline; }',
  'function mint(Position position) payable returns (uint256, uint128, uint256, uint256)',
  'function deposit() payable',
  'function approve(address spender, uint256 amount) returns (bool)',
]);

let chain: TestChain;
let trader: Address;
before(async () => {
  chain = await startTestChain();
  trader = await accountOfNode(7);
  const code = await chain.client.getCode({ address: WETH });
  assert(code !== undefined);
  await chain.client.setCode({ address: OTHER, bytecode: code });
  await chain.client.setBalance({ address: trader, value: parseEther('10000') });
  // More gas than any of these takes: in the second after an estimate a pool stores its price anew, and takes more.
  const send = { account: trader, chain: null, abi: ABI, gas: 10_000_000n } as const;
  // What one allows or makes, the next one needs.
  const mined = async (hash: Hash) => {
    const { status } = await chain.client.waitForTransactionReceipt({ hash, pollingInterval: 5 });
    assert.equal(status, 'success');
  };
  for (const address of [WETH, OTHER]) {
    await mined(
      await chain.client.writeContract({
        ...send,
        address,
        functionName: 'deposit',
        value: parseEther('2000'),
      }),
    );
    for (const spender of [UNISWAP_POSITIONS, UNISWAP_ROUTER]) {
      await mined(
        await chain.client.writeContract({
          ...send,
          address,
          functionName: 'approve',
          args: [spender, maxUint256],
        }),
      );
    }
  }
  // One OTHER is worth one WETH.
  const pool = [WETH, OTHER, 3_000] as const;
  await mined(
    await chain.client.writeContract({
      ...send,
      address: UNISWAP_POSITIONS,
      functionName: 'createAndInitializePoolIfNecessary',
      args: [...pool, 2n ** 96n],
    }),
  );
  await mined(
    await chain.client.writeContract({
      ...send,
      address: UNISWAP_POSITIONS,
      functionName: 'mint',
      args: [
        {
          token0: WETH,
          token1: OTHER,
          fee: 3_000,
          tickLower: -887_220,
          tickUpper: 887_220,
          amount0Desired: parseEther('1000'),
          amount1Desired: parseEther('1000'),
          amount0Min: 0n,
          amount1Min: 0n,
          recipient: trader,
          deadline: maxUint256,
        },
      ],
    }),
  );
});
after(() => chain.stop());

/** One of those that the node signs for. */
async function accountOfNode(index: number): Promise<Address> {
  const account = (await chain.client.getAddresses())[index];
  assert(account !== undefined);
  return account;
}

async function run(body: Record<string, unknown>, fakes: FakeUpstreams = {}) {
  const adapted = batchQuote.adapt?.(body) ?? body;
  const context = runContext({ ...chain.upstreams, ...fakes });
  const made = await batchQuote.run(batchQuote.input.parse(adapted), context);
  assert(batchQuote.output.safeParse(made.fields).success);
  return { ...made, fields: made.fields as z.output<typeof output> };
}
const quoterOf = async (tokenIn: Address, tokenOut: Address, amountIn: bigint, fee: number) => {
  const single = { tokenIn, tokenOut, amountIn, fee, sqrtPriceLimitX96: 0n };
  const { result } = await chain.client.simulateContract({
    address: uniswapV3.quoter,
    abi: ABI,
    functionName: 'quoteExactInputSingle',
    args: [single],
  });
  return result[0];
};

/** A token of which no pool exists: another copy of WETH’s code. */
const POOLLESS: Address = '0x00000000000000000000000000000000000e0009';

describe('batch quote', () => {
  it('gives the best tier, which is what a swap then really gives', async () => {
    const amountIn = parseEther('10');
    const { fields } = await run({
      quotes: [{ fromToken: WETH, toToken: usdc, amountRaw: String(amountIn), chain: 'base' }],
    });
    const [quote] = fields.quotes;
    const [low, high] = [
      await quoterOf(WETH, usdc, amountIn, 500),
      await quoterOf(WETH, usdc, amountIn, 3_000),
    ];
    assert(low > high);
    assert.equal(BigInt(quote?.amountOut ?? 0), low);
    const swap = {
      tokenIn: WETH,
      tokenOut: usdc,
      fee: 500,
      recipient: trader,
      deadline: maxUint256,
      amountIn,
      amountOutMinimum: 0n,
      sqrtPriceLimitX96: 0n,
    };
    const { result } = await chain.client.simulateContract({
      account: trader,
      address: UNISWAP_ROUTER,
      abi: ABI,
      functionName: 'exactInputSingle',
      args: [swap],
    });
    assert.equal(BigInt(quote?.amountOut ?? 0), result);
    assert.equal(quote?.minReceived, String((result * 995n) / 1_000n));
    assert.deepEqual([quote?.feePct, quote?.route.length, quote?.error], [0.05, 1, null]);
    // With 6,000 WETH over all prices, x·y = k: 10 · 0.9995 WETH give 1 / (1 + 9.995 / 6000) of the price before.
    assert(Math.abs((quote?.priceImpactPct ?? 0) - (1 - 1 / (1 + 9.995 / 6_000)) * 100) < 1e-3);
    assert(Math.abs((quote?.price ?? 0) - Number(result) / 1e6 / 10) < 1e-6);
  });

  it('goes through WETH where the pair has no pool', async () => {
    const { fields } = await run({
      quotes: [{ fromToken: OTHER, toToken: 'USDC', amount: '1.5', chain: 'base' }],
    });
    const [quote] = fields.quotes;
    assert.deepEqual(
      quote?.route.map(({ feePct, toAddress }) => [feePct, toAddress]),
      [
        [0.3, WETH],
        [0.05, usdc],
      ],
    );
    const path = `0x${[OTHER.slice(2), '000bb8', WETH.slice(2), '0001f4', usdc.slice(2)].join('')}` as const;
    const amountIn = parseEther('1.5');
    const { result } = await chain.client.simulateContract({
      account: trader,
      address: UNISWAP_ROUTER,
      abi: ABI,
      functionName: 'exactInput',
      args: [{ path, recipient: trader, deadline: maxUint256, amountIn, amountOutMinimum: 0n }],
    });
    assert.equal(quote?.amountOut, String(result));
  });

  it('lets one bad pair fail alone', async () => {
    const { fields, notes } = await run({
      quotes: [
        { fromToken: 'ETH', toToken: 'USDC', amount: '1.0', chain: 'base' },
        { fromToken: 'NOPE', toToken: 'USDC', amount: '1.0', chain: 'base' },
        { fromToken: 'USDC', toToken: usdc, amount: '1.0', chain: 'base' },
        { fromToken: 'USDC', toToken: 'WETH', amount: '1.0000001', chain: 'base' },
        {
          fromToken: 'WETH',
          toToken: '0xc000000000000000000000000000000000000002',
          amount: '1',
          chain: 'base',
        },
        { fromToken: 'WETH', toToken: 'USDC', amount: '1.0', chain: 'polygon' },
        { fromToken: 'WETH', toToken: 'USDC', amountRaw: '1000', chain: 'base' },
        // Moves the price to its end before all of it is sold.
        {
          fromToken: 'WETH',
          toToken: 'USDC',
          amountRaw: '100000000000000000000000000000000000000',
          chain: 'base',
        },
      ],
    });
    assert.deepEqual(
      fields.quotes.map(({ error }) => error?.code ?? null),
      [
        null,
        'UNKNOWN_TOKEN',
        'SAME_TOKEN',
        'BAD_AMOUNT',
        'UNKNOWN_TOKEN',
        'CHAIN_NOT_CONFIGURED',
        'TOO_SMALL',
        'NOT_ENOUGH_LIQUIDITY',
      ],
    );
    assert.deepEqual([fields.count, fields.quoted], [8, 1]);
    assert.match(notes.join(' '), /native coin is quoted as WETH/);
  });

  it('costs nothing when nothing could be quoted', async () => {
    const asked = { fromToken: 'NOPE', toToken: 'USDC', amount: '1' };
    await assert.rejects(run({ quotes: [asked] }), { status: 422, code: 'NO_QUOTE', field: 'quotes' });
    await chain.client.setCode({
      address: POOLLESS,
      bytecode: (await chain.client.getCode({ address: WETH })) ?? '0x',
    });
    const poolless = { fromToken: POOLLESS, toToken: 'USDC', amount: '1.5', chain: 'base' };
    await assert.rejects(run({ quotes: [poolless] }), { status: 422, code: 'NO_QUOTE' });
    const { fields } = await run({ quotes: [poolless, { ...poolless, fromToken: 'WETH' }] });
    assert.deepEqual(
      fields.quotes.map(({ error }) => error?.code ?? null),
      ['NO_POOL', null],
    );
    const base = {
      ...chain.upstreams.base,
      client: {
        getBlock: async () => {
          throw sourceUnavailable('base', 'upstream_down', 'Base is down');
        },
      },
    } as never;
    await assert.rejects(run({ quotes: [asked] }, { base }), { status: 503 });
  });

  it('counts whole tokens in amount, written with a point or without, and the smallest unit in amountRaw', async () => {
    const pair = { fromToken: 'WETH', toToken: 'USDC', chain: 'base' };
    const { fields } = await run({
      quotes: [
        { ...pair, amount: '1' },
        { ...pair, amount: 1 },
        { ...pair, amount: '1.0' },
        { ...pair, amountRaw: '1000000000000000000' },
      ],
    });
    const [first, ...same] = fields.quotes.map(({ amount, amountRaw, amountOut, error }) => ({
      amount,
      amountRaw,
      amountOut,
      error,
    }));
    assert.deepEqual([first?.amount, first?.amountRaw, first?.error], ['1', '1000000000000000000', null]);
    for (const each of same) assert.deepEqual(each, first);
    for (const wrong of [pair, { ...pair, amount: '1', amountRaw: '1' }, { ...pair, amountRaw: '1.0' }])
      assert.equal(batchQuote.input.safeParse({ quotes: [wrong] }).success, false, JSON.stringify(wrong));
  });

  it('reads the bodies that clients send', async () => {
    const prices = await run({ tokens: ['WETH', OTHER], chain: 'base' });
    assert.deepEqual(
      prices.fields.quotes.map(({ amountInFormatted, toSymbol, error }) => [
        amountInFormatted,
        toSymbol,
        error,
      ]),
      [
        ['1', 'USDC', null],
        ['1', 'USDC', null],
      ],
    );
    const swaps = await run({ quotes: [{ tokenIn: 'WETH', tokenOut: 'USDC', amountIn: 1e15 }], chain: 8453 });
    assert.deepEqual(
      [swaps.fields.quotes[0]?.amountIn, swaps.fields.quotes[0]?.chain],
      ['1000000000000000', 'base'],
    );
    assert.equal(batchQuote.input.safeParse({}).success, false);
  });
});
