import { NETWORKS } from './networks.ts';

/** USDC on each network, with six places; on Tempo it is bridged. A wallet signs for nothing else, whatever is asked. */
export const USDC: Readonly<Record<string, string>> = {
  [NETWORKS.base]: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  [NETWORKS.ethereum]: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
  [NETWORKS.polygon]: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
  [NETWORKS.arbitrum]: '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
  [NETWORKS.solana]: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
  [NETWORKS.tempo]: '0x20C000000000000000000000b9537d11c60E8b50',
};

/** An address of an EVM chain is the same in any case, and none of Solana is. */
export function isUsdc(network: string, asset: string): boolean {
  const usdc = USDC[network];
  return network.startsWith('eip155:') ? usdc?.toLowerCase() === asset.toLowerCase() : usdc === asset;
}
