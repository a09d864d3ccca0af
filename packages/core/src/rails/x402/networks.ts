/** The chains that x402 payments settle on: names in both versions of the protocol, and the USDC of each. */
import type { GasToken } from '../../relayer/gas-tanks.ts';
import type { EvmNetwork } from '../evm/network.ts';

/** Its `id` is its name in version 2 of the protocol. */
export interface NamedEvmNetwork extends EvmNetwork {
  kind: 'evm';
  /** As the interface writes it. */
  name: 'base' | 'ethereum' | 'polygon' | 'arbitrum';
  /** The name in version 1; null where clients of version 1 could not parse the offer. */
  legacyName: string | null;
  /** The currency that pays for transactions. */
  gasToken: GasToken;
}

export interface SolanaNetwork {
  kind: 'solana';
  name: 'solana';
  title: string;
  id: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
  legacyName: 'solana';
  asset: string;
  gasToken: GasToken;
}

export type Network = NamedEvmNetwork | SolanaNetwork;

const usdc = { name: 'USD Coin', version: '2' };
const ether = { symbol: 'ETH', decimals: 18 };

/** In order of preference: the first configured network is offered first. */
export const NETWORKS = [
  {
    kind: 'evm',
    name: 'base',
    title: 'Base mainnet',
    id: 'eip155:8453',
    legacyName: 'base',
    chainId: 8453,
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    gasToken: ether,
    domain: usdc,
    finalAfterBlocks: 30,
    transferConfirmations: 2,
  },
  {
    kind: 'evm',
    name: 'ethereum',
    title: 'Ethereum mainnet',
    id: 'eip155:1',
    legacyName: null,
    chainId: 1,
    asset: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
    gasToken: ether,
    domain: usdc,
    finalAfterBlocks: 64,
    transferConfirmations: 3,
  },
  {
    kind: 'evm',
    name: 'polygon',
    title: 'Polygon mainnet',
    id: 'eip155:137',
    legacyName: 'polygon',
    chainId: 137,
    asset: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
    gasToken: { symbol: 'POL', decimals: 18 },
    domain: usdc,
    finalAfterBlocks: 128,
    transferConfirmations: 5,
  },
  {
    kind: 'evm',
    name: 'arbitrum',
    title: 'Arbitrum One',
    id: 'eip155:42161',
    legacyName: null,
    chainId: 42161,
    asset: '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
    gasToken: ether,
    domain: usdc,
    finalAfterBlocks: 240,
    transferConfirmations: 5,
  },
  {
    kind: 'solana',
    name: 'solana',
    title: 'Solana mainnet',
    id: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
    legacyName: 'solana',
    asset: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    gasToken: { symbol: 'SOL', decimals: 9 },
  },
] as const satisfies readonly Network[];

export type NetworkName = (typeof NETWORKS)[number]['name'];
export const NETWORK_NAMES: readonly NetworkName[] = NETWORKS.map(({ name }) => name);

/**
 * The nodes of the chains that payments settle on; services read from the same nodes. Null for a chain that is not
 * configured.
 */
export function nodesOf(
  upstreams: Readonly<Record<NetworkName, { baseUrl: string | null }>>,
): Record<NetworkName, string | null> {
  const nodes = NETWORK_NAMES.map((name) => [name, upstreams[name].baseUrl] as const);
  return Object.fromEntries(nodes) as Record<NetworkName, string | null>;
}

/** Every asset above counts millionths of a dollar: its base unit is one micro-USD. */
export const ASSET_DECIMALS = 6;
