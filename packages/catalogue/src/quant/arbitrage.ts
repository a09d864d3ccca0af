/** Buying on one market what is sold on another at once: how much of it pays, and what is left of the difference. */

export interface Offer {
  /** USD for a unit, without fees. */
  priceUsd: number;
  /** Units. */
  size: number;
}

export interface Crossing {
  /** Units bought and sold. */
  size: number;
  /** What buying takes, without fees, and what selling brings. */
  costUsd: number;
  proceedsUsd: number;
  feesUsd: number;
  /** Proceeds less costs and fees; transactions are not in it. */
  profitUsd: number;
  /** Offers that it uses on either side. */
  buyLevels: number;
  sellLevels: number;
  /** `price`: more would lose; `depth`: a book that is known so far ended; `capital`. */
  limitedBy: 'price' | 'depth' | 'capital';
}

/**
 * Takes offers from both books while each further unit still gains after fees, up to a capital. Where not even the first unit
 * does, it is what the best offers give, so that a loss can be shown.
 *
 * @param asks what is offered where it is bought, cheapest first
 * @param bids what is wanted where it is sold, dearest first
 * @param fees taker fees as fractions of the value
 * @param capitalUsd the most that buying may take, fees included
 * @returns null when a side has no offer
 */
export function cross(
  asks: readonly Offer[],
  bids: readonly Offer[],
  fees: { buy: number; sell: number },
  capitalUsd: number,
): Crossing | null {
  const made: Crossing = {
    size: 0,
    costUsd: 0,
    proceedsUsd: 0,
    feesUsd: 0,
    profitUsd: 0,
    buyLevels: 0,
    sellLevels: 0,
    limitedBy: 'depth',
  };
  let [askAt, bidAt] = [0, 0];
  let [askLeft, bidLeft] = [asks[0]?.size ?? 0, bids[0]?.size ?? 0];
  let capital = capitalUsd;
  for (;;) {
    const [ask, bid] = [asks[askAt], bids[bidAt]];
    if (ask === undefined || bid === undefined) break;
    const unitCost = ask.priceUsd * (1 + fees.buy);
    const unitGain = bid.priceUsd * (1 - fees.sell) - unitCost;
    if (unitGain <= 0 && made.size > 0) {
      made.limitedBy = 'price';
      break;
    }
    const size = Math.min(askLeft, bidLeft, capital / unitCost);
    made.size += size;
    made.costUsd += size * ask.priceUsd;
    made.proceedsUsd += size * bid.priceUsd;
    made.feesUsd += size * (ask.priceUsd * fees.buy + bid.priceUsd * fees.sell);
    made.buyLevels = askAt + 1;
    made.sellLevels = bidAt + 1;
    capital -= size * unitCost;
    askLeft -= size;
    bidLeft -= size;
    if (capital <= 1e-9 * capitalUsd) {
      made.limitedBy = 'capital';
      break;
    }
    if (unitGain <= 0) {
      made.limitedBy = 'price';
      break;
    }
    if (askLeft <= 0) {
      askAt += 1;
      askLeft = asks[askAt]?.size ?? 0;
    }
    if (bidLeft <= 0) {
      bidAt += 1;
      bidLeft = bids[bidAt]?.size ?? 0;
    }
  }
  if (made.size === 0) return null;
  return { ...made, profitUsd: made.proceedsUsd - made.costUsd - made.feesUsd };
}

/**
 * Turns what whole amounts cost or bring into offers, one for each step between them.
 *
 * @param amounts sums of units and USD, from the smallest on
 */
export function offersOf(amounts: readonly { size: number; usd: number }[]): Offer[] {
  const offers: Offer[] = [];
  let before = { size: 0, usd: 0 };
  for (const amount of amounts) {
    const size = amount.size - before.size;
    const usd = amount.usd - before.usd;
    if (size <= 0 || usd <= 0) break;
    offers.push({ priceUsd: usd / size, size });
    before = amount;
  }
  return offers;
}
