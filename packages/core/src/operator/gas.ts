import { formatUnits } from 'viem';
import type { RailStanding } from '../part.ts';
import type { GasStanding } from '../relayer/gas-tanks.ts';

/** A key that pays for transactions, for the operator's page: amounts as decimal numbers of whole tokens. */
export function gasAsJson({ token, balance, least, perDay, seenAtMs, unableSinceMs, ...rest }: GasStanding) {
  const whole = (amount: bigint | null) => (amount === null ? null : formatUnits(amount, token.decimals));
  const at = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  return {
    ...rest,
    token: token.symbol,
    balance: whole(balance),
    least: whole(least),
    spentPerDay: whole(perDay),
    seenAt: at(seenAtMs),
    unableSince: at(unableSinceMs),
  };
}

/** A chain that payments are taken on, for the operator's page. */
export function railAsJson({ sinceMs, ...rest }: RailStanding) {
  return { ...rest, since: sinceMs === null ? null : new Date(sinceMs).toISOString() };
}
