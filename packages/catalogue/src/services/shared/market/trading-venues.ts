/** Markets on which one asset is traded at the same time: order books of exchanges, and Uniswap on chains. */

import type { Source } from '@farebox/core/words/answer';
import { UpstreamUnavailable } from '@farebox/core/words/failure';
import { type Address, parseUnits } from 'viem';
import { type Offer, offersOf } from '../../../quant/arbitrage.ts';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import {
  type EvmChainName,
  evmChainFacts,
  type ListedToken,
} from '../../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import { quoteSwaps } from '../chain/chain-quotes.ts';
import { readTokens } from '../chain/chain-token.ts';
import { headOf, isNotConfigured } from '../wallet/wallet-chains.ts';
import { currentFees, estimateFee, unsigned } from '../wallet/wallet-transaction.ts';

export interface Venue {
  name: string;
  /** Null for an exchange, which is on no chain. */
  chain: EvmChainName | null;
  /** What stands for the asset there. */
  instrument: string;
  asks: Offer[];
  bids: Offer[];
  /** Taker fee as a fraction; 0 if the quotes include it. */
  fee: number;
  /** The transaction fee of one swap; 0 on exchanges, null when it is unknown. */
  gasUsd: number | null;
  sources: Source[];
  notes: string[];
}

const EXCHANGES = [
  { name: 'binance', title: 'Binance', quote: 'USDT' },
  { name: 'kraken', title: 'Kraken', quote: 'USD' },
  { name: 'coinbase', title: 'Coinbase Exchange', quote: 'USD' },
] as const;
export type ExchangeName = (typeof EXCHANGES)[number]['name'];

/**
 * Taker fees of the first tier in percent, unless the caller states their own; larger traders pay less. Read on
 * 2026-11-22: Binance and Coinbase in comparisons of 2026, Kraken in replies of its own AssetPairs (`fees`, 0.35 from
 * 10,000 USD on). They are not fetched again: the answer states which fees it used.
 */
export const TAKER_FEES_PERCENT: Readonly<Record<ExchangeName, number>> = {
  binance: 0.1,
  kraken: 0.4,
  coinbase: 0.6,
};

/** What dollar stablecoins are worth; null where nobody says. */
export interface Dollars {
  USD: number;
  USDT: number | null;
  USDC: number | null;
}

/** An exchange's book in USD; a reason in words where there is none. */
export async function exchangeVenue(
  name: ExchangeName,
  asset: string,
  feePercent: number,
  dollars: Dollars,
  exchanges: Pick<Upstreams, ExchangeName>,
): Promise<Venue | string> {
  const exchange = EXCHANGES.find((one) => one.name === name);
  if (exchange === undefined) throw new Error(`no exchange ${name}`);
  const { title, quote } = exchange;
  const rate = dollars[quote];
  if (rate === null) return `${title} trades in ${quote}, whose price in USD is not known`;
  try {
    const { value, source } = await exchanges[name].orderBook({ base: asset, quote });
    if (value === null) return `${title} does not list ${asset}/${quote}`;
    if (value.asks.length === 0 || value.bids.length === 0)
      return `${title} has no offers for ${asset}/${quote}`;
    const inUsd = ({ price, size }: { price: number; size: number }): Offer => ({
      priceUsd: price * rate,
      size,
    });
    return {
      name: title,
      chain: null,
      instrument: `${asset}/${quote}`,
      asks: value.asks.map(inUsd),
      bids: value.bids.map(inUsd),
      fee: feePercent / 100,
      gasUsd: 0,
      sources: [{ ...source, asOf: source.retrievedAt }],
      notes: [],
    };
  } catch (error) {
    if (error instanceof UpstreamUnavailable) return `${title} did not answer (${error.reason})`;
    throw error;
  }
}

/** The fractions of the capital for which Uniswap is quoted, so that its depth is known. */
const LADDER = [0.02, 0.1, 0.25, 0.5, 1];
/** As many bytes as a swap through the router has, for the part of the fee that goes by size. */
const SWAP_DATA: `0x${string}` = `0x${'5a'.repeat(292)}`;
/** What a router adds to the gas that the quoter counts. */
const ROUTER_GAS = 60_000n;
const PLAIN_GAS = 21_000n;
const NOBODY: Address = '0x000000000000000000000000000000000000dEaD';

/**
 * Uniswap v3 on a chain against USDC, for sums up to a capital; a reason in words where there is none, and null where the
 * chain is not configured or has no such token.
 *
 * @param priceUsd about what the asset costs, for choosing amounts
 */
