/**
 * Secrets that stand in files, as a container's or a supervisor's secrets do: the variable `NAME_FILE` names the file that holds the
 * value of `NAME`. Files are read at the start, and again when the server is told to (SIGHUP).
 */
import { readFileSync, statSync } from 'node:fs';
import type { Variable } from './declared.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** More than the longest list of keys has. */
const MAX_BYTES = 65_536;

/** The variable that names the file of a secret; null for what is no secret. */
export function fileVariableOf({ name, secret }: Pick<Variable, 'name' | 'secret'>): string | null {
  return secret === true ? `${name}_FILE` : null;
}

/** Whether any of these secrets stands in a file, so that there is something to read again. */
export function hasSecretFiles(environment: Environment, variables: readonly Variable[]): boolean {
  return variables.some((variable) => isSet(environment, fileVariableOf(variable)));
}

/** A variable's text: null when it is not set, or a problem, which tells nothing of what a file holds. */
export function textOf(
  environment: Environment,
  variable: Pick<Variable, 'name' | 'secret'>,
): { text: string | null } | { problem: string } {
  const { name } = variable;
  const fileVariable = fileVariableOf(variable);
  const own = given(environment, name);
  if (fileVariable === null || !isSet(environment, fileVariable)) return { text: own };
  if (own !== null) return { problem: `${fileVariable}: is set, and so is ${name}. Set one of them` };
  const read = readSecret(given(environment, fileVariable) ?? '');
  return 'why' in read ? { problem: `${fileVariable}: ${read.why}` } : { text: read.text };
}

function isSet(environment: Environment, name: string | null): boolean {
  return name !== null && given(environment, name) !== null;
}

/** The value of a variable; null: it is not set, or empty, which counts as the same. */
function given(environment: Environment, name: string): string | null {
  return (Object.hasOwn(environment, name) ? environment[name] : '') || null;
}

/** Reads a file's one line. A file that is empty is one that somebody is writing, or has lost: never an empty secret. */
function readSecret(path: string): { text: string } | { why: string } {
  let text: string;
  try {
    const found = statSync(path);
    // A pipe would keep the start waiting for ever.
    if (!found.isFile()) return { why: 'names no file' };
    if (found.size > MAX_BYTES) return { why: `names a file of more than ${MAX_BYTES} bytes` };
    text = readFileSync(path, 'utf8').replace(/[\r\n]+$/, '');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    return { why: `names a file that cannot be read (${code})` };
  }
  if (text.trim() === '') return { why: 'names an empty file' };
  if (/[\r\n\0]/.test(text)) return { why: 'names a file of several lines. One line is the secret' };
  return { text };
}
