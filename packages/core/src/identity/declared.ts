import { declare, evmKey } from '../declared.ts';
import { upstreamBaseUrlVariable } from '../words/upstream-variables.ts';
import { IDENTITY_PEOPLE } from './personal-data.ts';

const NODE = upstreamBaseUrlVariable('base');

export const IDENTITY = declare({
  name: 'identity',
  people: IDENTITY_PEOPLE,
  variables: {
    /** Pays the gas. */
    registrarKey: {
      name: 'IDENTITY_REGISTRAR_KEY',
      describe: 'Private key that registers ERC-8004 identities on Base; it needs gas',
      shape: evmKey,
      fallback: null,
      secret: true,
    },
  },
  money: ({ registrarKey }, { other }) =>
    registrarKey === null
      ? {}
      : {
          urls: [{ variable: NODE, url: String(other(NODE) ?? '') }],
          evmKeys: [{ variable: 'IDENTITY_REGISTRAR_KEY', keys: [registrarKey] }],
        },
});