export async function dexVenue(
  name: EvmChainName,
  asset: string,
  capitalUsd: number,
  priceUsd: number,
  dollars: Dollars,
  upstreams: Pick<Upstreams, EvmChainName | 'defillama'>,
  nowMs: number,
): Promise<Venue | string | null> {
  const token = tokenFor(name, asset);
  if (token === null) return null;
  const title = `Uniswap v3 on ${evmChainFacts(name).title}`;
  if (dollars.USDC === null) return `${title} trades in USDC, whose price in USD is not known`;
  try {
    const head = await headOf(upstreams[name]);
    const { chain, blockNumber } = head;
    const facts = await readTokens(chain, [token.address, chain.usdc], blockNumber);
    const decimals = facts.get(token.address.toLowerCase())?.decimals ?? null;
    const usdcDecimals = facts.get(chain.usdc.toLowerCase())?.decimals ?? null;
    if (decimals === null || usdcDecimals === null)
      return `${title}: ${token.symbol} does not tell its decimals`;
    const { asks, bids, gas } = await ladder(
      chain,
      token.address,
      decimals,
      usdcDecimals,
      capitalUsd,
      priceUsd,
      dollars.USDC,
      blockNumber,
    );
    if (asks.length === 0 || bids.length === 0)
      return `${title} has no pool of ${token.symbol} and USDC with such depth`;
    const fees = await currentFees(chain);
    const { unsignedSerialized } = unsigned(
      chain,
      { from: NOBODY, to: chain.usdc, value: 0n, data: SWAP_DATA },
      0,
      gas,
      fees,
    );
    const fee = await estimateFee(head, { gas, serialized: unsignedSerialized, fees }, upstreams, nowMs);
    return {
      name: title,
      chain: name,
      instrument: `${token.symbol}/USDC`,
      asks,
      bids,
      // The pool's own fee is in its quotes.
      fee: 0,
      gasUsd: fee.feeUsd,
      sources: [head.source, ...fee.sources],
      notes: [
        ...(isSame(name, token, asset)
          ? []
          : [
              `${token.symbol} on ${name} stands for ${asset}: it is worth as much only while its issuer redeems it.`,
            ]),
        ...fee.notes.map((note) => `${title}: ${note}`),
      ],
    };
  } catch (error) {
    if (isNotConfigured(error)) return null;
    if (error instanceof UpstreamUnavailable) return `${title} did not answer (${error.reason})`;
    throw error;
  }
}

async function ladder(
  chain: EvmChain,
  token: Address,
  decimals: number,
  usdcDecimals: number,
  capitalUsd: number,
  priceUsd: number,
  usdcUsd: number,
  blockNumber: bigint,
): Promise<{ asks: Offer[]; bids: Offer[]; gas: bigint }> {
  const amount = (value: number, places: number) => parseUnits(value.toFixed(Math.min(places, 12)), places);
  const dollarsIn = LADDER.map((part) => amount((capitalUsd * part) / usdcUsd, usdcDecimals));
  const unitsIn = LADDER.map((part) => amount((capitalUsd * part) / priceUsd, decimals));
  const outcomes = await quoteSwaps(
    chain,
    [
      ...dollarsIn.map((amountIn) => ({ from: chain.usdc, to: token, amountIn })),
      ...unitsIn.map((amountIn) => ({ from: token, to: chain.usdc, amountIn })),
    ],
    blockNumber,
  );
  const whole = (value: bigint, places: number) => Number(value) / 10 ** places;
  let gas = 0n;
  const read = (
    amounts: readonly bigint[],
    offset: number,
    of: (amountIn: bigint, amountOut: bigint) => { size: number; usd: number },
  ) =>
    offersOf(
      amounts.flatMap((amountIn, index) => {
        const outcome = outcomes[offset + index];
        if (typeof outcome !== 'object') return [];
        const total = outcome.gasEstimate + ROUTER_GAS + PLAIN_GAS;
        if (total > gas) gas = total;
        return [of(amountIn, outcome.amountOut)];
      }),
    );
  const asks = read(dollarsIn, 0, (amountIn, amountOut) => ({
    size: whole(amountOut, decimals),
    usd: whole(amountIn, usdcDecimals) * usdcUsd,
  }));
  const bids = read(unitsIn, LADDER.length, (amountIn, amountOut) => ({
    size: whole(amountIn, decimals),
    usd: whole(amountOut, usdcDecimals) * usdcUsd,
  }));
  return { asks, bids, gas };
}

/** The token that stands for an asset on a chain; null where none is listed. */
function tokenFor(name: EvmChainName, asset: string): ListedToken | null {
  const { tokens, wrappedNative, nativeSymbol } = evmChainFacts(name);
  if (nativeSymbol === asset) return wrappedNative;
  const names = [asset, `W${asset}`, `cb${asset}`, `${asset}B`];
  return (
    names
      .map((symbol) => tokens.find((token) => token.symbol === symbol))
      .find((token) => token !== undefined) ?? null
  );
}

function isSame(name: EvmChainName, token: ListedToken, asset: string): boolean {
  return token.symbol === asset || evmChainFacts(name).nativeSymbol === asset;
}
