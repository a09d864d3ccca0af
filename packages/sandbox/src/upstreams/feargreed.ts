/** https://api.alternative.me/fng/: one value a day, here from the change of bitcoin's price in the 30 days before. */
import type { FastifyInstance } from 'fastify';
import { countOf, type Query } from './query.ts';
import type { World } from './world.ts';

const DAY_MS = 86_400_000;
const MONTH = 30;

export function feargreed(app: FastifyInstance, { market, nowMs }: World): void {
  app.get<{ Querystring: Query }>('/fng/', ({ query }) => {
    const today = Math.floor(nowMs() / DAY_MS);
    const bitcoin = market.coin('bitcoin');
    if (bitcoin === undefined) throw new Error('the market has no bitcoin');
    const data = Array.from({ length: countOf(query, 'limit', 1, 1, 365) }, (_, back) => {
      const at = (today - back) * DAY_MS;
      const change = Math.log(market.priceUsd(bitcoin, at) / market.priceUsd(bitcoin, at - MONTH * DAY_MS));
      const usual = market.volatility(bitcoin) * Math.sqrt(MONTH / 365);
      const value = Math.round(50 + 45 * Math.tanh(change / usual));
      return {
        value: String(value),
        value_classification: wordsOf(value),
        timestamp: String(at / 1_000),
        ...(back === 0
          ? { time_until_update: String(Math.floor(((today + 1) * DAY_MS - nowMs()) / 1_000)) }
          : {}),
      };
    });
    return { name: 'Fear and Greed Index', data, metadata: { error: null } };
  });
}

function wordsOf(value: number): string {
  if (value < 25) return 'Extreme Fear';
  if (value < 47) return 'Fear';
  if (value < 55) return 'Neutral';
  return value < 76 ? 'Greed' : 'Extreme Greed';
}
