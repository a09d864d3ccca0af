/** Loads a configuration from its file: YAML, JSON, or a module whose default export is one. */

import { readFile, stat } from 'node:fs/promises';
import { extname } from 'node:path';
import { readLocated } from './positions.ts';
import { ConfigError, type ConfigProblem, type FieldPath, fieldText } from './problem.ts';
import type { ProxyConfig } from './proxy-config.ts';
import { readModule } from './read-module.ts';
import { resolveConfig, type Surroundings } from './resolve.ts';
import { fitToSchema } from './schema-problems.ts';

const MOST_BYTES = 8_000_000;
const MODULES: readonly string[] = ['.ts', '.mts', '.js', '.mjs'];

interface Places {
  positionOf(path: FieldPath): { line: number; column: number } | null;
  numberText(path: FieldPath): string | null;
}

/** A value of JavaScript has no places. */
const NO_PLACES: Places = { positionOf: () => null, numberText: () => null };

/**
 * Loads and checks a configuration.
 *
 * @param file a path that ends in `.yaml`, `.yml`, `.json`, `.ts`, `.mts`, `.js` or `.mjs`
 * @throws ConfigError with everything that is wrong
 */
export async function loadConfig(file: string, surroundings: Surroundings): Promise<ProxyConfig> {
  const whole = (message: string) => new ConfigError([{ file, line: null, column: null, path: '', message }]);
  const kind = extname(file).toLowerCase();
  const size = await sizeOf(file);
  if (size === null) throw whole('cannot be read: there is no such file, or it may not be opened');
  if (size > MOST_BYTES) throw whole(`is larger than ${MOST_BYTES} bytes`);
  if (MODULES.includes(kind)) {
    const read = await readModule(file);
    if ('wrong' in read) throw whole(read.wrong);
    return checkConfig(read.value, file, surroundings);
  }
  if (!['.yaml', '.yml', '.json'].includes(kind))
    throw whole(`must end in .yaml, .yml, .json, ${MODULES.slice(0, -1).join(', ')} or ${MODULES.at(-1)}`);
  const bytes = await readFile(file);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw whole('must be UTF-8');
  }
  return readConfigText(text, file, surroundings);
}

async function sizeOf(file: string): Promise<number | null> {
  try {
    const found = await stat(file);
    return found.isFile() ? found.size : null;
  } catch {
    return null;
  }
}

/**
 * Reads and checks the text of a configuration in YAML or JSON.
 *
 * @param file its name in problems
 * @throws ConfigError with everything that is wrong
 */
export function readConfigText(text: string, file: string, surroundings: Surroundings): ProxyConfig {
  const read = readLocated(text);
  if (!('value' in read)) throw new ConfigError(read.map((problem) => ({ file, path: '', ...problem })));
  return checked(read.value, file, surroundings, read);
}

/**
 * Checks a configuration that is a value already.
 *
 * @param file its name in problems
 * @throws ConfigError with everything that is wrong
 */
export function checkConfig(value: unknown, file: string, surroundings: Surroundings): ProxyConfig {
  return checked(value, file, surroundings, NO_PLACES);
}

function checked(value: unknown, file: string, surroundings: Surroundings, places: Places): ProxyConfig {
  const problems: ConfigProblem[] = [];
  const complain = (path: FieldPath, message: string) => {
    const { line, column } = places.positionOf(path) ?? { line: null, column: null };
    problems.push({ file, line, column, path: fieldText(path), message });
  };
  const numberText = (path: FieldPath) => {
    const at = path.reduce<unknown>(
      (part, name) => (typeof part === 'object' && part !== null ? Reflect.get(part, name) : undefined),
      value,
    );
    return places.numberText(path) ?? (typeof at === 'number' ? String(at) : null);
  };
  const fitted = fitToSchema(value, numberText);
  const lineOf = (path: FieldPath) => places.positionOf(path)?.line ?? null;
  if ('problems' in fitted) {
    for (const { path, message } of fitted.problems) complain(path, message);
    const rest = fitToSchema(withoutUnfit(value, fitted.problems), numberText);
    // The parts that do fit are looked at too, so that one run tells everything.
    if ('config' in rest)
      resolveConfig(rest.config, surroundings, lineOf, (path, message) => {
        if (path.length > 0) complain(path, message);
      });
    throw new ConfigError(problems);
  }
  const config = resolveConfig(fitted.config, surroundings, lineOf, complain);
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

type Fields = Record<string, unknown>;
const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};

/** A configuration without the entries that have problems, and without the routes of such upstreams. */
function withoutUnfit(value: unknown, problems: readonly { path: FieldPath }[]): Fields {
  const unfit = new Set(problems.map(({ path }) => JSON.stringify(path.slice(0, 2))));
  const isFit = (...path: string[]) => !unfit.has(JSON.stringify(path));
  const kept = Object.entries(fieldsOf(value))
    .filter(([part]) => isFit(part))
    .map(([part, entries]): [string, unknown] => [
      part,
      part === '$schema'
        ? entries
        : Object.fromEntries(Object.entries(fieldsOf(entries)).filter(([name]) => isFit(part, name))),
    ]);
  const rest: Fields = Object.fromEntries(kept);
  const routes = Object.entries(fieldsOf(rest.routes)).filter(([, route]) => {
    const { upstream } = fieldsOf(route);
    return typeof upstream !== 'string' || isFit('upstreams', upstream);
  });
  return { ...rest, ...(rest.routes === undefined ? {} : { routes: Object.fromEntries(routes) }) };
}
