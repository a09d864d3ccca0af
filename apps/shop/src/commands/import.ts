#!/usr/bin/env node
/**
 * `npm run import`: writes farebox.config.yaml from an OpenAPI document, one route for each operation, and says what it left out. A
 * file that is there already is not overwritten.
 */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, relative, resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommand, UsageError } from '@farebox/process/run-command';
import { StartError } from '@farebox/process/start-error';
import { importOpenApi, NoOpenApi } from '@farebox/proxy/config/import-openapi';

const USAGE =
  'npm run import -- openapi.json --price 0.05 [--url https://api.example.com] [--name weather] [--out farebox.config.yaml]';
const SCHEMA = createRequire(import.meta.url).resolve('@farebox/proxy/config.schema.json');
const MOST_BYTES = 8_000_000;
const MOST_SHOWN = 200;

async function textOf(file: string): Promise<string> {
  try {
    if ((await stat(file)).size > MOST_BYTES)
      throw new StartError(`${file} is larger than ${MOST_BYTES} bytes`);
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`${file} cannot be read as UTF-8, or is not there`);
  }
}

async function writeNew(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { flag: 'wx' });
  } catch {
    throw new StartError(
      `${file} is there already or cannot be written: move it away, or name another by --out`,
    );
  }
}

/** The schema's address from the folder of the file, for its editor. */
function schemaFrom(file: string): string {
  const path = relative(dirname(resolve(file)), SCHEMA).replaceAll(sep, '/');
  return path.startsWith('.') ? path : `./${path}`;
}

await runCommand(USAGE, async () => {
  const text = { type: 'string' } as const;
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { price: text, url: text, name: text, out: { ...text, default: 'farebox.config.yaml' } },
  });
  const [file, another] = positionals;
  if (file === undefined || another !== undefined) throw new UsageError('name one OpenAPI document');
  const { price = '', url = null, name = null, out } = values;
  if (!/^(0|[1-9]\d{0,5})(\.\d{1,6})?$/.test(price) || !/[1-9]/.test(price))
    throw new UsageError('--price must be an amount above 0 in USD with at most six decimals');
  try {
    const document = await textOf(file);
    const made = importOpenApi(document, { priceUsd: price, url, upstream: name, schema: schemaFrom(out) });
    await writeNew(out, made.text);
    process.stdout.write(
      `${out}: ${made.routes} ${made.routes === 1 ? 'route' : 'routes'} at ${price} USD\n`,
    );
    for (const { name: variable, holds } of made.variables)
      process.stdout.write(`set ${variable}: ${holds}\n`);
    for (const { where, why } of made.leftOut.slice(0, MOST_SHOWN))
      process.stdout.write(`left out: ${where}: ${why}\n`);
    const more = made.leftOut.length - MOST_SHOWN;
    if (more > 0) process.stdout.write(`left out: ${more} more\n`);
    return 0;
  } catch (error) {
    if (error instanceof NoOpenApi) throw new StartError(`${file}: ${error.message}`);
    throw error;
  }
});
