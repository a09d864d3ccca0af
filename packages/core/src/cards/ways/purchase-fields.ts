import { z } from 'zod';
import { Problem } from '../../http/problem.ts';
import { DAILY_LIMITS, shownTiers } from '../../keys/credit-tiers.ts';
import { isNameable, NOT_NAMEABLE } from '../../words/name.ts';

/** The name of a key by its owner. */
export const keyLabel = z.string().trim().max(100).refine(isNameable, NOT_NAMEABLE);

/** The 400 for an amount that is no tier. */
export function invalidAmount(): Problem {
  const tiers = shownTiers();
  return new Problem(
    400,
    'INVALID_AMOUNT',
    `amountUsd must be one of the numbers ${tiers.map(({ amountUsd }) => amountUsd).join(', ')}.`,
    {
      details: {
        fields: [{ field: 'amountUsd', message: 'must be the amount of a tier' }],
        tiers,
        dailyLimits: DAILY_LIMITS,
        charged: false,
      },
    },
  );
}
