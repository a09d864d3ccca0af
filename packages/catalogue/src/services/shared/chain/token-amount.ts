/**
 * Amounts of tokens, by one rule in every service: `amount` counts whole tokens ("1.5"), and `amountRaw` counts the
 * smallest unit ("1500000"). Which one is meant is never guessed from how a number is written.
 */

import { noAnswer } from '@farebox/core/words/failure';
import { parseUnits } from 'viem';
import { z } from 'zod';

const asText = (value: unknown) => (typeof value === 'number' ? String(value) : value);

/** The form of `amount`. */
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

/** The most that may be moved at once: no token has as much, and twice this still fits into 256 bits. */
const MOST_WHOLE_DIGITS = 15;
const MOST_RAW_DIGITS = 33;
const moved = new RegExp(`^\\d{1,${MOST_WHOLE_DIGITS}}(\\.\\d{1,18})?$`);
const isSome = (value: string) => /[1-9]/.test(value);

/** Whole tokens that are to be moved: more than nothing. */
export const movedAmount = z
  .preprocess(asText, z.string().trim().regex(moved, 'must be a decimal number such as "12.50"'))
  .refine(isSome, 'must be more than 0')
  .describe('How much, in whole tokens, such as "12.50"');

/** The same in the smallest unit. */
export const movedAmountRaw = amountRaw
  .refine((value) => value.length <= MOST_RAW_DIGITS, `must have at most ${MOST_RAW_DIGITS} digits`)
  .refine(isSome, 'must be more than 0')
  .describe('In the smallest unit, instead of amount');

/** The amount to be moved, as it was asked for: in whole tokens or in the smallest unit. */
export interface AskedAmount {
  amount?: string | undefined;
  amountRaw?: string | undefined;
}

export const isOneAmount = ({ amount: whole, amountRaw: raw }: AskedAmount): boolean =>
  (whole === undefined) !== (raw === undefined);

/** The refusal of a body with neither or both. */
export const ONE_AMOUNT = {
  path: ['amount'],
  message: 'is needed, or amountRaw in its place, and not both',
};

/**
 * Converts the amount to be moved to the smallest unit.
 *
 * @throws noAnswer `AMOUNT_TOO_FINE` when `amount` has more places than the token
 */
export function inSmallestUnit(asked: AskedAmount, decimals: number, symbol: string): bigint {
  const { amount: whole, amountRaw: raw } = asked;
  if (raw !== undefined) return BigInt(raw);
  if (whole === undefined) throw new Error('an amount was checked before');
  const places = whole.split('.')[1]?.replace(/0+$/, '').length ?? 0;
  if (places > decimals)
    throw noAnswer('AMOUNT_TOO_FINE', `${symbol} has ${decimals} decimal places here.`, 'amount');
  return parseUnits(whole, decimals);
}
