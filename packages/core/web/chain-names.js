const NAMES = {
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

/** The name of a chain for people. @param {string} network CAIP-2 */
export function chainName(network) {
  return NAMES[network] ?? (network.startsWith('solana:') ? 'Solana' : network);
}
