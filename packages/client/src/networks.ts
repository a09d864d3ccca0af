/** The chains that a wallet can pay on, by their names and as protocols name them. */
export const NETWORKS = {
  base: 'eip155:8453',
  solana: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  polygon: 'eip155:137',
  arbitrum: 'eip155:42161',
  ethereum: 'eip155:1',
  /** Tempo, where payment is by MPP alone. */
  tempo: 'eip155:4217',
} as const;
export type NetworkName = keyof typeof NETWORKS;

/** Tempo only where it is asked for: a transfer there costs a fee beside the price. */
export const USUAL_NETWORKS: readonly NetworkName[] = ['base', 'solana', 'polygon', 'arbitrum', 'ethereum'];
