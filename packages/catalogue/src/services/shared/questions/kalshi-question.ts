import type { KalshiEvent, KalshiMarket } from '../../../upstreams/adapters/kalshi.ts';

/** A Kalshi market is a question and what "yes" means in it; both are needed to know the bet. */
export function kalshiQuestion(event: Pick<KalshiEvent, 'title'>, market: KalshiMarket): string {
  const question = market.title ?? event.title;
  const yes = market.yesSubTitle;
  return yes === null || /^yes$/i.test(yes) || question.toLowerCase().includes(yes.toLowerCase())
    ? question
    : `${question} ${yes}`;
}
