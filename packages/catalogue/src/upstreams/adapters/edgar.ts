import { z } from 'zod';
import { defineUpstream } from '../define.ts';

const texts = z.array(z.string());
const submissions = z
  .looseObject({
    name: z.string(),
    filings: z.looseObject({
      recent: z.looseObject({
        accessionNumber: texts,
        filingDate: z.array(z.iso.date()),
        form: texts,
        primaryDocument: texts,
        primaryDocDescription: texts.optional(),
      }),
    }),
  })
  .transform(({ name, filings: { recent } }) => ({
    name,
    filings: recent.accessionNumber.slice(0, 40).map((accession, index) => ({
      accession,
      form: recent.form[index] ?? '',
      date: recent.filingDate[index] ?? '',
      document: recent.primaryDocument[index] ?? '',
      title: recent.primaryDocDescription?.[index] || null,
    })),
  }));

/** What companies have filed with the SEC. https://www.sec.gov/search-filings/edgar-application-programming-interfaces */
export const edgar = defineUpstream({
  name: 'edgar',
  title: 'SEC EDGAR',
  baseUrl: 'https://data.sec.gov',
  licence: 'U.S. Securities and Exchange Commission, public domain',
  terms: {
    commercialUse: 'allowed',
    note: 'U.S. government data in the public domain.',
    attribution: null,
    url: 'https://www.sec.gov/os/accessing-edgar-data',
  },
  key: 'none',
  // The SEC allows ten a second in all, of which two are left for the list of tickers.
  requestsPerMinute: 120,
  burst: 6,
  patienceMs: 1_000,
  open: (http) => ({
    /** The 40 newest filings of a company by its number, newest first; null when there is no such company. */
    filings: (cik: number) =>
      http.find({
        path: `/submissions/CIK${String(cik).padStart(10, '0')}.json`,
        schema: submissions,
        freshMs: 900_000,
        staleMs: 3_600_000,
      }),
  }),
  probe: (api) => api.filings(320_193),
});
