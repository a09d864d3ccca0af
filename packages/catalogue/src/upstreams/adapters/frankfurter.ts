import { z } from 'zod';
import { defineUpstream, type Reply } from '../define.ts';

const rates = z.array(
  z.looseObject({
    date: z.iso.date(),
    base: z.string(),
    quote: z.string(),
    rate: z.number().positive(),
  }),
);
/** Its statuses for a currency that it does not know. */
const UNKNOWN_CURRENCY = [404, 422];

export interface ReferenceRates {
  /** By currency and by UTC day (days since 1970): units of the currency for one unit of the base. */
  byQuote: ReadonlyMap<string, ReadonlyMap<number, number>>;
}

/** Reference rates of the European Central Bank, once each working day. https://frankfurter.dev/ */
export const frankfurter = defineUpstream({
  name: 'frankfurter',
  title: 'Frankfurter',
  baseUrl: 'https://api.frankfurter.dev',
  licence: 'European Central Bank reference rates by Frankfurter, source asked',
  terms: {
    commercialUse: 'allowed',
    note: null,
    attribution: 'European Central Bank, by Frankfurter',
    url: 'https://frankfurter.dev',
  },
  documentation: {
    at: 'https://github.com/lineofflight/frankfurter/blob/60541ad/lib/public/v2/openapi.json',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 60,
  open: (http) => ({
    /** Rates of one currency in others since a day; null when one of them has no reference rate. */
    async since(
      base: string,
      quotes: readonly string[],
      fromMs: number,
    ): Promise<Reply<ReferenceRates | null>> {
      const reply = await http.find({
        path: '/v2/rates',
        query: {
          base,
          quotes: quotes.join(','),
          from: new Date(fromMs).toISOString().slice(0, 10),
          providers: 'ecb',
        },
        schema: rates,
        absentOn: UNKNOWN_CURRENCY,
        freshMs: 3_600_000,
        staleMs: 3_600_000,
      });
      if (reply.value === null) return { ...reply, value: null };
      const byQuote = new Map<string, Map<number, number>>();
      let newest = '';
      for (const { date, quote, rate } of reply.value) {
        const days = byQuote.get(quote) ?? new Map<number, number>();
        days.set(Date.parse(date) / 86_400_000, rate);
        byQuote.set(quote, days);
        if (date > newest) newest = date;
      }
      return {
        value: { byQuote },
        source: { ...reply.source, asOf: newest === '' ? null : `${newest}T00:00:00.000Z` },
      };
    },
  }),
  probe: (api, nowMs) => api.since('EUR', ['USD'], nowMs - 7 * 86_400_000),
});
