import { defineUpstream } from '../define.ts';
import { readTokenList } from './token-list.ts';

const MAX_BYTES = 16 * 1024 * 1024;
const TIMEOUT_MS = 60_000;

/** The default token list of Uniswap Labs, for several chains in one file. https://github.com/Uniswap/default-token-list */
export const uniswaptokens = defineUpstream({
  name: 'uniswaptokens',
  title: 'Uniswap token list',
  baseUrl: 'https://tokens.uniswap.org',
  licence: 'Uniswap default token list, GPL-3.0: fetched by this server and not part of it',
  terms: {
    commercialUse: 'unknown',
    note: 'The repository of the list is under GPL-3.0. Answers tell balances of its tokens, not the list.',
    attribution: null,
    url: 'https://github.com/Uniswap/default-token-list',
  },
  key: 'none',
  requestsPerMinute: 10,
  open: (http) => ({
    /** The whole list. */
    all: (signal?: AbortSignal) =>
      http.download({ path: '/', maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS, signal }),
  }),
  probe: async (api) => readTokenList((await api.all()).value.bytes),
});
