import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import {
  type Address,
  BaseError,
  bytesToHex,
  decodeFunctionResult,
  encodeAbiParameters,
  encodeFunctionData,
  erc20Abi,
  type Hex,
  keccak256,
  numberToHex,
  parseAbi,
  type StateMapping,
  type StateOverride,
} from 'viem';
import { z } from 'zod';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import { evmChainFacts } from '../../../upstreams/adapters/evm-chains.ts';
import { revertReason } from '../wallet/wallet-revert.ts';
import { findPairs, findPools, readPools, sameAddress } from './chain-pools.ts';

type PoolKind = 'uniswap-v2' | 'uniswap-v3';

/** The pool in which the trade is tried. */
interface Venue {
  kind: PoolKind;
  address: Address;
  /** Millionths. */
  fee: number;
  /** Its holdings of the quote token, in the smallest unit. */
  held: bigint;
}

/** The result of buying a token and selling half of it at once, in one simulated transaction. */
export interface TokenTrade {
  pool: Address;
  poolKind: PoolKind;
  /** Millionths. */
  poolFee: number;
  quote: Address;
  /** What was spent, in the smallest unit of `quote`. */
  spent: bigint;
  outcome: 'sold' | 'purchase_failed' | 'nothing_arrived' | 'sale_failed';
  /** The token's error message when it failed, in one short line. */
  reason: string | null;
  /** What the pool sent and did not arrive, in percent; null when it sent nothing. */
  buyTaxPercent: number | null;
  /** What was sent to the pool and did not arrive, in percent; null when nothing was sold. */
  sellTaxPercent: number | null;
}

const ABI = parseAbi([
  'function trade(address pool, bool isPair, address token, address quote, bool wrap, uint256 spend) returns ((uint256 stage, uint256 bought, uint256 arrived, uint256 sold, uint256 soldArrived, uint256 proceeds, bytes reason))',
]);
/** Of every Uniswap v2 pair, in millionths. */
const PAIR_FEE = 3_000;
const OUTCOMES = ['sold', 'purchase_failed', 'nothing_arrived', 'sale_failed'] as const;
/** `TradeProbe.sol`, compiled. */
const PROBE_CODE = z
  .object({ runtimeCode: z.templateLiteral(['0x', z.string()]) })
  .parse(
    JSON.parse(readFileSync(join(import.meta.dirname, 'trade-probe', 'TradeProbe.json'), 'utf8')),
  ).runtimeCode;
/** The share of the pool's holdings that is spent, too little to move its price much. */
const SHARE_OF_POOL = 1_000n;
/** Tokens keep their balances in one of the first storage slots. */
const SLOTS_TRIED = 32;

/**
 * Buys a token with the wrapped native coin or USDC in the deepest Uniswap v2 or v3 pool that it has with either, the
 * native coin first, and sells half of what arrived. All of it runs in one `eth_call`, with simulated code and money.
 *
 * @returns the reason in words when there is no trial
 * @throws UpstreamUnavailable when the chain cannot be reached
 */
export async function tryTrade(
  chain: EvmChain,
  token: Address,
  blockNumber: bigint,
): Promise<TokenTrade | { why: string }> {
  const { usdc, wrappedNative } = evmChainFacts(chain.name);
  const quotes = [wrappedNative.address, usdc].filter((quote) => !sameAddress(quote, token));
  const asked = quotes.map((quote) => [token, quote] as const);
  const [found, pairs] = await Promise.all([
    findPools(chain, asked, blockNumber),
    findPairs(chain, asked, blockNumber),
  ]);
  for (const [index, quote] of quotes.entries()) {
    const pools = await readPools(chain, found[index] ?? [], blockNumber);
    const venues: Venue[] = pools.map(({ address, fee, token0, balance0, balance1 }) => ({
      kind: 'uniswap-v3',
      address,
      fee,
      held: sameAddress(token0, quote) ? balance0 : balance1,
    }));
    const pair = pairs[index];
    if (pair) {
      const { address, token0, reserve0, reserve1 } = pair;
      const held = sameAddress(token0, quote) ? reserve0 : reserve1;
      venues.push({ kind: 'uniswap-v2', address, fee: PAIR_FEE, held });
    }
    const [venue] = venues.sort((a, b) => (a.held < b.held ? 1 : -1));
    if (venue === undefined || venue.held < SHARE_OF_POOL) continue;
    return trade(chain, { venue, token, quote, spent: venue.held / SHARE_OF_POOL, blockNumber });
  }
  return {
    why: `there is no Uniswap v2 or v3 pool with money in it for this token and ${wrappedNative.symbol} or USDC on ${chain.name}`,
  };
}

