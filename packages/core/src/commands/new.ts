#!/usr/bin/env node
/** `farebox new [FILE]`: writes a whole shop with one service into a file, to be changed. A file that is there is not overwritten. */
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommand, UsageError } from '@farebox/process/run-command';
import { StartError } from '@farebox/process/start-error';

const SHOP = join(import.meta.dirname, '../../new/shop.ts');
const NEXT = (file: string) => `${file}: a shop that sells square-root for 0.01 USD. Start it, and buy:
  TRIAL_ALLOW_INTERNAL=true FAREBOX_SECRET=$(openssl rand -hex 32) node ${file}
  farebox keys trial && farebox call square-root --of 2
`;

await runCommand('farebox new [shop.ts]', async () => {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [file = 'shop.ts', another] = positionals;
  if (another !== undefined) throw new UsageError('name one file');
  if (!/\.m?ts$/.test(file)) throw new UsageError('the file is TypeScript: its name ends in .ts or .mts');
  const text = await readFile(SHOP, 'utf8');
  try {
    await writeFile(resolve(file), text, { flag: 'wx' });
  } catch {
    throw new StartError(`${file} is there already or cannot be written: move it away, or name another`);
  }
  process.stdout.write(NEXT(file));
  return 0;
});
