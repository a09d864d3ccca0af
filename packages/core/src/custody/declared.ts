import { z } from 'zod';
import { declare, list } from '../declared.ts';
import { CUSTODY_PEOPLE } from './personal-data.ts';

export const CUSTODY = declare({
  name: 'custody',
  people: CUSTODY_PEOPLE,
  variables: {
    /** In hex: the first encrypts, all decrypt. */
    encryptionKeys: {
      name: 'WALLET_ENCRYPTION_KEY',
      describe:
        'Keys that managed wallets are encrypted under, 64 hex digits each, comma-separated: the first encrypts, all decrypt',
      shape: list(z.string().regex(/^[0-9a-fA-F]{64}$/, 'must be keys of 64 hex digits each')),
      fallback: '',
      secret: true,
    },
  },
});
