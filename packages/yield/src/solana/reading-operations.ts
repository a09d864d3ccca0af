import { answered, type Described, REFUSED, refused } from '@farebox/core/http/operation';
import { TAG, WALLET } from './operations.ts';

const AWAY = refused('Solana cannot be read at the moment, or is not what this portal was made for.');
const READ_AT = { slot: 300_000_000, time: '2026-01-01T00:00:00.000Z' };

/** A route that tells something. */
function told(
  path: string,
  operationId: string,
  summary: string,
  { example, parameters = [] }: { example: object; parameters?: readonly object[] },
) {
  return {
    method: 'GET',
    path: `/api/solana-yield/${path}`,
    operation: {
      operationId,
      tags: [TAG],
      summary,
      security: [],
      ...(parameters.length === 0 ? {} : { parameters }),
      responses: {
        200: answered(summary, example),
        ...(parameters.length === 0 ? {} : { 400: REFUSED }),
        503: AWAY,
      },
    },
  } as const;
}

function inPath(name: string, schema: object) {
  return { name, in: 'path', required: true, schema };
}

/** The operations that read from the portal. */
export const READING_OPERATIONS = {
  operations: [
    told('manifest', 'getSolanaYieldManifest', 'How the portal is used, step by step, and what it earns', {
      example: { name: 'USDC yield on Solana', version: '1.0.0', currentAPY: { apyPct: 4.3712 } },
    }),
    told('rates', 'getSolanaYieldRates', 'What USDC earns on Solana now, beside the vault on Base', {
      example: {
        success: true,
        usdc: { apyPct: 4.3712, netApyPct: 3.7155 },
        comparison: { base: { netApyPct: 3.41 } },
        readAt: READ_AT,
      },
    }),
    told('stats', 'getSolanaYieldStats', 'What the reserve holds, lends and can pay out now', {
      example: {
        success: true,
        stats: { tvlUsdc: '587510686.266987', availableUsdc: '129639221.256987', utilizationPct: 77.9838 },
        readAt: READ_AT,
      },
    }),
    told(
      'position/{wallet}',
      'getSolanaYieldPosition',
      'What a wallet has, what it earned, what leaving now pays',
      {
        parameters: [inPath('wallet', WALLET)],
        example: {
          success: true,
          position: {
            depositedUsdc: '995.000000',
            currentValueUsdc: '997.797573',
            leavingNow: { receivesUsdc: '992.388951' },
          },
          next_action: [{ action: 'withdraw' }],
          readAt: READ_AT,
        },
      },
    ),
    told(
      'transaction/{signature}',
      'getSolanaYieldTransaction',
      'Whether the chain has a transaction confirmed',
      {
        parameters: [inPath('signature', { type: 'string', pattern: '^[1-9A-HJ-NP-Za-km-z]{64,88}$' })],
        example: { success: true, signature: '5…', status: 'confirmed', slot: 300_000_000, error: null },
      },
    ),
    told(
      'blockhash',
      'getSolanaYieldBlockhash',
      'A young blockhash, to be put into a transaction that is not signed yet',
      {
        example: { success: true, blockhash: '9…', last_valid_block_height: 278_000_150 },
      },
    ),
  ],
  untold: [{ path: '/yield', because: 'It is a page.' }],
} as const satisfies Described;
