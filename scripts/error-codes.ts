/** The codes of errors that the server answers with, and those among them that no test names. */
import { globSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { serverFiles } from './packages.ts';

/** How the server makes an error: a function or a field that takes its code. */
const MADE =
  /(?:\b(?:Problem|noAnswer|unavailable|PaymentRefused|ReportRefused|RpcError|refused?|failed|help|endFor|awaited)\(\s*(?:[\w.]+,\s*)?|\b(?:code|error): )'([A-Z][A-Z\d_]{3,})'/g;
/** Tests that name codes and pass although none of them ever comes back: of the documents, of a random model, and of what must not come. */
const PROVOKES_NOTHING = /\/(documentation|fire\/model|hostile-values)\.test\.ts$/;
/** Why a payment on a chain is refused: a table with a row for each code. */
const REFUSALS = 'packages/core/src/rails/on-chain/refusals.ts';

/** The codes in the source of the server, each once, in order. */
export function errorCodes(root: string): string[] {
  const codes = new Set<string>();
  for (const { path } of serverFiles(root, '**/*.ts')) {
    if (/\.(test|fixture|d)\.ts$/.test(path)) continue;
    const text = readFileSync(join(root, path), 'utf8');
    const rows = path === REFUSALS ? text.matchAll(/^ {2}([A-Z_]+): \[/gm) : [];
    for (const [, code = ''] of [...text.matchAll(MADE), ...rows]) codes.add(code);
  }
  return [...codes].sort();
}

/** The codes among these that stand in no test. */
export function unnamedIn(codes: readonly string[], root: string): string[] {
  const words = new Set<string>();
  for (const path of globSync('{apps,packages}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules'] })) {
    if (PROVOKES_NOTHING.test(path.replaceAll(sep, '/'))) continue;
    for (const [word] of readFileSync(join(root, path), 'utf8').matchAll(/\b[A-Z][A-Z\d_]{3,}\b/g))
      words.add(word);
  }
  return codes.filter((code) => !words.has(code));
}
