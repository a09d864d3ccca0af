/**
 * Amounts of tokens, by one rule in every service: `amount` counts whole tokens ("1.5"), `amountRaw` the smallest unit
 * ("1500000"). Which of the two is meant is never guessed from how a number is written.
 */
import { z } from 'zod';

const asText = (value: unknown) => (typeof value === 'number' ? String(value) : value);

/** What `amount` may look like. */
const HUMAN_AMOUNT = /^\d{1,78}(\.\d{1,36})?$/;

/** Whole tokens. */
export const amount = z
  .preprocess(asText, z.string().trim().regex(HUMAN_AMOUNT, 'must be a number of tokens, such as "1.5"'))
  .describe('In whole tokens: "1" and "1.0" are the same');

/** The smallest unit. */
export const amountRaw = z
  .preprocess(
    (value) => (typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value),
    z
      .string()
      .trim()
      .regex(/^\d{1,78}$/, 'must be a whole number of the smallest unit'),
  )
  .describe('In the smallest unit, instead of amount');
