/** A change as a document shows it, put into the files that it names. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../..');

/** The blocks of changes that a document shows, in its order. */
export function shownChanges(document: string): string[] {
  return [...document.matchAll(/^```diff\n([\s\S]*?)^```/gm)].map(([, change = '']) => change);
}

/** How many lines a change adds or makes anew. */
export function linesOf(change: string): number {
  return change.split('\n').filter((line) => /^\+/.test(line)).length;
}

/**
 * @returns each file's text after the change
 * @throws AssertionError when the change does not fit, or fits in several places
 */
export function changed(change: string): Map<string, string> {
  const files = change.split(/^--- /m).slice(1);
  return new Map(
    files.map((file) => {
      const [path = '', ...hunks] = file.split(/\n@@\n/);
      let text = readFileSync(join(ROOT, path), 'utf8');
      for (const hunk of hunks) {
        const lines = hunk.replace(/\n$/, '').split('\n');
        const side = (other: string) =>
          lines.filter((line) => !line.startsWith(other)).map((line) => line.slice(1));
        const [before, after] = [side('+').join('\n'), side('-').join('\n')];
        const around = text.split(`\n${before}\n`);
        assert.equal(around.length, 2, `${path} has ${around.length - 1} times:\n${before}`);
        text = around.join(`\n${after}\n`);
      }
      return [path, text];
    }),
  );
}
