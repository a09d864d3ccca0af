import { declare, evmKey, whole } from '@farebox/core/declared';
import { upstreamBaseUrlVariable } from '@farebox/core/words/upstream-variables';

const NODE = upstreamBaseUrlVariable('base');
const VAULT = 'YIELD_VAULT_ADDRESS';

export const YIELD_KEEPER = declare({
  name: 'yieldKeeper',
  variables: {
    /** Pays the gas. */
    key: {
      name: 'YIELD_KEEPER_KEY',
      describe:
        'Private key of the vault’s keeper, which moves its funds among the three protocols; it needs gas. Without it nothing is moved',
      shape: evmKey,
      fallback: null,
      secret: true,
    },
    minGainBps: {
      name: 'YIELD_KEEPER_MIN_GAIN_BPS',
      describe:
        'The least gain that a move must bring: by how much it raises the yearly rate of the moved funds, in hundredths of a percent',
      shape: whole(1, 10_000),
      fallback: '50',
    },
  },
  problems: ({ key }, { other }) =>
    key && other(VAULT) === null ? ['YIELD_KEEPER_KEY: is of no use without YIELD_VAULT_ADDRESS'] : [],
  money: ({ key }, { other }) =>
    key === null
      ? {}
      : {
          urls: [{ variable: NODE, url: String(other(NODE) ?? '') }],
          evmKeys: [{ variable: 'YIELD_KEEPER_KEY', keys: [key] }],
        },
});
