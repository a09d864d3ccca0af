import { declare, whole } from '@farebox/core/declared';

export const FREE_READS = declare({
  name: 'freeReads',
  variables: {
    perMinute: {
      name: 'FREE_CHAIN_READS_PER_MINUTE',
      describe:
        'Free reads of a chain for callers of `/api/yield/` and `/api/solana-yield/` in a minute, per process and chain; one address gets a quarter. A read asks the node up to a dozen times',
      shape: whole(4, 100_000_000),
      fallback: '240',
    },
  },
});
