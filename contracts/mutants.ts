/** The bugs that `npm run contracts:mutate` plants: what a careless hand might write instead, one place at a time. */

/** A piece of a source, and what is written there instead. */
export interface Mutant {
  /** Path from the repository's root. */
  source: string;
  /** Its first line, counted from one. */
  line: number;
  was: readonly string[];
  is: readonly string[];
}

/** Bugs within a line. */
const BUGS: readonly (readonly [from: RegExp, to: string])[] = [
  // Comparisons and logic.
  [/ <= /g, ' < '],
  [/ >= /g, ' > '],
  [/(?<=\w|\)) < /g, ' <= '],
  [/(?<=\w|\)) > /g, ' >= '],
  [/ == /g, ' != '],
  [/ != /g, ' == '],
  [/ && /g, ' || '],
  [/ \|\| /g, ' && '],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
  // Sums and roundings.
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/ \* /g, ' / '],
  [/ \/ /g, ' * '],
  [/ \+ [A-Za-z_]+(?=[;),])/g, ''],
  [/Rounding\.Floor/g, 'Rounding.Ceil'],
  [/Rounding\.Ceil/g, 'Rounding.Floor'],
  [/Math\.min/g, 'Math.max'],
  [/ \| bit/g, ' & bit'],
  [/&= ~/g, '&= '],
  [/& ~bit/g, '& bit'],
  [/(?<=if \()!?[\w.()]+ (?:\|\||&&) /g, ''],
  // Who may, and what may come between.
  [/ ?\bonlyOwner\b/g, ''],
  [/ ?\bnonReentrant\b/g, ''],
  // What is left out: a check, an effect.
  [/^(\s+)if \(.*\) [^{]*;$/g, '$1'],
  [
    /^(\s+)(?:_burn|_mint|_spendAllowance|_supply|_gather|_setHeld|_letGo|_clearQueue|_checkCaps|_accrue|_enter|_leave)\(.*\);$/g,
    '$1',
  ],
  [/^(\s+).*\.(?:forceApprove|safeTransfer|safeTransferFrom)\(.*\);$/g, '$1'],
  [/^(\s+)\w+(?:\.\w+)? = .*;$/g, '$1'],
  [/^(\s+)delete .*;$/g, '$1'],
];

/** Numbers that are fixed for ever, one more. */
const CONSTANT = /(?<=constant \w+ = (?:1 << )?)(\d[\d_]*)(?=;| hours;)/;

/** Lines without code of their own: declarations, comments, events. */
const NO_CODE = /^\s*(\/\/|\*|import|event|error|emit|using|pragma|uint\d+ (public|private) constant)/;

/** A statement that does something and declares nothing: it can change places with the next. */
const EFFECT =
  /^\s{8,}(?!return|revert|emit|if |for |else|delete )(?:[\w.()]+ = .*|[\w.]+(?:\([^)]*\))?[\w.]*\(.*\));$/;

/** Everything that could be planted in a source, in its order. */
export function mutantsOf(source: string, text: string): Mutant[] {
  const lines = text.split('\n');
  return lines.flatMap((was, index) => [
    ...within(was).map((is): Mutant => ({ source, line: index + 1, was: [was], is: [is] })),
    ...swapped(was, lines[index + 1] ?? '').map(
      (is): Mutant => ({ source, line: index + 1, was: [was, lines[index + 1] ?? ''], is }),
    ),
  ]);
}

function within(was: string): string[] {
  const constant = was.replace(CONSTANT, (digits) => String(Number(digits.replaceAll('_', '')) + 1));
  if (constant !== was) return [constant];
  if (NO_CODE.test(was)) return [];
  const bugs = BUGS.flatMap(([from, to]) =>
    [...was.matchAll(from)].map(
      (match) =>
        was.slice(0, match.index) +
        to.replace('$1', match[1] ?? '') +
        was.slice(match.index + match[0].length),
    ),
  ).filter((is) => is !== was);
  return [...new Set(bugs)];
}

/** Two effects in the other order; not two values or two approvals, whose order is all the same. */
function swapped(first: string, second: string): string[][] {
  const both = (kind: RegExp) => kind.test(first) && kind.test(second);
  return both(EFFECT) && !both(/ = |forceApprove/) ? [[second, first]] : [];
}

/** @returns the source with the bug in it */
export function planted(text: string, { line, was, is }: Mutant): string {
  return text
    .split('\n')
    .toSpliced(line - 1, was.length, ...is)
    .join('\n');
}

/** What is written in a mutant's place, on one line. */
export function writtenBy({ was, is }: Mutant): string {
  const written = is.map((each) => each.trim()).join(' ');
  return written === '' ? `(without) ${was.join(' ').trim()}` : written;
}

/** A mutant's name: the same as long as its source is. */
export function nameOf(mutant: Mutant): string {
  return `${mutant.source}:${mutant.line} ${writtenBy(mutant)}`;
}
