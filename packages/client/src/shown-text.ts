/** Text that a server wrote, where a terminal or a model reads it. */

/**
 * What nobody sees: controls, by which a terminal is told what to do, marks that turn text around (UAX #9), and characters without
 * width, in which text is hidden. Ends of lines and tabs are not among them, nor the joiners that some scripts need.
 */
const UNSEEN =
  /(?!\n|\t|\u200c|\u200d|[\ufe00-\ufe0f])(?:[\p{Cc}\p{Zl}\p{Zp}\p{Co}\ufff9-\ufffb]|\p{Default_Ignorable_Code_Point})/gu;

/** The text without what nobody sees. */
export const shownText = (text: string): string => text.replace(UNSEEN, '');

/** The same text, in which what nobody sees is written as JSON escapes it: a terminal shows it, and a reader of JSON reads what it was. */
export const escapedText = (text: string): string =>
  text.replace(UNSEEN, (found) =>
    Array.from(
      { length: found.length },
      (_, at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
