import { answered, type Described, REFUSED } from '../../http/operation.ts';

/** What became of payments on chains. */
export const RECEIPT_OPERATIONS = {
  operations: [
    {
      method: 'GET',
      path: '/x402/receipts/{id}',
      operation: {
        operationId: 'getReceipt',
        tags: ['Free'],
        summary: 'What became of a payment on a chain',
        security: [],
        parameters: [
          {
            name: 'id',
            in: 'path',
            required: true,
            description:
              'X-Call-Id of the answer, the id that an error named, or the transaction of a payment: then the payer signs in with SIGN-IN-WITH-X',
            schema: { type: 'string' },
          },
        ],
        responses: {
          200: answered(
            'The receipt',
            {
              id: '01a1fe1f-…',
              service: 'ping',
              status: 'delivered',
              transaction: '0x…',
              final: false,
            },
            {
              type: 'object',
              properties: {
                id: { type: 'string' },
                service: { type: 'string' },
                status: {
                  enum: [
                    ...['settling', 'delivered', 'not_charged', 'paid_not_delivered'],
                    ...['refund_owed', 'refunded', 'lost'],
                  ],
                },
                transaction: { type: ['string', 'null'] },
                final: { type: 'boolean', description: 'Deep enough in the chain to stay' },
              },
            },
          ),
          401: REFUSED,
          404: REFUSED,
        },
      },
    },
  ],
} as const satisfies Described;
