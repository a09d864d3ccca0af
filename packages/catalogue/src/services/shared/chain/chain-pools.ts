import { type Address, parseAbi, zeroAddress } from 'viem';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import { evmChainFacts } from '../../../upstreams/adapters/evm-chains.ts';

/** The fees that Uniswap v3 pools take, in millionths of what is swapped (500 = 0.05 %). */
const FEE_TIERS = [100, 500, 3_000, 10_000] as const;

/** A Uniswap v3 pool. Of its two tokens the one with the lower address comes first. */
export interface V3Pool {
  address: Address;
  token0: Address;
  token1: Address;
  /** Millionths. */
  fee: number;
}

/** A Uniswap v2 pair that holds something of both tokens. */
export interface V2Pair {
  address: Address;
  token0: Address;
  token1: Address;
  /** Of each token in its smallest unit, as the pair counts. */
  reserve0: bigint;
  reserve1: bigint;
}

/** The balances of a pool, and its price. */
export interface V3PoolState extends V3Pool {
  /** Of each token in its smallest unit, fees that nobody has collected yet included. */
  balance0: bigint;
  balance1: bigint;
  /** Units of token1 for one unit of token0, both the smallest. */
  price0In1: number;
}

const FACTORY = parseAbi(['function getPool(address, address, uint24) view returns (address)']);
const POOL = parseAbi([
  'function slot0() view returns (uint160 sqrtPriceX96, int24 tick, uint16 observationIndex, uint16 observationCardinality, uint16 observationCardinalityNext, uint8 feeProtocol, bool unlocked)',
]);
const PAIR_FACTORY = parseAbi(['function getPair(address, address) view returns (address)']);
const PAIR = parseAbi(['function getReserves() view returns (uint112, uint112, uint32)']);
const BALANCE = parseAbi(['function balanceOf(address) view returns (uint256)']);

/** True when both are written for the same address. */
export function sameAddress(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/**
 * The pools of each pair, over all fee tiers.
 *
 * @returns in the order of the pairs, each from the lowest fee up; empty where there is no pool
 */
export async function findPools(
  chain: EvmChain,
  pairs: readonly (readonly [Address, Address])[],
  blockNumber: bigint,
): Promise<V3Pool[][]> {
  const { factory } = evmChainFacts(chain.name).uniswapV3;
  const addresses = await chain.client.multicall({
    blockNumber,
    allowFailure: false,
    contracts: pairs.flatMap(([a, b]) =>
      FEE_TIERS.map(
        (fee) => ({ address: factory, abi: FACTORY, functionName: 'getPool', args: [a, b, fee] }) as const,
      ),
    ),
  });
  return pairs.map(([a, b], pairIndex) => {
    const [token0, token1] = a.toLowerCase() < b.toLowerCase() ? [a, b] : [b, a];
    return FEE_TIERS.flatMap((fee, feeIndex) => {
      const address = addresses[pairIndex * FEE_TIERS.length + feeIndex];
      return address === undefined || address === zeroAddress ? [] : [{ address, token0, token1, fee }];
    });
  });
}

/**
 * The Uniswap v2 pair of each two tokens, with what it holds.
 *
 * @returns in the order asked; null where there is none, it is empty, or nobody has put the factory on this chain
 */
export async function findPairs(
  chain: EvmChain,
  pairs: readonly (readonly [Address, Address])[],
  blockNumber: bigint,
): Promise<(V2Pair | null)[]> {
  const { client, name } = chain;
  const factory = evmChainFacts(name).uniswapV2Factory;
  const found = await client.multicall({
    blockNumber,
    contracts: pairs.map(
      (args) => ({ address: factory, abi: PAIR_FACTORY, functionName: 'getPair', args }) as const,
    ),
  });
  const addresses = found.map(({ result }) => (result === zeroAddress ? undefined : result));
  const there = addresses.filter((address) => address !== undefined);
  const reserves = await client.multicall({
    blockNumber,
    contracts: there.map((address) => ({ address, abi: PAIR, functionName: 'getReserves' }) as const),
  });
  return pairs.map(([a, b], index) => {
    const address = addresses[index];
    if (address === undefined) return null;
    const [reserve0, reserve1] = reserves[there.indexOf(address)]?.result ?? [0n, 0n];
    if (reserve0 === 0n || reserve1 === 0n) return null;
    const [token0, token1] = a.toLowerCase() < b.toLowerCase() ? [a, b] : [b, a];
    return { address, token0, token1, reserve0, reserve1 };
  });
}

/** Prices and holdings of pools at one block; pools without an initial price are left out. */
export async function readPools(
  chain: EvmChain,
  pools: readonly V3Pool[],
  blockNumber: bigint,
): Promise<V3PoolState[]> {
  const { client } = chain;
  const [slots, balances] = await Promise.all([
    client.multicall({
      blockNumber,
      contracts: pools.map(({ address }) => ({ address, abi: POOL, functionName: 'slot0' }) as const),
    }),
    client.multicall({
      blockNumber,
      contracts: pools.flatMap(({ address, token0, token1 }) =>
        [token0, token1].map(
          (token) => ({ address: token, abi: BALANCE, functionName: 'balanceOf', args: [address] }) as const,
        ),
      ),
    }),
  ]);
  return pools.flatMap((pool, index) => {
    const sqrtPriceX96 = slots[index]?.result?.[0];
    const balance0 = balances[2 * index]?.result;
    const balance1 = balances[2 * index + 1]?.result;
    if (sqrtPriceX96 === undefined || sqrtPriceX96 === 0n) return [];
    if (balance0 === undefined || balance1 === undefined) return [];
    return [{ ...pool, balance0, balance1, price0In1: priceOf(sqrtPriceX96) }];
  });
}

/** Units of `to` for one unit of `from`, both the smallest, before fees. */
export function spotPrice(pool: V3PoolState, from: Address): number {
  return sameAddress(from, pool.token0) ? pool.price0In1 : 1 / pool.price0In1;
}

/** Uniswap v3 keeps the square root of the price, times 2^96. */
function priceOf(sqrtPriceX96: bigint): number {
  return (Number(sqrtPriceX96) / 2 ** 96) ** 2;
}
