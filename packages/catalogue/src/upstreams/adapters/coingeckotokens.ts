import { defineUpstream } from '../define.ts';
import { PLATFORMS } from './coingecko.ts';
import type { EvmChainName } from './evm-chains.ts';
import { readTokenList } from './token-list.ts';

const MAX_BYTES = 32 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

/** CoinGecko's token lists, one file a chain, with some thousands of tokens each. https://tokenlists.org/ */
export const coingeckotokens = defineUpstream({
  name: 'coingeckotokens',
  title: 'CoinGecko token lists',
  baseUrl: 'https://tokens.coingecko.com',
  licence: 'Token lists by CoinGecko; commercial use wants a paid plan',
  terms: {
    commercialUse: 'agreement',
    note: 'A licence for commercial use comes with a paid plan.',
    attribution: 'Data by CoinGecko',
    url: 'https://www.coingecko.com/en/api_terms',
  },
  key: 'none',
  requestsPerMinute: 30,
  open: (http) => ({
    /** The whole list of a chain. */
    ofChain: (chain: EvmChainName, signal?: AbortSignal) =>
      http.download({
        path: `/${PLATFORMS[chain]}/all.json`,
        maxBytes: MAX_BYTES,
        timeoutMs: TIMEOUT_MS,
        signal,
      }),
  }),
  probe: async (api) => readTokenList((await api.ofChain('base')).value.bytes),
});