async function trade(
  chain: EvmChain,
  asked: { venue: Venue; token: Address; quote: Address; spent: bigint; blockNumber: bigint },
): Promise<TokenTrade | { why: string }> {
  const { venue, token, quote, spent, blockNumber } = asked;
  // A random address, because a token that lets known testers through would reveal nothing.
  const probe = bytesToHex(randomBytes(20));
  const account = bytesToHex(randomBytes(20));
  const wrap = sameAddress(quote, evmChainFacts(chain.name).wrappedNative.address);
  const overrides: StateOverride = [
    { address: probe, code: PROBE_CODE, ...(wrap ? { balance: spent } : {}) },
  ];
  try {
    if (!wrap) {
      const slot = await balanceSlot(chain, quote, probe, blockNumber);
      if (slot === null) return { why: 'where USDC keeps its balances on this chain was not found' };
      const stateDiff = [{ slot, value: numberToHex(spent, { size: 32 }) }];
      overrides.push({ address: quote, stateDiff });
    }
    const { data } = await chain.client.call({
      account,
      to: probe,
      data: encodeFunctionData({
        abi: ABI,
        functionName: 'trade',
        args: [venue.address, venue.kind === 'uniswap-v2', token, quote, wrap, spent],
      }),
      blockNumber,
      stateOverride: overrides,
    });
    if (data === undefined) return { why: 'the node takes no pretended code' };
    const made = decodeFunctionResult({ abi: ABI, functionName: 'trade', data });
    const outcome = OUTCOMES[Number(made.stage)] ?? 'purchase_failed';
    return {
      pool: venue.address,
      poolKind: venue.kind,
      poolFee: venue.fee,
      quote,
      spent,
      outcome,
      reason: outcome === 'purchase_failed' || outcome === 'sale_failed' ? saidBy(made.reason) : null,
      buyTaxPercent: missingPercent(made.bought, made.arrived),
      sellTaxPercent: missingPercent(made.sold, made.soldArrived),
    };
  } catch (error) {
    if (error instanceof UpstreamUnavailable || !(error instanceof BaseError)) throw error;
    return { why: 'the node did not carry out the simulated trade' };
  }
}

/** The storage slot of a balance: each candidate slot gets its own number, and `balanceOf` returns one of them. */
async function balanceSlot(
  chain: EvmChain,
  token: Address,
  owner: Address,
  blockNumber: bigint,
): Promise<Hex | null> {
  const slots = Array.from({ length: SLOTS_TRIED }, (_, index) =>
    keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [owner, BigInt(index)])),
  );
  const stateDiff: StateMapping = slots.map((slot, index) => ({
    slot,
    value: numberToHex(index + 1, { size: 32 }),
  }));
  const { data } = await chain.client.call({
    to: token,
    data: encodeFunctionData({ abi: erc20Abi, functionName: 'balanceOf', args: [owner] }),
    blockNumber,
    stateOverride: [{ address: token, stateDiff }],
  });
  if (data === undefined) return null;
  return slots[Number(BigInt(data)) - 1] ?? null;
}

/**
 * A pool reports its own error code instead of the token's message.
 * https://docs.uniswap.org/contracts/v3/reference/error-codes
 */
function saidBy(data: Hex): string {
  const reason = revertReason(data);
  if (/TRANSFER_FAILED$/.test(reason)) return 'TRANSFER_FAILED: the token refused the transfer from the pool';
  if (reason === 'TF') return 'TF: the token refused the transfer from the pool';
  return reason === 'IIA' ? 'IIA: too little arrived at the pool' : reason;
}

/** With two decimals. */
function missingPercent(sent: bigint, arrived: bigint): number | null {
  if (sent === 0n) return null;
  return Math.max(0, Math.round(Number(((sent - arrived) * 1_000_000n) / sent) / 100) / 100);
}
