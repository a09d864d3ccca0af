/** Base, as far as we ask it. viem's own definition comes with those of all other chains: 18 MB of memory, and half a second of the start. */
import { defineChain } from 'viem';

/**
 * The chain that the vault is on. Multicall3 stands without the block in which the chain got it, so that calls work on a young chain
 * too. https://docs.base.org, https://github.com/mds1/multicall3
 */
export const BASE = defineChain({
  id: 8453,
  name: 'Base',
  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
  // It is asked at the address that the operator gives.
  rpcUrls: { default: { http: [] } },
  contracts: { multicall3: { address: '0xcA11bde05977b3631167028862bE2a173976CA11' } },
});
