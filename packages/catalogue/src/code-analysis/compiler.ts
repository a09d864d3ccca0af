/** From Solidity source to its tree: by the compiler that fits, else by the tolerant parser. */
import { withoutComments } from './comments.ts';
import { requireCompilers } from './compilers.ts';
import { publishedImports } from './published-imports.ts';
import { fromSolc } from './syntax/solc-tree.ts';
import { fromTolerantParser } from './syntax/tolerant-tree.ts';
import type { Program } from './syntax/tree.ts';

/** The newest compiler of each minor version, oldest first. */
const COMPILERS = ['0.4.26', '0.5.17', '0.6.12', '0.7.6', '0.8.37'] as const;
export type CompilerVersion = (typeof COMPILERS)[number];

/** The emscripten module that each package carries; nothing else of the packages is loaded. */
interface SolidityModule {
  cwrap(name: string, returns: 'string', takes: string[]): (...given: unknown[]) => string;
  _solidity_compile?: unknown;
}

interface CompilerOutput {
  errors?: { severity: string; message?: string; formattedMessage?: string }[];
  sources?: Record<string, { ast?: unknown }>;
}

export interface ReadSource {
  program: Program;
  /** Null: no compiler took it, and the tolerant parser read it. */
  compiler: CompilerVersion | null;
  /** The pragma as written, first file that has one; null without. */
  pragma: string | null;
  /** True where the pragma asks for another version than the one that compiled it. */
  pragmaReplaced: boolean;
  /** Why no compiler took it; null when one did. */
  compilerError: string | null;
  /** The published packages, as `name version`, whose files stand in for imports that were not sent. */
  packages: string[];
}

/** Thrown for source that cannot be read at all, with what was wrong in words for the caller. */
export class UnreadableSource extends Error {}

const PRAGMA = /\bpragma\s+solidity\s+([^;]{1,200});/;

/** The compilers that a pragma allows, newest first; all of them for a pragma that says nothing. */
function compilersFor(pragmas: readonly string[]): {
  fitting: CompilerVersion[];
  nearest: CompilerVersion[];
} {
  const fitting = COMPILERS.filter((version) =>
    pragmas.every((pragma) => allows(pragma, version)),
  ).toReversed();
  const minors = new Set(
    pragmas.flatMap((pragma) => [...pragma.matchAll(/\b0\s*\.\s*([4-8])\b/g)].map((match) => match[1])),
  );
  const nearest = COMPILERS.filter((version) => minors.has(version.split('.')[1])).toReversed();
  return { fitting, nearest };
}

/** Whether a version satisfies a pragma: `||` of lists of comparisons, carets, tildes and hyphen ranges. */
export function allows(pragma: string, version: string): boolean {
  return pragma.split('||').some((alternative) => {
    const range = /^\s*v?([\d.x*]+)\s+-\s+v?([\d.x*]+)\s*$/i.exec(alternative);
    const parts =
      range === null
        ? [...alternative.matchAll(/(\^|~|>=|<=|>|<|=)?\s*v?(\d+(?:\s*\.\s*[\dxX*]+){0,2})/g)].map(
            (match) => [match[1] ?? '=', match[2] ?? ''] as const,
          )
        : ([
            ['>=', range[1] ?? ''],
            ['<=', range[2] ?? ''],
          ] as const);
    return parts.every(([operator, bound]) => compares(version, operator, bound.replace(/\s/g, '')));
  });
}

function compares(version: string, operator: string, bound: string): boolean {
  const wanted = bound.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : null));
  const has = version.split('.').map(Number);
  const [major = 0, minor = null, patch = null] = wanted;
  const low = order(has, [major ?? 0, minor ?? 0, patch ?? 0]);
  const sameMinor = has[0] === (major ?? 0) && (minor === null || has[1] === minor);
  switch (operator) {
    case '^':
    case '~':
      return low >= 0 && sameMinor;
    case '>=':
      return low >= 0;
    case '>':
      return low > 0;
    case '<=':
      return low <= 0;
    case '<':
      return low < 0;
    default:
      return patch === null ? sameMinor : low === 0;
  }
}

