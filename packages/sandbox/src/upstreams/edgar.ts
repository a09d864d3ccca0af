/** https://data.sec.gov/submissions: the filings of a company, newest first. Each field is an array with one place a filing. */
import type { FastifyInstance } from 'fastify';
import { COMPANIES } from './companies.ts';
import { keyOf, uniform } from './noise.ts';
import type { World } from './world.ts';

const DAY_MS = 86_400_000;
const DAYS = 400;
const FORMS = [
  { form: '4', title: 'FORM 4' },
  { form: '4', title: 'FORM 4' },
  { form: '8-K', title: '8-K' },
  { form: '144', title: 'PRIMARY DOCUMENT' },
  { form: '10-Q', title: '10-Q' },
  { form: 'SC 13G/A', title: 'SC 13G/A' },
];

export function edgar(app: FastifyInstance, { seed, nowMs }: World): void {
  app.get<{ Params: { file: string } }>('/submissions/:file', ({ params }, reply) => {
    const cik = Number(/^CIK(\d{10})\.json$/.exec(params.file)?.[1]);
    const company = COMPANIES.find((one) => one.cik === cik);
    if (company === undefined) {
      return reply
        .code(404)
        .type('application/xml')
        .send('<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>');
    }
    const key = keyOf(seed, `filings:${company.ticker}`);
    const today = Math.floor(nowMs() / DAY_MS);
    const filings = Array.from({ length: DAYS }, (_, back) => today - back)
      .filter((day) => (day + 3) % 7 < 5 && uniform(key, day) < 0.12)
      .map((day) => ({
        day,
        ...(FORMS[Math.floor(uniform(key ^ 1, day) * FORMS.length)] ?? { form: '4', title: '' }),
      }));
    return {
      cik: String(cik).padStart(10, '0'),
      entityType: 'operating',
      name: company.name,
      tickers: [company.ticker],
      filings: {
        recent: {
          accessionNumber: filings.map(
            ({ day }) => `${String(cik).padStart(10, '0')}-26-${String(day % 1_000_000).padStart(6, '0')}`,
          ),
          filingDate: filings.map(({ day }) => new Date(day * DAY_MS).toISOString().slice(0, 10)),
          form: filings.map(({ form }) => form),
          primaryDocument: filings.map(({ day }) => `sandbox-${day}.htm`),
          primaryDocDescription: filings.map(({ title }) => title),
        },
        files: [],
      },
    };
  });
}
