import { z } from 'zod';
import { declare, flag } from '../declared.ts';
import { usdToMicros } from '../ledger/money.ts';
import { KEY_BOOKS } from './books-rules.ts';
import { KEY_PEOPLE } from './personal-data.ts';

/** An amount in USD, in micro-USD; null for `none`: there is no such bound. */
export const usdOrNone = z.string().transform((value, context) => {
  if (value === 'none') return null;
  try {
    const micros = usdToMicros(value);
    if (micros >= 0n) return micros;
  } catch {
    // said below
  }
  context.addIssue({ code: 'custom', message: 'must be an amount in USD, or none' });
  return z.NEVER;
});

export const KEYS = declare({
  name: 'keys',
  books: KEY_BOOKS,
  people: KEY_PEOPLE,
  variables: {
    trialAllowInternal: {
      name: 'TRIAL_ALLOW_INTERNAL',
      describe: 'Whether callers from internal addresses may take a trial',
      shape: flag,
      fallback: 'false',
    },
    /** Null: there is no such bound. */
    trialBudgetMicrosPerDay: {
      name: 'TRIAL_BUDGET_USD_PER_DAY',
      describe:
        'Most credit for trials in a day (UTC), over all replicas, coming evenly over it; `none`: no limit. `npm start` sets `none`',
      shape: usdOrNone,
      fallback: '100',
    },
  },
  problems: ({ trialAllowInternal }, { production }) =>
    production && trialAllowInternal === true ? ['TRIAL_ALLOW_INTERNAL: must not be true in production'] : [],
});
