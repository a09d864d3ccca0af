/** A bug that `npm run mutate` plants: a rule of money or security left out or turned round, at one place of one file. */

export interface Mutant {
  /** Path from the repository's root. */
  file: string;
  /** The exact text that is replaced. It stands once in the file. */
  find: string;
  replace: string;
  /** Paths of the tests that look at this rule, the quickest first. One that fails finds the bug. */
  tests: readonly string[];
  /** Why a bug that no near test finds is accepted. */
  accepted?: string;
}

/** The bugs of one file that the same tests look at. */
export interface MutantsOfFile {
  file: string;
  tests: readonly string[];
  /** The text that is found, the text that is written there instead, and why a survivor is accepted. */
  bugs: readonly (readonly [find: string, replace: string, accepted?: string])[];
}

/** One mutant for each bug. */
export function mutantsIn({ file, tests, bugs }: MutantsOfFile): Mutant[] {
  return bugs.map(([find, replace, accepted]) => ({
    file,
    find,
    replace,
    tests,
    ...(accepted === undefined ? {} : { accepted }),
  }));
}

/**
 * The file's text with the bug in it.
 *
 * @throws when the text that is replaced does not stand there exactly once
 */
export function planted(text: string, { file, find, replace }: Mutant): string {
  const at = text.indexOf(find);
  if (at === -1) throw new Error(`${file} does not hold: ${find}`);
  if (text.includes(find, at + 1)) throw new Error(`${file} holds more than once: ${find}`);
  return `${text.slice(0, at)}${replace}${text.slice(at + find.length)}`;
}
