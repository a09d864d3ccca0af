/** How pages show what programs read otherwise: times, parts of a hundred, chains, lists. */
import type { DayFigures } from '../service/figures.ts';
import type { DiscoveryContext } from './context.ts';
import { mppMethodsOf } from './pay-by-mpp.ts';

const SECOND_MS = 1_000;

/** "240 ms", "1.9 s". */
export function durationWords(ms: number): string {
  return ms < SECOND_MS ? `${Math.round(ms)} ms` : `${(ms / SECOND_MS).toFixed(1)} s`;
}

/** "99.8%". */
export function percentWords({ answeredPercent }: DayFigures): string {
  return `${answeredPercent}%`;
}

const CHAIN_NAMES: Readonly<Record<string, string>> = {
  'eip155:1': 'Ethereum',
  'eip155:8453': 'Base',
  'eip155:84532': 'Base Sepolia',
  'eip155:137': 'Polygon',
  'eip155:42161': 'Arbitrum',
  'eip155:10': 'Optimism',
  'eip155:56': 'BNB Chain',
  'eip155:4217': 'Tempo',
  'eip155:42431': 'Tempo Testnet',
};

/** The name of a chain for people. @param network CAIP-2 */
export function chainWords(network: string): string {
  return CHAIN_NAMES[network] ?? (network.startsWith('solana:') ? 'Solana' : network);
}

/** "A", "A and B", "A, B and C". */
function listWords(words: readonly string[]): string {
  const all = [...new Set(words)];
  const last = all.pop() ?? '';
  return all.length === 0 ? last : `${all.join(', ')} and ${last}`;
}

/** "USDC on Base and Solana"; null while nobody can pay so. */
export function x402Words({ rails }: DiscoveryContext): string | null {
  if (rails.x402 === null) return null;
  return `USDC on ${listWords(rails.x402.networks.map(({ network }) => chainWords(network)))}`;
}

/** "USDC.e on Tempo and USDC on Base"; null while nobody can pay so. */
export function mppWords(context: DiscoveryContext): string | null {
  if (context.rails.mpp === null) return null;
  return listWords(
    mppMethodsOf(context).map(
      ({ symbol, network }) => `${symbol ?? 'a stablecoin'} on ${chainWords(network)}`,
    ),
  );
}

/** "$0.25": two places, and more only where they are not zero. @param usd such as "0.25" */
export function dollars(usd: string): string {
  const [whole = '0', places = ''] = usd.split('.');
  return `$${whole}.${places.replace(/0+$/, '').padEnd(2, '0')}`;
}
