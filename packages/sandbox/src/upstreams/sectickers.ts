/** https://www.sec.gov/files/company_tickers.json: an object whose keys are the positions of the rows, from "0". */
import type { FastifyInstance } from 'fastify';
import { COMPANIES } from './companies.ts';

export function sectickers(app: FastifyInstance): void {
  app.get('/files/company_tickers.json', () =>
    Object.fromEntries(
      COMPANIES.map(({ cik, ticker, name }, index) => [String(index), { cik_str: cik, ticker, title: name }]),
    ),
  );
}
