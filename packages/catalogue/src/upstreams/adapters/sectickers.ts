import { z } from 'zod';
import { defineUpstream } from '../define.ts';

/** Ten thousand rows, so a row is checked only when it is asked for. */
const list = z.record(z.string(), z.unknown()).refine((rows) => Object.keys(rows).length > 0, 'is empty');
const row = z.looseObject({ cik_str: z.number().int().positive(), ticker: z.string(), title: z.string() });

const DAY_MS = 86_400_000;

/** The tickers of companies that report to the SEC. https://www.sec.gov/search-filings/edgar-application-programming-interfaces */
export const sectickers = defineUpstream({
  name: 'sectickers',
  title: 'SEC company tickers',
  baseUrl: 'https://www.sec.gov',
  licence: 'U.S. Securities and Exchange Commission, public domain',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: null,
    url: 'https://www.sec.gov/os/accessing-edgar-data',
  },
  key: 'none',
  requestsPerMinute: 30,
  burst: 1,
  patienceMs: 2_500,
  open: (http) => ({
    /** The company of a ticker in upper case; null when none reports under it. */
    async company(ticker: string) {
      const reply = await http.get({
        path: '/files/company_tickers.json',
        schema: list,
        freshMs: DAY_MS,
        staleMs: DAY_MS,
      });
      const found = Object.values(reply.value).find((one) => Object(one).ticker === ticker);
      const read = found === undefined ? null : row.parse(found);
      return { ...reply, value: read === null ? null : { cik: read.cik_str, name: read.title } };
    },
  }),
  probe: (api) => api.company('AAPL'),
});
