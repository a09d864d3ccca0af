import { z } from 'zod';
import { declare } from '../declared.ts';

/** `0x` and 32 bytes, or 64 bytes in base58 or as a JSON list. */
const PRIVATE_KEY = /^(0x[0-9a-fA-F]{64}|[1-9A-HJ-NP-Za-km-z]{80,90}|\[[\d, ]{100,400}\])$/;

/** The configuration of `npm run signer`, a process of its own; the server has none of it. */
export const SIGNER = declare({
  name: 'signer',
  variables: {
    key: {
      name: 'SIGNER_KEY',
      describe:
        'The private key that it holds: `0x` and 64 hex digits, or for Solana base58 of 64 bytes or a JSON list of them',
      shape: z.string().regex(PRIVATE_KEY, 'must be a private key of an EVM chain or of Solana'),
      fallback: null,
      required: true,
      secret: true,
    },
    socket: {
      name: 'SIGNER_SOCKET',
      describe: 'Path of the Unix socket that it listens at',
      shape: z.string().regex(/^\/[\w./-]{1,100}$/, 'must be the whole path of a socket'),
      fallback: null,
      required: true,
    },
  },
});
