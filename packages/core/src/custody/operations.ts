import { answered, type Described, KEYED, REFUSED, refused } from '../http/operation.ts';

/** Of a managed wallet: who holds its secret, or a key of the account that paid. */
const OWNER = [{ WalletSecret: [] }, ...KEYED];
const WALLET_PARAMETER = {
  name: 'walletId',
  in: 'path',
  required: true,
  schema: { type: 'string', format: 'uuid' },
};
const WALLET_EXAMPLE = {
  success: true,
  walletId: '0b5f2c1e-…',
  addresses: [{ network: 'base', address: '0x…' }],
  status: 'active',
  custodyType: 'managed',
};

/** Wallets that are kept for agents. */
export const CUSTODY_OPERATIONS = {
  operations: [
    {
      method: 'GET',
      path: '/api/wallets/{walletId}',
      operation: {
        operationId: 'getWallet',
        tags: ['Free'],
        summary: 'The addresses and the state of a managed wallet',
        security: [],
        parameters: [WALLET_PARAMETER],
        responses: { 200: { $ref: '#/components/responses/Wallet' }, 404: REFUSED },
      },
    },
    {
      method: 'POST',
      path: '/api/wallets/{walletId}/export',
      operation: {
        operationId: 'exportWallet',
        tags: ['Free'],
        summary: 'The private keys of a managed wallet, for its owner',
        security: OWNER,
        parameters: [WALLET_PARAMETER],
        responses: {
          200: answered('The keys', {
            success: true,
            walletId: '0b5f2c1e-…',
            keys: [{ networks: ['base'], address: '0x…', privateKey: '0x…' }],
          }),
          401: REFUSED,
          403: refused('The credential is not that of the owner.'),
          404: REFUSED,
          410: refused('The wallet was deleted, and its key with it.'),
        },
      },
    },
    {
      method: 'DELETE',
      path: '/api/wallets/{walletId}',
      operation: {
        operationId: 'deleteWallet',
        tags: ['Free'],
        summary: 'Destroys the key of a managed wallet for good',
        security: OWNER,
        parameters: [WALLET_PARAMETER],
        responses: {
          200: { $ref: '#/components/responses/Wallet' },
          401: REFUSED,
          403: refused('The credential is not that of the owner.'),
          404: REFUSED,
        },
      },
    },
  ],
  responses: { Wallet: answered('The wallet, without its key', WALLET_EXAMPLE) },
  securitySchemes: { WalletSecret: { type: 'apiKey', in: 'header', name: 'X-Wallet-Secret' } },
} as const satisfies Described;
