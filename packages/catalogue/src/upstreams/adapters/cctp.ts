import { z } from 'zod';
import { defineUpstream } from '../define.ts';

/** Fees in basis points, some of them with a fraction. */
const fees = z.array(
  z.looseObject({ finalityThreshold: z.number().int(), minimumFee: z.number().min(0).max(1_000) }),
);
const allowance = z.looseObject({ allowance: z.number().nonnegative() });

/** Circle's attestation service for its Cross-Chain Transfer Protocol, version 2. https://developers.circle.com/cctp */
export const cctp = defineUpstream({
  name: 'cctp',
  title: 'Circle CCTP',
  baseUrl: 'https://iris-api.circle.com',
  licence: 'Circle CCTP public API',
  terms: {
    commercialUse: 'unknown',
    note: null,
    attribution: null,
    url: 'https://developers.circle.com',
  },
  documentation: {
    at: 'https://developers.circle.com/cctp/concepts/fees',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 300,
  open: (http) => ({
    /**
     * The lowest fees of a burn in basis points, by finality threshold: 1000 is fast, 2000 final; null for an unknown
     * route.
     */
    async fees(fromDomain: number, toDomain: number) {
      const reply = await http.find({
        path: `/v2/burn/USDC/fees/${fromDomain}/${toDomain}`,
        schema: fees,
        absentOn: [400, 404],
        freshMs: 15_000,
        staleMs: 0,
      });
      const of = (threshold: number) =>
        reply.value?.find(({ finalityThreshold }) => finalityThreshold === threshold)?.minimumFee ?? null;
      return {
        ...reply,
        value: reply.value === null ? null : { fastBasisPoints: of(1_000), finalBasisPoints: of(2_000) },
      };
    },
    /** How much USDC may be burned fast at the moment, over all routes. */
    fastAllowance: () =>
      http.get({ path: '/v2/fastBurn/USDC/allowance', schema: allowance, freshMs: 15_000, staleMs: 0 }),
  }),
  probe: (api) => api.fees(6, 3),
});
