import type { Route } from '../config/proxy-config.ts';

export function priceOf({ sale }: Route, _: unknown): bigint {
  return sale.kind === 'fixed' ? sale.priceMicros : 0n;
}
