/** How far credit goes, counted from the prices of what is sold. */
import type { Service } from './define.ts';

const MICROS = 1_000_000;

/**
 * How many calls an amount buys at the median price of the services, and at the lowest, in words: "40 calls at $0.25, the
 * median price, or 200 at $0.05".
 *
 * @param amountUsd in whole dollars
 */
export function callsBought(amountUsd: number, services: readonly Pick<Service, 'priceUsd'>[]): string {
  const prices = services
    .map(({ priceUsd }) => Math.round(Number(priceUsd) * MICROS))
    .filter((micros) => micros > 0)
    .sort((a, b) => a - b);
  // Of an even number the dearer of the two in the middle: nobody gets fewer calls than they were told.
  const median = prices[Math.floor(prices.length / 2)];
  const lowest = prices[0];
  if (median === undefined || lowest === undefined) return 'nothing is for sale now';
  const atMedian = `${callsAt(median)} at ${usd(median)}, the median price`;
  return lowest === median ? atMedian : `${atMedian}, or ${callsAt(lowest, '')} at ${usd(lowest)}`;

  function callsAt(priceMicros: number, unit?: string): string {
    const calls = Math.floor((amountUsd * MICROS) / priceMicros);
    return `${calls.toLocaleString('en')}${unit ?? (calls === 1 ? ' call' : ' calls')}`;
  }
}

/** With two places, and more only where they are not zero. */
function usd(micros: number): string {
  return `$${(micros / MICROS).toFixed(6).replace(/0{1,4}$/, '')}`;
}
