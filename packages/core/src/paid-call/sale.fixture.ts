/** For tests: a sale that stands before its charge, with or without a name, and a store that does as it is told. */
import { z } from 'zod';
import { defineService } from '../service/define.ts';
import { answer } from '../words/answer.ts';
import type { CallToFinish, FinishOutcome, PricedCall, StoredAnswer } from './inside/call-steps.ts';
import type { CallStore } from './inside/calls.ts';
import type { Chains, OnChainPayment } from './rail.ts';
import type { Sale } from './sale.ts';

export const CALL: PricedCall = {
  id: '018f22e2-79b0-7cc0-98c4-dc0c0c07398f',
  accountId: 1_001n,
  bucket: 0,
  service: 'nickel',
  priceMicros: 50_000n,
  revenue: 'revenue_credits',
};

export const SERVICE = defineService({
  path: 'nickel',
  name: 'Nickel',
  tag: 'Discovery',
  priceUsd: '0.05',
  summary: '',
  input: z.object({}),
  output: z.object({ it: z.string() }),
  example: {},
  run: async () => answer({ it: 'is' }, { method: '' }),
});

/** @param how.identity what names the payment; null: its answer cannot be asked for again */
export function saleOf(how: { identity: string | null; onChain?: OnChainPayment; chains?: Chains }): Sale {
  const { identity, onChain = null, chains } = how;
  return {
    request: {
      service: SERVICE,
      headers: {},
      rawBody: undefined,
      address: '203.0.113.7',
      requestId: 'r-1',
      gone: () => false,
      assertMayBuy() {},
    },
    called: null,
    quote: { service: SERVICE, priceMicros: CALL.priceMicros, resourceUrl: 'http://localhost/x402/nickel' },
    rail: {
      name: onChain === null ? 'credits' : 'x402',
      offer: () => ({ headers: {}, accepts: [], body: {} }),
      recognizes: () => true,
      read: () => Promise.reject(new Error('it was read already')),
      ...(chains === undefined ? {} : { chains }),
    },
    report: {
      service: CALL.service,
      rail: 'credits',
      outcome: 'failed',
      status: 0,
      durationMs: 0,
      priceMicros: CALL.priceMicros,
      requestId: 'r-1',
      callId: CALL.id,
    },
    money: { fate: 'free' },
    rate: {},
    payment: {
      rail: onChain === null ? 'credits' : 'x402',
      accountId: CALL.accountId,
      bucket: 0,
      keyId: null,
      revenue: CALL.revenue,
      identity,
      onChain,
      claim: null,
      payer: 'fbx_live_1',
      proof: { by: 'account', accountId: CALL.accountId },
      limitBy: 'key:1',
      network: null,
      receipt: ({ transaction }) => ({ 'x-transaction': String(transaction) }),
    },
    input: {},
    claim: null,
    terms: undefined,
    isKept: identity !== null,
  };
}

/** A store whose every end has this outcome, and that keeps this answer. */
export function storeThat(
  ends: FinishOutcome | Error,
  kept: (StoredAnswer & { transaction: string | null }) | null = null,
): { calls: CallStore; finished: CallToFinish[] } {
  const finished: CallToFinish[] = [];
  const notAsked = () => Promise.reject(new Error('this is not asked here'));
  return {
    finished,
    calls: {
      begin: notAsked,
      keep: notAsked,
      look: notAsked,
      expired: notAsked,
      heldByEnded: notAsked,
      reservedMicros: notAsked,
      makeWeeks: notAsked,
      dropExpiredAnswers: notAsked,
      depth: 0,
      answerOf: () => Promise.resolve(kept),
      finish(call) {
        finished.push(call);
        return ends instanceof Error ? Promise.reject(ends) : Promise.resolve(ends);
      },
    },
  };
}
