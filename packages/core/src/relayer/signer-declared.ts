import { z } from 'zod';
import { declare, privateKey } from '../declared.ts';

/** The configuration of `npm run signer`, a process of its own; the server has none of it. */
export const SIGNER = declare({
  name: 'signer',
  variables: {
    key: {
      name: 'SIGNER_KEY',
      describe: 'The private key that it holds',
      shape: privateKey,
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
