/** The length of functions. scripts/long-functions.json notes those that are too long, so that they cannot grow. */
import { globSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { parseSync } from '@swc/core';

/** Functions with more lines than this have a row. */
export const LONG_LINES = 70;

/** The long functions at the top level of files, tests excluded: path and name, with their lines. */
export function longFunctions(root: string): Record<string, number> {
  const long: [string, number][] = [];
  for (const path of globSync('{apps/shop/src,packages/*/src,bench,scripts}/**/*.ts', { cwd: root })) {
    if (/\.(test|fixture|d)\.ts$/.test(path)) continue;
    for (const { name, lines } of functionsOf(readFileSync(join(root, path), 'utf8')))
      if (lines > LONG_LINES) long.push([`${path.replaceAll(sep, '/')} ${name}`, lines]);
  }
  return Object.fromEntries(long.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The functions at the top level of a file, with the number of lines of each. */
function functionsOf(text: string): { name: string; lines: number }[] {
  // The parser counts bytes from the end of the text before, so each file is parsed from its own start.
  const bytes = Buffer.from(text);
  const tree = parseSync(text, { syntax: 'typescript', target: 'es2022' });
  const start = tree.span.end - bytes.length - 1 > 0 ? tree.span.end - bytes.length : 1;
  const linesOf = (span: { start: number; end: number }) =>
    bytes
      .subarray(span.start - start, span.end - start)
      .toString()
      .split('\n').length;
  return tree.body.flatMap((item) => {
    const declared = item.type === 'ExportDeclaration' ? item.declaration : item;
    if (declared.type === 'FunctionDeclaration')
      return [{ name: declared.identifier.value, lines: linesOf(declared.span) }];
    if (item.type === 'ExportDefaultDeclaration') return [{ name: 'default', lines: linesOf(item.span) }];
    if (declared.type !== 'VariableDeclaration') return [];
    return declared.declarations.flatMap(({ id, init }) =>
      id.type === 'Identifier' &&
      (init?.type === 'ArrowFunctionExpression' || init?.type === 'FunctionExpression')
        ? [{ name: id.value, lines: linesOf(init.span) }]
        : [],
    );
  });
}
