import { z } from 'zod';
import { defineUpstream } from '../define.ts';
import { wireNumber } from '../wire-number.ts';

const index = z
  .looseObject({
    data: z
      .array(
        z.looseObject({
          value: wireNumber.pipe(z.number().int().min(0).max(100)),
          // A word or two of the source's: no text that could say something.
          value_classification: z.string().regex(/^[A-Za-z ]{1,30}$/),
          timestamp: wireNumber,
        }),
      )
      .min(1),
    metadata: z.looseObject({ error: z.null() }).nullish(),
  })
  .transform(({ data }) =>
    data.map(({ value, value_classification, timestamp }) => ({
      value,
      words: value_classification,
      atMs: timestamp * 1_000,
    })),
  );

/** The Fear & Greed Index of the crypto market, a figure a day. https://alternative.me/crypto/fear-and-greed-index/ */
export const feargreed = defineUpstream({
  name: 'feargreed',
  title: 'Fear & Greed Index',
  baseUrl: 'https://api.alternative.me',
  licence: 'Fear & Greed Index by alternative.me',
  terms: {
    commercialUse: 'allowed',
    note: 'The credit stands next to the figure.',
    attribution: 'Fear & Greed Index by alternative.me',
    url: 'https://alternative.me/crypto/fear-and-greed-index/',
  },
  key: 'none',
  requestsPerMinute: 30,
  open: (http) => ({
    /** The last days, newest first: 0 is extreme fear, 100 extreme greed. */
    async days(count: number) {
      const reply = await http.get({
        path: '/fng/',
        query: { limit: count },
        schema: index,
        freshMs: 600_000,
        staleMs: 3_600_000,
      });
      const newest = reply.value[0];
      const asOf = newest === undefined ? null : new Date(newest.atMs).toISOString();
      return { ...reply, source: { ...reply.source, asOf } };
    },
  }),
  probe: (api) => api.days(1),
});
