import { z } from 'zod';

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** A finite number that some APIs send as a number and some as a decimal string. Never reads an empty string as 0. */
export const wireNumber = z
  .union([z.number(), z.string().trim().regex(DECIMAL, 'not a number')])
  .transform(Number)
  .pipe(z.number());

/** The same where the API may leave it out or send null or an empty string: null then. */
export const optionalWireNumber = wireNumber
  .or(z.literal(''))
  .nullish()
  .transform((value) => (typeof value === 'number' ? value : null));
