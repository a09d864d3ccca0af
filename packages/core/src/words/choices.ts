/** Choices that a caller may send in place of what was missing or wrong, so that it need not give up at an error. */
import { cleanDeep, cleanLine } from './outsider-text.ts';

export interface Choice {
  /** The field of the body that the value belongs in. */
  field: string;
  /** A value that the field takes. */
  value: unknown;
  /** The meaning of the value, in a few words. */
  about: string;
}

/** The most that one error lists. */
export const MAX_CHOICES = 20;
const MAX_CHARACTERS = 200;

/**
 * The choices as a field of an error's body. Nothing that belongs to somebody other than the caller may be listed, unless
 * it is sold to everybody. Outsiders may have written both the value and what is said of it.
 */
export function choicesIn(choices: readonly Choice[]): { choices: readonly Choice[] } {
  const listed = choices.slice(0, MAX_CHOICES).map(({ field, value, about }) => ({
    field,
    value: cleanDeep(value, MAX_CHARACTERS),
    about: cleanLine(about, MAX_CHARACTERS),
  }));
  return { choices: listed };
}
