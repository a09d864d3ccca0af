/** The names of chains, wherever one is named. */
export const CHAINS = ['ethereum', 'base', 'polygon', 'arbitrum', 'optimism', 'bsc', 'solana'] as const;
export type ChainName = (typeof CHAINS)[number];
