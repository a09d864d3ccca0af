import { answered, type Described, REFUSED } from '../../http/operation.ts';

export const WALLET = { type: 'string', pattern: '^[1-9A-HJ-NP-Za-km-z]{32,44}$' };
export const TAG = 'Solana Yield';

/** The yield portal on Solana: its transactions, and what became of them. */
export const PORTAL_OPERATIONS = {
  operations: [
    {
      method: 'GET',
      path: '/api/solana-yield/fee-refunds/{wallet}',
      operation: {
        operationId: 'getSolanaYieldFeeRefunds',
        tags: [TAG],
        summary: 'Fees that a wallet paid and that found no deposit, and what became of them',
        security: [],
        parameters: [{ name: 'wallet', in: 'path', required: true, schema: WALLET }],
        responses: {
          200: answered('The fees, the newest first', {
            success: true,
            dueUsdc: '5.000000',
            refunds: [{ feeTxSignature: '5…', amountUsdc: '5.000000', status: 'refund_due' }],
          }),
          400: REFUSED,
        },
      },
    },
  ],
} as const satisfies Described;
