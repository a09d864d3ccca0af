import { openThread, ThreadError } from '@farebox/core/threads/thread';
import { sourceUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';
import type { PoolList } from './llama-pools.ts';

/** Enough to distinguish the list from an error page before it is cached. The rest is read in a thread. */
const bytes = z
  .instanceof(Uint8Array)
  .refine(
    (raw) =>
      /^\s*\{\s*"status"\s*:\s*"success"/.test(Buffer.from(raw.subarray(0, 64)).toString('latin1')) &&
      /\]\s*\}\s*$/.test(Buffer.from(raw.subarray(-16)).toString('latin1')),
    'is not a whole list of pools',
  );
const FRESH_MS = 600_000;
const REPLY_TIMEOUT_MS = 15_000;
const READ_TIMEOUT_MS = 10_000;
const MAX_REPLY_BYTES = 40 * 1024 * 1024;

/** DefiLlama's yields. The whole list comes in one piece, so it is read in a thread. https://api-docs.defillama.com/ */
export const llamayields = defineUpstream({
  name: 'llamayields',
  title: 'DefiLlama yields',
  baseUrl: 'https://yields.llama.fi',
  licence: 'DefiLlama, credit asked',
  terms: {
    commercialUse: 'allowed',
    note: null,
    attribution: 'DefiLlama',
    url: 'https://defillama.com/docs/api',
  },
  documentation: {
    at: 'https://github.com/DefiLlama/api-docs/blob/3a45e4e54/defillama-openapi-free.json',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 10,
  maxReplyBytes: MAX_REPLY_BYTES,
  open(http) {
    const thread = openThread<{ bytes: Uint8Array; chain: string }, PoolList>(
      new URL('./llama-pools-program.ts', import.meta.url),
      { timeoutMs: READ_TIMEOUT_MS, maxWaiting: 8, maxMemoryMb: 512 },
    );
    let read: { key: string; pools: Promise<PoolList> } | null = null;
    return {
      /**
       * All pools of a chain, by DefiLlama's name for it, such as `Solana`. They are at most ten minutes old, or twenty
       * while a new list is fetched.
       */
      async pools(chain: string): Promise<Reply<PoolList>> {
        const reply = await http.get({
          path: '/pools',
          schema: bytes,
          as: 'bytes',
          freshMs: FRESH_MS,
          staleMs: FRESH_MS,
          timeoutMs: REPLY_TIMEOUT_MS,
        });
        const key = `${chain} ${reply.source.retrievedAt}`;
        if (read?.key !== key) read = { key, pools: thread.run({ bytes: reply.value, chain }) };
        const reading = read;
        try {
          return { ...reply, value: await reading.pools };
        } catch (error) {
          if (read === reading) read = null;
          if (!(error instanceof ThreadError)) throw error;
          throw sourceUnavailable(
            'llamayields',
            error.trouble === 'failed' ? 'invalid_reply' : 'timeout',
            error.trouble === 'failed'
              ? 'DefiLlama yields: the reply does not have the documented shape'
              : 'DefiLlama yields: the reply could not be read in time',
            undefined,
            error,
          );
        }
      },
    };
  },
  async probe(api) {
    const { value } = await api.pools('Solana');
    if (value.pools.length === 0) throw new Error('lists no pool on Solana');
  },
});
