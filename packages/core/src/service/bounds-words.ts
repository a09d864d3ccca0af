import type { Service } from './define.ts';

/** Sentences that tell what a key is given beside the price, each with a space before it; empty where that is nothing. */
export function boundsWords({ route }: Pick<Service, 'route'>): string {
  const bounds = route?.shown.bounds;
  if (bounds === undefined) return '';
  const { freeCallsPerDay: free, callsPerMinute, callsPerDay } = bounds;
  const quotas = [
    ...(callsPerMinute === null ? [] : [`${callsPerMinute} a minute`]),
    ...(callsPerDay === null ? [] : [`${callsPerDay} a day (UTC)`]),
  ];
  return [
    free === 0
      ? ''
      : ` ${free} ${free === 1 ? 'call' : 'calls'} a day (UTC) cost a key nothing, if credit on it was ever paid for.`,
    quotas.length === 0 ? '' : ` A key begins at most ${quotas.join(' and ')}.`,
  ].join('');
}
