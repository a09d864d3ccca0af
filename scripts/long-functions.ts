/** The length of functions. scripts/long-functions.json notes those that are too long, so that they cannot grow. */
import { globSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { parseSync, type Span } from '@swc/core';

/** Functions with more lines than this have a row. */
export const LONG_LINES = 70;

/** The long functions of the source, tests excluded: path and name, with the lines of the longest that is called so. */
export function longFunctions(root: string): Record<string, number> {
  const long: [string, number][] = [];
  for (const path of globSync('{apps/shop/src,packages/*/src,bench,scripts}/**/*.ts', { cwd: root })) {
    if (/\.(test|fixture|d)\.ts$/.test(path)) continue;
    for (const { name, lines } of functionsOf(readFileSync(join(root, path), 'utf8')))
      if (lines > LONG_LINES) long.push([`${path.replaceAll(sep, '/')} ${name}`, lines]);
  }
  // The last of a name is the one that stays.
  return Object.fromEntries(long.sort(([a, least], [b, most]) => (a === b ? least - most : a < b ? -1 : 1)));
}

/**
 * The functions of a file wherever they stand, with the number of lines of each: also methods of classes and of literals, functions
 * within functions, and what is handed to a call, such as the `run` of a service. Each is named by all that it stands in.
 */
export function functionsOf(text: string): { name: string; lines: number }[] {
  // The parser counts bytes from the end of the text before, so each file is parsed from its own start.
  const bytes = Buffer.from(text);
  const tree = parseSync(text, { syntax: 'typescript', target: 'es2022' });
  const start = tree.span.end - bytes.length - 1 > 0 ? tree.span.end - bytes.length : 1;
  const linesOf = (span: Span) =>
    bytes
      .subarray(span.start - start, span.end - start)
      .toString()
      .split('\n').length;
  const found: { name: string; lines: number }[] = [];
  const look = (node: unknown, within: readonly string[]): void => {
    if (typeof node !== 'object' || node === null) return;
    const own = nameOf(node);
    const names = own === null ? within : [...within, own];
    if (isFunction(node))
      found.push({ name: names.length === 0 ? 'default' : names.join('.'), lines: linesOf(node.span) });
    for (const inner of Object.values(node)) look(inner, names);
  };
  look(tree.body, []);
  return found;
}

const FUNCTIONS: ReadonlySet<unknown> = new Set([
  'ArrowFunctionExpression',
  'ClassMethod',
  'Constructor',
  'FunctionDeclaration',
  'FunctionExpression',
  'GetterProperty',
  'MethodProperty',
  'PrivateMethod',
  'SetterProperty',
  'StaticBlock',
]);

function isFunction(node: object): node is { span: Span } {
  return 'type' in node && FUNCTIONS.has(node.type) && 'span' in node;
}

/** The name that a node gives to what is in it: of a declaration, or the key of a property; null: none. */
function nameOf(node: object): string | null {
  if ('type' in node && node.type === 'Constructor') return 'constructor';
  const named =
    'identifier' in node ? node.identifier : 'key' in node ? node.key : 'id' in node ? node.id : null;
  // A private name has its identifier within.
  const inner = typeof named === 'object' && named !== null && 'id' in named ? named.id : named;
  return typeof inner === 'object' && inner !== null && 'value' in inner ? String(inner.value) : null;
}
