/** What is left after buying yes on one venue and no on the other: one of the two pays 1 USD in the end. */

export interface Quotes {
  /** Best prices for yes in USD a contract, 0 to 1; null where nobody quotes. */
  yesBid: number | null;
  yesAsk: number | null;
}

/** A fee of rate x (p(1-p))^exponent a contract. */
export interface FeeCurve {
  rate: number;
  exponent: number;
}

export type Venue = 'polymarket' | 'kalshi';

export interface Direction {
  buyYesOn: Venue;
  buyNoOn: Venue;
  /** USD a contract. */
  yesAsk: number;
  noAsk: number;
  /** USD for one contract on each side; null when a fee is not known. */
  fees: number | null;
  /** 1 - (yesAsk + noAsk) - fees: what is left of the dollar. Null when a fee is not known. */
  edge: number | null;
}

/**
 * Kalshi's general taker fee for one contract: 0.07 x p x (1-p), rounded up to the cent.
 * https://kalshi.com/docs/kalshi-fee-schedule.pdf
 */
export function kalshiTakerFee(price: number): number {
  // The small subtraction keeps rounding errors from pushing a product that is a whole cent to the next cent.
  return Math.max(0, Math.ceil(0.07 * price * (1 - price) * 100 - 1e-9)) / 100;
}

/**
 * Polymarket's taker fee for one contract, by the market's own schedule, rounded up to its 0.00001 USD.
 * https://docs.polymarket.com/trading/fees
 */
export function polymarketTakerFee(price: number, curve: FeeCurve): number {
  return Math.max(0, Math.ceil(curve.rate * (price * (1 - price)) ** curve.exponent * 1e5 - 1e-9)) / 1e5;
}

/**
 * Both ways to hold yes on one venue and no on the other. On either venue a bid for yes at p is an offer of no at 1 -
 * p. A way that cannot be bought, because nobody quotes, is left out.
 *
 * @param polymarketFee null when the market takes a fee but does not say which
 */
export function directions(polymarket: Quotes, kalshi: Quotes, polymarketFee: FeeCurve | null): Direction[] {
  const ways: Direction[] = [];
  if (polymarket.yesAsk !== null && kalshi.yesBid !== null) {
    const noAsk = rounded(1 - kalshi.yesBid);
    ways.push(way('polymarket', 'kalshi', polymarket.yesAsk, noAsk, polymarket.yesAsk, noAsk, polymarketFee));
  }
  if (kalshi.yesAsk !== null && polymarket.yesBid !== null) {
    const noAsk = rounded(1 - polymarket.yesBid);
    ways.push(way('kalshi', 'polymarket', kalshi.yesAsk, noAsk, noAsk, kalshi.yesAsk, polymarketFee));
  }
  return ways;
}

function way(
  buyYesOn: Venue,
  buyNoOn: Venue,
  yesAsk: number,
  noAsk: number,
  paidOnPolymarket: number,
  paidOnKalshi: number,
  polymarketFee: FeeCurve | null,
): Direction {
  const fees =
    polymarketFee === null
      ? null
      : rounded(polymarketTakerFee(paidOnPolymarket, polymarketFee) + kalshiTakerFee(paidOnKalshi));
  return {
    buyYesOn,
    buyNoOn,
    yesAsk,
    noAsk,
    fees,
    edge: fees === null ? null : rounded(1 - yesAsk - noAsk - fees),
  };
}

/** The middle of the best quotes; null when one side is empty. */
export function midOf(quotes: Quotes): number | null {
  return quotes.yesBid === null || quotes.yesAsk === null
    ? null
    : rounded((quotes.yesBid + quotes.yesAsk) / 2);
}

/** To 0.00001 USD, the finest step that either venue knows. */
function rounded(usd: number): number {
  return Math.round(usd * 1e5) / 1e5;
}
