import { type Address, concatHex, type Hex, numberToHex, parseAbi } from 'viem';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import { evmChainFacts } from '../../../upstreams/adapters/evm-chains.ts';
import { findPools, readPools, sameAddress, spotPrice, type V3PoolState } from './chain-pools.ts';

/** An exact amount of one token to be swapped for another. */
export interface Swap {
  from: Address;
  to: Address;
  /** In the smallest unit of `from`; at most 2^127. */
  amountIn: bigint;
}

/** QuoterV2's quote of what a swap would give. */
export interface SwapQuote {
  /** In the smallest unit of the token received. */
  amountOut: bigint;
  /** The tokens on the way, the first and the last included, and the pool between each two. */
  tokens: Address[];
  pools: V3PoolState[];
  /** How much the amount moves the price, without fees, in percent of the price before; null if there is no price. */
  priceImpactPercent: number | null;
  /** The gas of the swap inside the pools, without the transaction's own 21,000. */
  gasEstimate: bigint;
}

/** `too_small`: less than one unit would come out. */
export type SwapOutcome = SwapQuote | 'no_pool' | 'not_enough_liquidity' | 'too_small';

const QUOTER = parseAbi([
  'function quoteExactInput(bytes path, uint256 amountIn) returns (uint256 amountOut, uint160[] sqrtPriceX96AfterList, uint32[] initializedTicksCrossedList, uint256 gasEstimate)',
]);
/** A quote simulates a whole swap, and nodes limit the gas of a read. */
const ROUTES_PER_READ = 16;
/** How many pools of a leg two-pool routes are tried with: those with the largest holdings. */
const POOLS_PER_LEG = 2;

/** TickMath's bounds: a swap that ends one step from them ran out of liquidity before the amount was used up. */
const MIN_SQRT_PRICE = 4_295_128_739n;
const MAX_SQRT_PRICE = 1_461_446_703_485_210_103_287_273_052_203_988_822_378_723_970_342n;

interface Route {
  tokens: Address[];
  pools: V3PoolState[];
}

/**
 * The best that Uniswap v3 gives for each swap at one block: over all fee tiers of the pair itself, and where it has
 * no pool through the wrapped native coin or USDC. https://docs.uniswap.org/contracts/v3/reference/periphery/lens/QuoterV2
 */
export async function quoteSwaps(
  chain: EvmChain,
  swaps: readonly Swap[],
  blockNumber: bigint,
): Promise<SwapOutcome[]> {
  const routes = await routesOf(chain, swaps, blockNumber);
  const tries = swaps.flatMap((swap, index) =>
    (routes[index] ?? []).map((route) => ({ swap, route, index })),
  );
  const batches: (typeof tries)[] = [];
  for (let start = 0; start < tries.length; start += ROUTES_PER_READ) {
    batches.push(tries.slice(start, start + ROUTES_PER_READ));
  }
  const { quoter } = evmChainFacts(chain.name).uniswapV3;
  const answers = await Promise.all(
    batches.map((batch) =>
      chain.client.multicall({
        blockNumber,
        contracts: batch.map(
          ({ swap, route }) =>
            ({
              address: quoter,
              abi: QUOTER,
              functionName: 'quoteExactInput',
              args: [pathOf(route), swap.amountIn],
            }) as const,
        ),
      }),
    ),
  );
  const best: SwapOutcome[] = swaps.map((_, index) =>
    (routes[index] ?? []).length === 0 ? 'no_pool' : 'not_enough_liquidity',
  );
  answers.flat().forEach(({ result }, tried) => {
    const attempt = tries[tried];
    if (attempt === undefined || result === undefined) return;
    const [amountOut, pricesAfter, , gasEstimate] = result;
    // The quoter does not report when a pool accepted only a part of the amount.
    const ranDry = pricesAfter.some((price) => price <= MIN_SQRT_PRICE + 1n || price >= MAX_SQRT_PRICE - 1n);
    const known = best[attempt.index];
    if (ranDry || (typeof known === 'object' && known.amountOut >= amountOut)) return;
    if (amountOut === 0n) {
      best[attempt.index] = 'too_small';
      return;
    }
    const priceImpactPercent = impactOf(attempt.route, attempt.swap.amountIn, amountOut);
    best[attempt.index] = { ...attempt.route, amountOut, gasEstimate, priceImpactPercent };
  });
  return best;
}

/** The routes to try for each swap. */
async function routesOf(chain: EvmChain, swaps: readonly Swap[], blockNumber: bigint): Promise<Route[][]> {
  const direct = await findPools(
    chain,
    swaps.map(({ from, to }) => [from, to]),
    blockNumber,
  );
  const { usdc, wrappedNative } = evmChainFacts(chain.name);
  const detours = swaps.flatMap(({ from, to }, index) =>
    (direct[index] ?? []).length > 0
      ? []
      : [wrappedNative.address, usdc]
          .filter((over) => !sameAddress(over, from) && !sameAddress(over, to))
          .map((over) => ({ index, from, over, to })),
  );
  const legs = await findPools(
    chain,
    detours.flatMap(({ from, over, to }) => [[from, over] as const, [over, to] as const]),
    blockNumber,
  );
  const states = await readPools(chain, [...direct, ...legs].flat(), blockNumber);
  const stateOf = new Map(states.map((state) => [state.address, state]));
  const read = (pools: readonly { address: Address }[]) =>
    pools.map(({ address }) => stateOf.get(address)).filter((state) => state !== undefined);

  const routes = swaps.map(({ from, to }, index): Route[] =>
    read(direct[index] ?? []).map((pool) => ({ tokens: [from, to], pools: [pool] })),
  );
  detours.forEach(({ index, from, over, to }, position) => {
    const [first, second] = [legs[2 * position], legs[2 * position + 1]].map((pools) =>
      deepest(read(pools ?? []), over),
    );
    for (const a of first ?? []) {
      for (const b of second ?? []) routes[index]?.push({ tokens: [from, over, to], pools: [a, b] });
    }
  });
  return routes;
}

/** Those that hold most of a token that all of them have. */
function deepest(pools: readonly V3PoolState[], token: Address): V3PoolState[] {
  const held = (pool: V3PoolState) => (sameAddress(token, pool.token0) ? pool.balance0 : pool.balance1);
  return [...pools].sort((a, b) => (held(a) < held(b) ? 1 : -1)).slice(0, POOLS_PER_LEG);
}

/** Token, fee in three bytes, token, and so on. */
function pathOf({ tokens, pools }: Route): Hex {
  return concatHex(
    tokens.flatMap((token, index) => {
      const pool = pools[index];
      return pool === undefined ? [token] : [token, numberToHex(pool.fee, { size: 3 })];
    }),
  );
}

function impactOf({ tokens, pools }: Route, amountIn: bigint, amountOut: bigint): number | null {
  let expected = Number(amountIn);
  pools.forEach((pool, index) => {
    const from = tokens[index];
    if (from !== undefined) expected *= (1 - pool.fee / 1e6) * spotPrice(pool, from);
  });
  const percent = (1 - Number(amountOut) / expected) * 100;
  // Rounding to whole units can put a tiny amount above the quoted price.
  return Number.isFinite(percent) ? Math.max(0, Number(percent.toFixed(4))) : null;
}
