import { answered, type Described, REFUSED, refused } from '@farebox/core/http/operation';

const WALLET = { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' };
const AWAY = refused('The chain cannot be read at the moment.');
const NOT_NOW = refused('The transaction would fail, and the answer says why. Nothing was sent.');
const YIELD = 'Yield';
const STEP = { step: 1, action: 'approve', to: '0x…', data: '0x…', value: '0x0', gas: '0x11e5c' };

/** A route that takes nothing and tells something. */
function told(path: string, operationId: string, summary: string, example: object) {
  return {
    method: 'GET',
    path: `/api/yield/${path}`,
    operation: {
      operationId,
      tags: [YIELD],
      summary,
      security: [],
      responses: { 200: answered(summary, example), 503: AWAY },
    },
  } as const;
}

function parameter(name: string, description: string, schema: object, required = false) {
  return { name, in: 'query', required, description, schema };
}

/** The vault of USDC on Base. */
export const YIELD_OPERATIONS = {
  tags: { [YIELD]: 'A vault of USDC on Base: what it earns, and transactions to be signed.' },
  operations: [
    told('manifest', 'getYieldManifest', 'The vault: its rate, its fees, and how to use it', {
      currentAPY: 3.05,
      currentBest: 'compound',
    }),
    told('rates', 'getYieldRates', 'What the three protocols pay now, gross and net', {
      success: true,
      rates: { aave: { grossApyPercent: 3.5829, netApyPercent: 3.0455, status: 'live' } },
      currentBest: { protocol: 'compound', apyPercent: 4.0143 },
    }),
    told('stats', 'getYieldStats', 'What the vault holds, the price of a share, where the funds are', {
      success: true,
      stats: { tvlUsdc: '1000.000000', pricePerShare: '1.002000' },
    }),
    told('presets', 'getYieldPresets', 'Deposits of usual size', {
      success: true,
      presets: [{ usd: 100, netDepositUsd: '99.500000', depositTx: 'https://…' }],
    }),
    {
      method: 'GET',
      path: '/api/yield/deposit-tx',
      operation: {
        operationId: 'getYieldDepositTransactions',
        tags: [YIELD],
        summary: 'The transactions of a deposit, simulated, to be signed by the wallet',
        security: [],
        parameters: [
          parameter('recipient', 'The wallet that signs and gets the shares', WALLET, true),
          parameter('preset', 'In USD; or amount', { type: 'integer', enum: [10, 50, 100, 250, 1000] }),
          parameter('amount', 'In USD, with at most six places; or preset', {
            type: 'number',
            exclusiveMinimum: 0,
          }),
          parameter('mode', 'permit: one transaction, with a signature in place of the approval', {
            type: 'string',
            enum: ['standard', 'permit'],
            default: 'standard',
          }),
        ],
        responses: {
          200: answered('The steps, and what the wallet lacks', {
            success: true,
            amountUsdc: '100.000000',
            steps: [STEP],
            warnings: [],
          }),
          400: REFUSED,
          409: NOT_NOW,
          503: AWAY,
        },
      },
    },
    {
      method: 'GET',
      path: '/api/yield/redeem-tx',
      operation: {
        operationId: 'getYieldRedeemTransaction',
        tags: [YIELD],
        summary: 'The transaction that takes all shares out, simulated',
        security: [],
        parameters: [
          parameter('wallet', 'The holder', WALLET, true),
          parameter(
            'how',
            'all for USDC; what USDC can be had for now; all for what can be read; or the positions themselves',
            {
              type: 'string',
              enum: ['all', 'available', 'partly', 'in-kind', 'in-kind-partly'],
              default: 'all',
            },
          ),
        ],
        responses: {
          200: answered('The step', { success: true, steps: [{ ...STEP, action: 'redeem' }], warnings: [] }),
          400: REFUSED,
          409: NOT_NOW,
          503: AWAY,
        },
      },
    },
    {
      method: 'GET',
      path: '/api/yield/position/{wallet}',
      operation: {
        operationId: 'getYieldPosition',
        tags: [YIELD],
        summary: 'What a wallet holds in the vault, what it earned, and how it leaves',
        security: [],
        parameters: [{ name: 'wallet', in: 'path', required: true, schema: WALLET }],
        responses: {
          200: answered('The position', {
            success: true,
            position: { currentValueUsdc: '101.470000', netYieldUsdc: '1.970000' },
            redeem_hint: { to: '0x…', data: '0x…', value: '0x0', chainId: 8453 },
            next_action: [],
          }),
          400: REFUSED,
          503: AWAY,
        },
      },
    },
    told('contract', 'getYieldContract', 'Addresses, ABI and how the vault is called', {
      success: true,
      vault: { address: '0x…', standard: 'ERC-4626' },
    }),
    {
      method: 'GET',
      path: '/api/yield/history',
      operation: {
        operationId: 'getYieldHistory',
        tags: [YIELD],
        summary: 'Rates and holdings over time, and what the keeper moved',
        security: [],
        parameters: [
          parameter('days', 'How far back', { type: 'integer', minimum: 1, maximum: 365, default: 30 }),
        ],
        responses: {
          200: answered('The points and the moves, oldest first', {
            success: true,
            points: [{ at: '2026-01-01T00:00:00.000Z', pricePerShare: '1.000000' }],
            moves: [{ at: '2026-01-01T06:00:00.000Z', from: 'aave', to: 'compound', amountUsdc: '1.000000' }],
          }),
          400: REFUSED,
        },
      },
    },
  ],
  untold: [
    { path: '/yield', because: 'It is a page.' },
    { path: '/api/yield/source/*', because: 'It is the source of the contracts, as text.' },
  ],
} as const satisfies Described;
