/**
 * The characters that a name may not hold which somebody gives and others read beside other text: control characters, separators of
 * lines, and marks that turn the direction of what follows (Unicode UAX #9). With one of those a name reads as another.
 */
const NOT_IN_NAMES = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** Whether text may stand as a name in a list, a page, a log line or a message that is signed. */
export function isNameable(text: string): boolean {
  return text.isWellFormed() && !NOT_IN_NAMES.test(text);
}

/** The complaint about text that is no name, in words that follow the field's name. */
export const NOT_NAMEABLE =
  'must not hold control characters, line separators or marks that turn text around';
