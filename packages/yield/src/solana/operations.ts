import { answered, bodyOf, type Described, REFUSED, refused } from '@farebox/core/http/operation';

export const WALLET = { type: 'string', pattern: '^[1-9A-HJ-NP-Za-km-z]{32,44}$' };
const SIGNATURE = { type: 'string', pattern: '^[1-9A-HJ-NP-Za-km-z]{64,88}$' };
const UNITS = { type: 'string', pattern: '^\\d{1,16}$' };
const A_WALLET = 'DYw8jCTfwHNRJhhmFcbXvVDTqWMEVFBX6ZKUmG5CNSKK';
export const TAG = 'Solana Yield';
const AWAY = refused('Solana cannot be read at the moment, or the reserve is closed; the answer says which.');
const NOT_NOW = 'The transactions would fail, and the answer says why. Nothing was sent.';
const PRIORITY = {
  type: ['string', 'integer'],
  description:
    'How much is paid for landing soon: low, medium (unless given), high, or micro-lamports for a unit, up to 10000000',
};
const TRANSACTION = { step: 1, action: 'fee', base64: 'AQAA…', version: 0 };

/** Describes an operation that costs nothing. */
const free = (operationId: string, summary: string) =>
  ({ operationId, tags: [TAG], summary, security: [] }) as const;

/** The yield portal on Solana: its transactions, and what became of them. */
export const PORTAL_OPERATIONS = {
  tags: { [TAG]: 'USDC lent out on Solana: rates, positions, and transactions to be signed.' },
  operations: [
    {
      method: 'POST',
      path: '/api/solana-yield/deposit-tx',
      operation: {
        ...free(
          'buildSolanaYieldDeposit',
          'The transactions of a deposit, simulated, to be signed by the wallet',
        ),
        requestBody: bodyOf(
          {
            wallet: { ...WALLET, description: 'The wallet that signs, base58' },
            amount_usdc: { type: 'number', minimum: 5, description: 'Dollars, with at most six places' },
            amount_raw: { ...UNITS, description: 'Units of six places, from 5000000; overrides amount_usdc' },
            amount: {
              type: 'number',
              description: 'The older form: below 10000 dollars, from there on units. The others come first',
            },
            idempotency_key: { type: 'string', format: 'uuid', description: 'Your name for this deposit' },
            priority: PRIORITY,
          },
          ['wallet'],
          { wallet: A_WALLET, amount_usdc: 100 },
        ),
        responses: {
          200: answered('The bundle, and what the wallet lacks', {
            success: true,
            transactions: [TRANSACTION, { ...TRANSACTION, step: 2, action: 'deposit' }],
            bundle_expires_at: '2026-01-01T00:02:00.000Z',
            feeRaw: '500000',
            depositRaw: '99500000',
            warnings: [],
          }),
          400: REFUSED,
          409: refused(
            `A bundle was built for this key, wallet and amount in the last 120 s. Or: ${NOT_NOW}`,
          ),
          503: AWAY,
        },
      },
    },
    {
      method: 'POST',
      path: '/api/solana-yield/confirm',
      operation: {
        ...free('confirmSolanaYieldDeposit', 'Tells that a deposit was sent; it is verified on the chain'),
        requestBody: bodyOf(
          {
            wallet: WALLET,
            txSignature: {
              ...SIGNATURE,
              description: 'Of the transaction that deposits, the last of the bundle',
            },
            amountUsdcRaw: { ...UNITS, description: 'Compared with the chain’s amount, and never believed' },
          },
          ['wallet', 'txSignature'],
          { wallet: A_WALLET, txSignature: '5'.repeat(87) },
        ),
        responses: {
          200: answered('Confirmed, or kept until the chain can be asked', {
            success: true,
            onChainVerified: true,
            verificationStatus: 'confirmed',
            depositedUsdc: '99.500000',
          }),
          400: refused('No signature, or a transaction that failed or is no deposit of this portal.'),
          403: refused('The wallet is not a signer of the transaction.'),
          503: refused('Too many wait for the chain, or this server has no portal.'),
        },
      },
    },
    {
      method: 'POST',
      path: '/api/solana-yield/withdraw-tx',
      operation: {
        ...free('buildSolanaYieldWithdrawal', 'The transaction of a withdrawal, simulated, with its fees'),
        requestBody: bodyOf(
          {
            wallet: WALLET,
            amount_usdc: {
              type: 'number',
              exclusiveMinimum: 0,
              description: 'Dollars that the reserve pays, before fees',
            },
            amount_raw: { ...UNITS, description: 'The same in units of six places' },
            amount: { type: 'string', enum: ['MAX'], description: 'All of it' },
            priority: PRIORITY,
          },
          ['wallet'],
          { wallet: A_WALLET, amount: 'MAX' },
        ),
        responses: {
          200: answered(
            'The transaction, what it costs and what the wallet receives; available_usdc is the most that anybody can withdraw now',
            {
              success: true,
              transactions: [{ ...TRANSACTION, action: 'withdraw' }],
              fee_breakdown: {
                flat_fee_usdc: '4.988987',
                perf_fee_usdc: '0.419635',
                yield_earned_usdc: '2.797573',
                total_fee_usdc: '5.408622',
              },
              net_usdc: '992.388951',
              available_usdc: '129639200.000000',
            },
          ),
          400: REFUSED,
          409: refused(`There is nothing to withdraw, or less than that can be had now. ${NOT_NOW}`),
          503: AWAY,
        },
      },
    },
    {
      method: 'GET',
      path: '/api/solana-yield/fee-refunds/{wallet}',
      operation: {
        ...free('getSolanaYieldFeeRefunds', 'Fees that a wallet paid and that found no deposit'),
        parameters: [
          { name: 'wallet', in: 'path', required: true, schema: WALLET },
          {
            name: 'after',
            in: 'query',
            required: false,
            schema: SIGNATURE,
            description: 'The fee that the page before ended with; `next` has the whole address',
          },
        ],
        responses: {
          200: answered('The fees, the newest first', {
            success: true,
            dueUsdc: '5.000000',
            refunds: [{ feeTxSignature: '5…', amountUsdc: '5.000000', status: 'refund_due' }],
            next: null,
          }),
          400: REFUSED,
        },
      },
    },
  ],
} as const satisfies Described;
