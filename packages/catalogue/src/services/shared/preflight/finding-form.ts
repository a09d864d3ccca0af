/** A finding of a check before signing, as every answer that holds one has it. */
import { z } from 'zod';
import { PATTERN_NAMES } from '../../../preflight/finding.ts';

/** @param address the form of addresses on the chains that the answer may be about */
export const findingForm = (address: z.ZodString) =>
  z.object({
    pattern: z.enum(PATTERN_NAMES as [string, ...string[]]).describe('What was found'),
    severity: z.enum(['info', 'caution', 'unknown', 'danger']).describe('The verdict is the worst of these'),
    address: address.nullable().describe('Whom it is about; null where it is about all'),
  });
