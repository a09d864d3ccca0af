/** Uniswap v3 from its published code, with two pools of WETH and USDC at the price of the sandbox's market. */
import { encodeAbiParameters, encodeFunctionData, maxUint256, parseAbi, parseEther } from 'viem';
import { BUILDERS } from './accounts.ts';
import { type Places, UNISWAP_ROUTER } from './addresses.ts';
import { type Node, transact } from './node.ts';
import { placeAt, publishedCode } from './placement.ts';
import { mintUsdc } from './usdc.ts';

const CORE = '@uniswap/v3-core/artifacts/contracts';
const PERIPHERY = '@uniswap/v3-periphery/artifacts/contracts';
const deployer = BUILDERS.deployer.address;

/** By fee: the highest tick that fits its tick spacing. Positions reach from the lowest to the highest: they cover all prices. */
const MAX_TICKS = { 500: 887_270, 3000: 887_220 } as const;
/** Stock for trading the pools to a new price: enough for any move that the market makes in years. */
const STOCK_WETH_WEI = parseEther('150000');
const STOCK_USDC_MICROS = 1_500_000_000_000_000n;
const DEPLOYER_ETH_WEI = parseEther('1000000');
/** A pool is left alone while its price is this close to the market's. */
const CLOSE_ENOUGH = 0.001;
const WEI_PER_ETH = 10n ** 18n;
const MICROS_PER_USD = 1_000_000;

const ABI = parseAbi([
  'function enableFeeAmount(uint24 fee, int24 tickSpacing)',
  'function getPool(address tokenA, address tokenB, uint24 fee) view returns (address)',
  'function slot0() view returns (uint160 sqrtPriceX96, int24, uint16, uint16, uint16, uint8, bool)',
  'function createAndInitializePoolIfNecessary(address token0, address token1, uint24 fee, uint160 sqrtPriceX96) returns (address)',
  'struct Position { address token0; address token1; uint24 fee; int24 tickLower; int24 tickUpper; uint256 amount0Desired; uint256 amount1Desired; uint256 amount0Min; uint256 amount1Min; address recipient; uint256 deadline; }',
  'function mint(Position position) returns (uint256, uint128, uint256, uint256)',
  'struct Swap { address tokenIn; address tokenOut; uint24 fee; address recipient; uint256 deadline; uint256 amountIn; uint256 amountOutMinimum; uint160 sqrtPriceLimitX96; }',
  'function exactInputSingle(Swap swap) returns (uint256)',
  'function deposit() payable',
  'function approve(address spender, uint256 amount) returns (bool)',
]);

/** Places factory, quoter, positions and router, and fills the pools. Needs USDC and WETH. */
export async function buildUniswap(node: Node, ethPriceUsd: number): Promise<void> {
  const { uniswapFactory: factory, uniswapQuoter, uniswapPositions, weth, pools } = node.places;
  const address = { type: 'address' } as const;
  const shared = encodeAbiParameters([address, address], [factory, weth]);
  await placeAt(node, factory, publishedCode(`${CORE}/UniswapV3Factory.sol/UniswapV3Factory.json`));
  await placeAt(node, uniswapQuoter, publishedCode(`${PERIPHERY}/lens/QuoterV2.sol/QuoterV2.json`), shared);
  await placeAt(node, UNISWAP_ROUTER, publishedCode(`${PERIPHERY}/SwapRouter.sol/SwapRouter.json`), shared);
  await placeAt(
    node,
    uniswapPositions,
    publishedCode(`${PERIPHERY}/NonfungiblePositionManager.sol/NonfungiblePositionManager.json`),
    // The third address is that of the descriptor, which draws a position's picture. The sandbox has none.
    encodeAbiParameters([address, address, address], [factory, weth, factory]),
  );
  // Uniswap's governance added this fee to every factory later.
  const data = encodeFunctionData({ abi: ABI, functionName: 'enableFeeAmount', args: [100, 1] });
  await transact(node, { from: deployer, to: factory, data });

  await stockUp(node, ethPriceUsd);
  for (const pool of pools) await openPool(node, pool, ethPriceUsd);
}

