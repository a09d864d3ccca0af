/**
 * FHFA's index of house prices by state, as CSV without a header. Each state has a row for each quarter, which is published
 * eight weeks after the quarter's end.
 */
import type { FastifyInstance } from 'fastify';
import { keyOf, smooth, uniform } from './noise.ts';
import type { World } from './world.ts';

const STATES =
  'AK AL AR AZ CA CO CT DC DE FL GA HI IA ID IL IN KS KY LA MA MD ME MI MN MO MS MT NC ND NE NH NJ NM NV NY OH OK OR PA RI SC SD TN TX UT VA VT WA WI WV WY'.split(
    ' ',
  );
const FIRST_YEAR = 1975;
const LAG_MS = 56 * 86_400_000;

export function fhfa(app: FastifyInstance, { seed, nowMs }: World): void {
  app.get('/hpi/download/quarterly_datasets/hpi_at_state.csv', (_request, reply) => {
    const rows: string[] = [];
    for (const state of STATES) {
      const key = keyOf(seed, `house prices:${state}`);
      const growth = 0.008 + 0.005 * uniform(key, 0);
      for (let at = 0; Date.UTC(FIRST_YEAR, 3 * (at + 1)) + LAG_MS <= nowMs(); at++) {
        const index = 60 * Math.exp(growth * at + 0.05 * smooth(key, at / 12));
        rows.push(`${state},${FIRST_YEAR + Math.floor(at / 4)},${(at % 4) + 1},${index.toFixed(2)}`);
      }
    }
    return reply.type('text/csv').send(`${rows.join('\n')}\n`);
  });
}
