/** What is left after buying yes on one venue and no on the other: one of the two pays 1 USD in the end. */

export interface Quotes {
  /** Best prices for yes in USD a contract, 0 to 1; null where nobody quotes. */
  yesBid: number | null;
  yesAsk: number | null;
}

export interface Book extends Quotes {
  /** Contracts that can be had at each of these prices; null where the venue does not say. */
  bidSize: number | null;
  askSize: number | null;
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
  /** How many can be had at these prices; null where a venue does not say. */
  contracts: number | null;
  /** USD a contract on each side, in one order of `contracts` (of one where they are not known); null when a fee is not known. */
  fees: number | null;
  /** 1 - (yesAsk + noAsk) - fees: what is left of the dollar. Null when a fee is not known. */
  edge: number | null;
}

/**
 * Kalshi's general taker fee for an order, in USD: 0.07 x contracts x p x (1-p), rounded up to the cent.
 * https://kalshi.com/docs/kalshi-fee-schedule.pdf
 */
export function kalshiTakerFee(price: number, contracts: number): number {
  // The small subtraction keeps rounding errors from pushing a product that is a whole cent to the next cent.
  return Math.max(0, Math.ceil(0.07 * contracts * price * (1 - price) * 100 - 1e-6)) / 100;
}

/**
 * Polymarket's taker fee for an order, in USD, by the market's own schedule, rounded up to its 0.00001 USD.
 * https://docs.polymarket.com/trading/fees
 */
export function polymarketTakerFee(price: number, curve: FeeCurve, contracts: number): number {
  const fee = contracts * curve.rate * (price * (1 - price)) ** curve.exponent;
  return Math.max(0, Math.ceil(fee * 1e5 - 1e-6)) / 1e5;
}

/**
 * Both ways to hold yes on one venue and no on the other. On either venue a bid for yes at p is an offer of no at 1 -
 * p. A way that cannot be bought, because nobody quotes, is left out.
 *
 * @param polymarketFee null when the market takes a fee but does not say which
 */
export function directions(polymarket: Book, kalshi: Book, polymarketFee: FeeCurve | null): Direction[] {
  const ways: Direction[] = [];
  if (polymarket.yesAsk !== null && kalshi.yesBid !== null) {
    const noAsk = rounded(1 - kalshi.yesBid);
    const contracts = fewer(polymarket.askSize, kalshi.bidSize);
    const fees = feesOf(polymarket.yesAsk, noAsk, polymarketFee, contracts);
    ways.push(way('polymarket', 'kalshi', polymarket.yesAsk, noAsk, contracts, fees));
  }
  if (kalshi.yesAsk !== null && polymarket.yesBid !== null) {
    const noAsk = rounded(1 - polymarket.yesBid);
    const contracts = fewer(kalshi.askSize, polymarket.bidSize);
    const fees = feesOf(noAsk, kalshi.yesAsk, polymarketFee, contracts);
    ways.push(way('kalshi', 'polymarket', kalshi.yesAsk, noAsk, contracts, fees));
  }
  return ways;
}

function fewer(forYes: number | null, forNo: number | null): number | null {
  return forYes === null || forNo === null ? null : Math.min(forYes, forNo);
}

/** A contract's part of the fees of one order on each venue, whose rounding up is spread over its contracts. */
function feesOf(
  onPolymarket: number,
  onKalshi: number,
  polymarketFee: FeeCurve | null,
  contracts: number | null,
): number | null {
  if (polymarketFee === null) return null;
  const ordered = Math.max(1, Math.floor(contracts ?? 1));
  const both = polymarketTakerFee(onPolymarket, polymarketFee, ordered) + kalshiTakerFee(onKalshi, ordered);
  return rounded(both / ordered);
}

function way(
  buyYesOn: Venue,
  buyNoOn: Venue,
  yesAsk: number,
  noAsk: number,
  contracts: number | null,
  fees: number | null,
): Direction {
  const edge = fees === null ? null : rounded(1 - yesAsk - noAsk - fees);
  return { buyYesOn, buyNoOn, yesAsk, noAsk, contracts, fees, edge };
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