/** Trades each pool to the market's price, which has moved away from the pool's price while nobody traded. */
export async function tradeToMarket(node: Node, ethPriceUsd: number): Promise<void> {
  const { usdc, weth, uniswapFactory, pools } = node.places;
  const target = sqrtPriceX96(node.places, ethPriceUsd);
  for (const { feeHundredthsOfBasisPoint: fee } of pools) {
    const pool = await node.readContract({
      address: uniswapFactory,
      abi: ABI,
      functionName: 'getPool',
      args: [weth, usdc, fee],
    });
    const [current] = await node.readContract({ address: pool, abi: ABI, functionName: 'slot0' });
    if (Math.abs((Number(current) / Number(target)) ** 2 - 1) < CLOSE_ENOUGH) continue;
    const [tokenIn, tokenOut, amountIn] =
      // To raise the price of token 0, sell token 1 for it.
      current < target === wethIsFirst(node.places)
        ? [usdc, weth, STOCK_USDC_MICROS]
        : [weth, usdc, STOCK_WETH_WEI];
    const swap = {
      tokenIn,
      tokenOut,
      fee,
      recipient: deployer,
      deadline: maxUint256,
      amountIn,
      amountOutMinimum: 0n,
      sqrtPriceLimitX96: target,
    };
    const data = encodeFunctionData({ abi: ABI, functionName: 'exactInputSingle', args: [swap] });
    await transact(node, { from: deployer, to: UNISWAP_ROUTER, data });
  }
}

/** Gives the deployer the WETH and USDC with which it fills the pools and trades in them. */
async function stockUp(node: Node, ethPriceUsd: number): Promise<void> {
  const { usdc, weth, uniswapPositions, pools } = node.places;
  const wethWei = pools.reduce((sum, pool) => sum + pool.wethWei, STOCK_WETH_WEI);
  await node.setBalance({ address: deployer, value: DEPLOYER_ETH_WEI });
  const deposit = encodeFunctionData({ abi: ABI, functionName: 'deposit' });
  await transact(node, { from: deployer, to: weth, data: deposit, value: wethWei });
  await mintUsdc(node, deployer, usdcMicrosOf(wethWei, ethPriceUsd) + STOCK_USDC_MICROS);
  for (const token of [weth, usdc]) {
    for (const spender of [uniswapPositions, UNISWAP_ROUTER]) {
      const data = encodeFunctionData({ abi: ABI, functionName: 'approve', args: [spender, maxUint256] });
      await transact(node, { from: deployer, to: token, data });
    }
  }
}

async function openPool(node: Node, pool: Places['pools'][number], ethPriceUsd: number): Promise<void> {
  const { feeHundredthsOfBasisPoint: fee, wethWei } = pool;
  const { usdc, weth, uniswapPositions } = node.places;
  const send = (data: `0x${string}`) => transact(node, { from: deployer, to: uniswapPositions, data });
  const sides = [
    { token: weth, amount: wethWei },
    { token: usdc, amount: usdcMicrosOf(wethWei, ethPriceUsd) },
  ] as const;
  const [first, second] = wethIsFirst(node.places) ? sides : [sides[1], sides[0]];
  await send(
    encodeFunctionData({
      abi: ABI,
      functionName: 'createAndInitializePoolIfNecessary',
      args: [first.token, second.token, fee, sqrtPriceX96(node.places, ethPriceUsd)],
    }),
  );
  const position = {
    token0: first.token,
    token1: second.token,
    fee,
    tickLower: -MAX_TICKS[fee],
    tickUpper: MAX_TICKS[fee],
    amount0Desired: first.amount,
    amount1Desired: second.amount,
    amount0Min: 0n,
    amount1Min: 0n,
    recipient: deployer,
    deadline: maxUint256,
  };
  await send(encodeFunctionData({ abi: ABI, functionName: 'mint', args: [position] }));
}

function usdcMicrosOf(wethWei: bigint, ethPriceUsd: number): bigint {
  return (wethWei * priceMicros(ethPriceUsd)) / WEI_PER_ETH;
}

/** A pool's token 0 is the one with the lower address: WETH on Base, USDC on Ethereum. */
function wethIsFirst({ weth, usdc }: Places): boolean {
  return BigInt(weth) < BigInt(usdc);
}

/**
 * A price in the form in which a pool stores it: the square root of the price of token 0 in token 1, both in their smallest
 * units, as a fixed-point number with 96 fractional bits.
 */
function sqrtPriceX96(places: Places, ethPriceUsd: number): bigint {
  const [micros, wei] = [priceMicros(ethPriceUsd), WEI_PER_ETH];
  return squareRoot(wethIsFirst(places) ? (micros << 192n) / wei : (wei << 192n) / micros);
}

function priceMicros(ethPriceUsd: number): bigint {
  return BigInt(Math.round(ethPriceUsd * MICROS_PER_USD));
}

/** Rounded down, by Newton's method from above. */
function squareRoot(value: bigint): bigint {
  let root = 1n << BigInt(Math.ceil(value.toString(2).length / 2));
  for (;;) {
    const next = (root + value / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}