function order(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < 3; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Compiles to trees alone. No import callback is given: what an import names must be among the sources. */
function compile(
  version: CompilerVersion,
  sources: Readonly<Record<string, string>>,
  remappings: readonly string[],
): CompilerOutput {
  const module: SolidityModule = requireCompilers()(`solc-${version.slice(0, 3)}/soljson.js`);
  const run =
    module._solidity_compile === undefined
      ? module.cwrap('compileStandard', 'string', ['string', 'number'])
      : module.cwrap('solidity_compile', 'string', ['string', 'number', 'number']);
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(Object.entries(sources).map(([name, content]) => [name, { content }])),
    settings: { remappings, outputSelection: { '*': { '': ['ast'] } } },
  };
  return JSON.parse(run(JSON.stringify(input), 0, 0));
}

/** The pragma blanked out, by as many characters, so that every line and every column stays where it is. */
function withoutPragma(text: string): string {
  let out = text;
  for (const { index, 0: pragma } of withoutComments(text).matchAll(new RegExp(PRAGMA, 'g'))) {
    const end = index + pragma.length;
    out = out.slice(0, index) + out.slice(index, end).replace(/[^\n\r]/g, ' ') + out.slice(end);
  }
  return out;
}

/**
 * Reads source: with the newest compiler that its pragmas allow, or else the newest of the minor version that they name
 * (exact pragmas name versions that are not here), or else without a compiler. Imports of published packages that were not sent
 * are read from the packages installed here.
 *
 * @param sources the text of each file by its name
 * @throws UnreadableSource when nothing understands it
 */
export function readSource(
  sources: Readonly<Record<string, string>>,
  remappings: readonly string[] = [],
): ReadSource {
  const pragmas = Object.values(sources).flatMap((text) =>
    [...withoutComments(text).matchAll(new RegExp(PRAGMA, 'g'))].map((match) => String(match[1]).trim()),
  );
  const { fitting, nearest } = compilersFor(pragmas);
  const candidates = pragmas.length === 0 ? COMPILERS.toReversed() : fitting.length > 0 ? fitting : nearest;
  // Where a pragma allows several minors, the oldest may take what the newest refuses.
  const tried = candidates.length > 2 ? [candidates[0], candidates.at(-1)] : candidates;
  const pragmaReplaced = fitting.length === 0 && pragmas.length > 0;
  const given = pragmaReplaced ? withoutPragmas(sources) : sources;
  const pragma = pragmas[0] ?? null;
  let compilerError: string | null =
    candidates.length === 0 ? `no compiler here is of the version that the pragma names (${pragma})` : null;
  for (const { files, packages } of [...publishedImports(sources, remappings), NOTHING_BORROWED]) {
    const all = { ...given, ...withoutPragmas(files) };
    for (const version of tried) {
      if (version === undefined) continue;
      const output = compile(version, all, remappings);
      const failed = output.errors?.find(({ severity }) => severity === 'error');
      const units = Object.fromEntries(
        Object.entries(output.sources ?? {}).flatMap(([name, { ast }]) => (ast == null ? [] : [[name, ast]])),
      );
      if (failed === undefined && Object.keys(units).length > 0) {
        const program = fromSolc(units, all, Number(version.split('.')[1]));
        program.borrowed = new Set(Object.keys(files));
        if (program.contracts.length + program.routines.length === 0)
          throw new UnreadableSource('there is no contract in it');
        return { program, compiler: version, pragma, pragmaReplaced, compilerError: null, packages };
      }
      compilerError ??= `${version}: ${(failed?.formattedMessage ?? failed?.message ?? 'it gave no tree').slice(0, 600)}`;
    }
  }
  const minor = Number((candidates[0] ?? nearest[0] ?? '0.8.37').split('.')[1]);
  try {
    const program = fromTolerantParser(sources, minor);
    if (program.contracts.length + program.routines.length === 0)
      throw new Error('there is no contract in it');
    return { program, compiler: null, pragma, pragmaReplaced: false, compilerError, packages: [] };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UnreadableSource(
      compilerError === null
        ? why
        : `${compilerError.split('\n')[0]}; nor does the parser read it: ${why.slice(0, 300)}`,
    );
  }
}

const NOTHING_BORROWED = { files: {}, packages: [] };

function withoutPragmas(sources: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(sources).map(([name, text]) => [name, withoutPragma(text)]));
}
