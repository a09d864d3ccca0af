/** What a caller may send in place of what was missing or wrong, so that it need not give up at an error. */

export interface Choice {
  /** The field of the body that the value belongs in. */
  field: string;
  /** A value that the field takes. */
  value: unknown;
  /** What it stands for, in a few words. */
  about: string;
}

/** The most that one error lists. */
export const MAX_CHOICES = 20;

/**
 * What may be chosen, as a field of an error's body. Nothing that belongs to somebody other than the caller may be listed, unless
 * it is sold to everybody.
 */
export function choicesIn(choices: readonly Choice[]): { choices: readonly Choice[] } {
  return { choices: choices.slice(0, MAX_CHOICES) };
}
