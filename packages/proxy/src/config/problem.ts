/** Problems of a configuration: where each stands, and what to change. */

export type FieldPath = readonly (string | number)[];

/** One thing that is wrong. */
export interface ConfigProblem {
  readonly file: string;
  /** From 1; null where the file is a module, which has no positions. */
  readonly line: number | null;
  readonly column: number | null;
  /** The field, such as `routes["GET /v1/x"].price`; empty for the file as a whole. */
  readonly path: string;
  /** A sentence without the field, and never with a value that could be a secret. */
  readonly message: string;
}

/** The most problems that are told at once. */
export const MOST_PROBLEMS = 50;

/** A configuration that cannot be used, with everything that is wrong with it. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];
  /** How many more there are. */
  readonly untold: number;

  constructor(problems: readonly ConfigProblem[]) {
    const told = [...problems]
      .sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
      .slice(0, MOST_PROBLEMS);
    const untold = problems.length - told.length;
    super([...told.map(problemText), ...(untold > 0 ? [`and ${untold} more`] : [])].join('\n'));
    this.name = 'ConfigError';
    this.problems = told;
    this.untold = untold;
  }
}

/** A problem on one line, as compilers write theirs: `file:line:column field: message`. */
export function problemText({ file, line, column, path, message }: ConfigProblem): string {
  const place = line === null ? file : `${file}:${line}:${column}`;
  return path === '' ? `${place} ${message}` : `${place} ${path}: ${message}`;
}

/** A field as JavaScript would name it. */
export function fieldText(path: FieldPath): string {
  return path
    .map((each, index) => {
      if (typeof each === 'number') return `[${each}]`;
      if (/^[A-Za-z_$][\w$]*$/.test(each)) return index === 0 ? each : `.${each}`;
      return `[${JSON.stringify(each.length > 100 ? `${each.slice(0, 100)}…` : each)}]`;
    })
    .join('');
}
