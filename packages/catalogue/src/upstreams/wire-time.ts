import { z } from 'zod';

/** A day, or a time of a day with or without its zone: ISO 8601, and with a space in place of the T. */
const TIME = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?$/;

/** A time as a source writes it; null where there is none, and where something else stands in its place. */
export const optionalWireTime = z
  .string()
  .nullish()
  .transform((written) => {
    const time = written?.trim() ?? '';
    return TIME.test(time) ? time : null;
  });
