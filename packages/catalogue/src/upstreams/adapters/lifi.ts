import { z } from 'zod';
import { defineUpstream } from '../define.ts';
import { optionalWireNumber } from '../wire-number.ts';

const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/);
const whole = z
  .string()
  .regex(/^\d{1,78}$/)
  .transform(BigInt);
const hexNumber = z
  .string()
  .regex(/^0x[0-9a-fA-F]{1,64}$/)
  .transform(BigInt);
const token = z.looseObject({ address, symbol: z.string(), decimals: z.number().int().min(0).max(36) });

const quote = z.looseObject({
  id: z.string(),
  type: z.string(),
  tool: z.string(),
  action: z.looseObject({
    fromChainId: z.number().int(),
    toChainId: z.number().int(),
    fromToken: token,
    toToken: token,
    fromAmount: whole,
    fromAddress: address,
    toAddress: address,
    slippage: z.number().min(0).max(1),
  }),
  estimate: z.looseObject({
    fromAmount: whole,
    toAmount: whole,
    toAmountMin: whole,
    approvalAddress: address,
    executionDuration: z.number().nonnegative(),
    fromAmountUSD: optionalWireNumber,
    toAmountUSD: optionalWireNumber,
    gasCosts: z.array(z.looseObject({ amountUSD: optionalWireNumber })).nullish(),
  }),
  transactionRequest: z.looseObject({
    from: address,
    to: address,
    chainId: z.number().int(),
    data: z
      .string()
      .regex(/^0x([0-9a-fA-F]{2})*$/)
      .max(400_000),
    value: hexNumber,
    gasLimit: hexNumber.nullish(),
  }),
});
export type LifiQuote = z.output<typeof quote>;

export interface LifiRequest {
  fromChainId: number;
  toChainId: number;
  fromToken: string;
  toToken: string;
  fromAmount: bigint;
  fromAddress: string;
  toAddress: string;
  /** As a fraction. */
  slippage: number;
}

/**
 * LI.FI, which finds a bridge and builds the transaction. The transaction is checked before it is passed on.
 * https://docs.li.fi/
 */
export const lifi = defineUpstream({
  name: 'lifi',
  title: 'LI.FI',
  baseUrl: 'https://li.quest/v1',
  licence: 'LI.FI API terms',
  terms: {
    commercialUse: 'unknown',
    note: null,
    attribution: null,
    url: 'https://docs.li.fi',
  },
  documentation: {
    at: 'https://docs.li.fi/api-reference/rate-limits',
    readOn: '2026-11-29',
  },
  key: 'optional',
  keyFrom: 'https://portal.li.fi',
  authorize: (apiKey) => ({ headers: { 'x-lifi-api-key': apiKey } }),
  settings: {
    UPSTREAM_LIFI_REQUESTS_PER_MINUTE: {
      describe:
        'How often LI.FI may be asked for a quote in a minute: 0.6 (75 in two hours) without a key, 100 with one',
      required: false,
    },
  },
  requestsPerMinute: 0.6,
  // With what comes back in two hours these are the 75 that it allows.
  burst: 3,
  patienceMs: 1_000,
  timeoutMs: 15_000,
  open: (http) => ({
    /**
     * A route with its transaction; null when there is none. Routes that call a contract at the destination are
     * excluded.
     */
    quote: (request: LifiRequest) =>
      http.find({
        path: '/quote',
        query: {
          fromChain: request.fromChainId,
          toChain: request.toChainId,
          fromToken: request.fromToken,
          toToken: request.toToken,
          fromAmount: request.fromAmount.toString(),
          fromAddress: request.fromAddress,
          toAddress: request.toAddress,
          slippage: request.slippage,
          allowDestinationCall: false,
        },
        schema: quote,
        freshMs: 2_000,
        staleMs: 0,
      }),
  }),
  probe: (api) =>
    api.quote({
      fromChainId: 8453,
      toChainId: 42161,
      fromToken: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      toToken: '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
      fromAmount: 10_000_000n,
      fromAddress: '0x552008c0f6870c2f77e5cC1d2eb9bdff03e30Ea0',
      toAddress: '0x552008c0f6870c2f77e5cC1d2eb9bdff03e30Ea0',
      slippage: 0.005,
    }),
});
