import { declare, evmAddress, whole } from '@farebox/core/declared';
import { upstreamBaseUrlVariable } from '@farebox/core/words/upstream-variables';

const NODE = upstreamBaseUrlVariable('base');

export const EVM_YIELD = declare({
  name: 'evmYield',
  variables: {
    vault: {
      name: 'YIELD_VAULT_ADDRESS',
      describe: 'The USDC vault on Base that `/api/yield/` serves; without it these addresses answer 503',
      shape: evmAddress,
      fallback: null,
    },
    permitDeposit: {
      name: 'YIELD_PERMIT_DEPOSIT_ADDRESS',
      describe:
        'The contract that deposits into the vault with a permit; without it deposits take two transactions',
      shape: evmAddress,
      fallback: null,
    },
    vaultSinceBlock: {
      name: 'YIELD_VAULT_SINCE_BLOCK',
      describe: 'The block that the vault was deployed in: its history is read from there on',
      shape: whole(0, Number.MAX_SAFE_INTEGER),
      fallback: '0',
    },
  },
  problems: ({ vault, permitDeposit }, { other }) => [
    ...(vault === null && permitDeposit
      ? ['YIELD_PERMIT_DEPOSIT_ADDRESS: needs YIELD_VAULT_ADDRESS too']
      : []),
    ...(vault && other(NODE) === null ? [`${NODE}: the vault is read from there, so it cannot be none`] : []),
  ],
  money: ({ vault }, { other }) =>
    vault === null ? {} : { urls: [{ variable: NODE, url: String(other(NODE) ?? '') }] },
});
