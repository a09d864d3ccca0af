/**
 * Loaded before the tests of a process. To find the file of an import, Node asks the disk several times, which takes
 * longer than to load it. The processes of one run share what they found, in the file that `TEST_IMPORTS` names.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';

/** What a test writes elsewhere and imports may be another file the next time. */
const OURS = `${pathToFileURL(join(import.meta.dirname, '..'))}/`;
const file = process.env.TEST_IMPORTS;

/** The address and the kind of a module, by the folder that asks, the words that it asks with, and the way. */
type Found = Record<string, { url: string; format: string }>;

if (file !== undefined && isMainThread) {
  const found: Found = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  let isNew = false;
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL, conditions } = context;
      if (parentURL?.startsWith(OURS) !== true || specifier.startsWith('node:'))
        return next(specifier, context);
      const name = `${conditions.includes('require')} ${dirname(parentURL)} ${specifier}`;
      const known = found[name];
      if (known !== undefined) return { ...known, shortCircuit: true };
      const { url, format, ...rest } = next(specifier, context);
      if (typeof format === 'string' && url.startsWith(OURS)) {
        found[name] = { url, format };
        isNew = true;
      }
      return { url, format, ...rest };
    },
  });
  process.on('exit', () => {
    if (!isNew) return;
    const own = `${file}.${process.pid}`;
    writeFileSync(own, JSON.stringify(found));
    renameSync(own, file);
  });
}
