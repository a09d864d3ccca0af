import { chainName, tokenAddress } from '@farebox/core/service/fields';
import type { ChainName } from '@farebox/core/words/chain-names';
import type { Pair } from '../../../upstreams/adapters/candle.ts';

/** Something with a price: a pair that exchanges list, or a token by its address. */
export type Asset =
  | { kind: 'pair'; label: string; pair: Pair }
  | { kind: 'token'; label: string; chain: ChainName; address: string };

/** What callers may write, for descriptions and refusals. */
export const ASSET_FORMS = 'a ticker (BTC), a pair (ETH/USDT) or chain:address (base:0x…)';

const PAIR = /^([A-Z0-9]{1,15})[/_:-]([A-Z0-9]{2,6})$/;
/** Text that begins like an address but is none was meant as an address. */
const TICKER = /^(?!0X)[A-Z0-9]{1,15}$/;
/** Pairs written as one word. The base must be long enough that stablecoins such as TUSD or PYUSD stay whole. */
const JOINED = /^([A-Z0-9]{2,11})(USDT|USDC)$|^([A-Z0-9]{3,11})(USD)$/;

/**
 * Reads the name of an asset as callers write it. A ticker alone is meant against the dollar.
 *
 * @param chain where an address without a chain of its own lives
 * @returns null when it is none of the forms, or an address whose chain is not known
 */
export function parseAsset(written: string, chain?: ChainName): Asset | null {
  const label = written.trim();
  const colon = label.indexOf(':');
  const prefix = chainName.safeParse(label.slice(0, Math.max(0, colon)));
  const address = tokenAddress.safeParse(prefix.success ? label.slice(colon + 1) : label);
  if (address.success) {
    const isEvm = address.data.startsWith('0x');
    const home = prefix.success ? prefix.data : isEvm ? chain : 'solana';
    if (home === undefined || (home === 'solana') === isEvm) return null;
    return { kind: 'token', label, chain: home, address: address.data };
  }
  const upper = label.toUpperCase();
  const [, base, quote] = PAIR.exec(upper) ?? [];
  if (base !== undefined && quote !== undefined) return pairOf(label, base, quote);
  const [, stableBase, stable, dollarBase, dollar] = JOINED.exec(upper) ?? [];
  if (stableBase !== undefined && stable !== undefined) return pairOf(label, stableBase, stable);
  if (dollarBase !== undefined && dollar !== undefined) return pairOf(label, dollarBase, dollar);
  return TICKER.test(upper) ? pairOf(label, upper, 'USD') : null;
}

/** Equal for two spellings of the same asset. */
export function assetKey(asset: Asset): string {
  if (asset.kind === 'pair') return `${asset.pair.base}/${asset.pair.quote}`;
  return `${asset.chain}:${asset.chain === 'solana' ? asset.address : asset.address.toLowerCase()}`;
}

function pairOf(label: string, base: string, quote: string): Asset | null {
  return base === quote ? null : { kind: 'pair', label, pair: { base, quote } };
}
