/** Reads form-encoded bodies and queries with nested brackets, and hands out their values checked. */
import { type ApiError, invalid } from './api-error.ts';
import type { Metadata } from './objects.ts';

const MAX_PAIRS = 500;
const MAX_DEPTH = 6;
const MAX_KEY_CHARACTERS = 300;
const MAX_METADATA_KEYS = 50;
const MAX_METADATA_KEY_CHARACTERS = 40;
const MAX_METADATA_VALUE_CHARACTERS = 500;

type Tree = Map<string, string | Tree>;

/**
 * Reads `a[b][c]=v&list[0]=x&list[]=y`; brackets may be percent-encoded or not.
 * @throws ApiError 400 beyond 500 pairs, a depth of 6, or when a name is a value and a group at once
 */
export function parseForm(text: string): Params {
  const root: Tree = new Map();
  const pairs = [...new URLSearchParams(text)];
  if (pairs.length > MAX_PAIRS) throw invalid(`Too many parameters: at most ${MAX_PAIRS}.`);
  for (const [key, value] of pairs) {
    const [, head, tail] = /^([^[\]]+)((?:\[[^[\]]*\])*)$/.exec(key.slice(0, MAX_KEY_CHARACTERS)) ?? [];
    if (head === undefined || tail === undefined || key.length > MAX_KEY_CHARACTERS)
      throw invalid('Invalid parameter name.');
    const path = [head, ...[...tail.matchAll(/\[([^[\]]*)\]/g)].map(([, part = '']) => part)];
    if (path.length > MAX_DEPTH) throw invalid('Parameters are nested too deeply.', head);
    let node = root;
    for (const [index, part] of path.entries()) {
      const name = part === '' ? String(node.size) : part;
      if (index === path.length - 1) {
        if (typeof node.get(name) === 'object') throw invalid(`Invalid hash: ${key}`, head);
        node.set(name, value);
        break;
      }
      const next = node.get(name) ?? new Map();
      if (typeof next === 'string') throw invalid(`Invalid hash: ${key}`, head);
      node.set(name, next);
      node = next;
    }
  }
  return new Params(root, '');
}

/** Parameters by name. What is read is remembered, so that `end` can refuse what nobody knows. */
export class Params {
  readonly #tree: Tree;
  readonly #path: string;
  readonly #read = new Set<string>();
  readonly #children: Params[] = [];

  constructor(tree: Tree, path: string) {
    this.#tree = tree;
    this.#path = path;
  }

  /** How an error names a parameter: `price_data[unit_amount]`. */
  nameOf(name: string): string {
    return this.#path === '' ? name : `${this.#path}[${name}]`;
  }

  has(name: string): boolean {
    return this.#tree.has(name);
  }

  /** Whether `name[...]` was given, and not `name` itself. */
  isGroup(name: string): boolean {
    return typeof this.#tree.get(name) === 'object';
  }

  /** A text; absent or empty is undefined. */
  text(name: string, maxCharacters = 5_000): string | undefined {
    return this.clearable(name, maxCharacters) ?? undefined;
  }

  /** A text of which an empty one means "forget what was there" (null); undefined when absent. */
  clearable(name: string, maxCharacters = 5_000): string | null | undefined {
    this.#read.add(name);
    const value = this.#tree.get(name);
    if (value === undefined) return undefined;
    if (typeof value !== 'string') throw invalid(`Invalid string: ${this.nameOf(name)}`, this.nameOf(name));
    if (value.length > maxCharacters) {
      throw invalid(
        `Invalid string: ${this.nameOf(name)} is longer than ${maxCharacters} characters`,
        this.nameOf(name),
      );
    }
    return value === '' ? null : value;
  }

  /** @throws ApiError 400 parameter_missing */
  needed(name: string, maxCharacters = 5_000): string {
    const value = this.text(name, maxCharacters);
    if (value === undefined) throw this.#missing(name);
    return value;
  }

  integer(name: string): number | undefined {
    const text = this.text(name, 20);
    if (text === undefined) return undefined;
    if (!/^-?\d{1,15}$/.test(text)) {
      throw invalid(`Invalid integer: ${text}`, this.nameOf(name), 'parameter_invalid_integer');
    }
    return Number(text);
  }

  neededInteger(name: string): number {
    const value = this.integer(name);
    if (value === undefined) throw this.#missing(name);
    return value;
  }

  boolean(name: string): boolean | undefined {
    const text = this.text(name, 10);
    if (text === undefined) return undefined;
    if (text !== 'true' && text !== 'false') throw invalid(`Invalid boolean: ${text}`, this.nameOf(name));
    return text === 'true';
  }

  /** One of `choices`; another value is refused with the list. */
  choice<const T extends string>(name: string, choices: readonly T[]): T | undefined {
    const text = this.text(name, 100);
    if (text === undefined) return undefined;
    const chosen = choices.find((one) => one === text);
    if (chosen === undefined) {
      throw invalid(
        `Invalid ${this.nameOf(name)}: must be one of ${choices.join(', ')} (the sandbox knows no other)`,
        this.nameOf(name),
      );
    }
    return chosen;
  }

  /** A group of parameters, `name[...]`; undefined when absent. */
  group(name: string): Params | undefined {
    this.#read.add(name);
    const value = this.#tree.get(name);
    if (value === undefined) return undefined;
    if (typeof value === 'string') throw invalid(`Invalid object: ${this.nameOf(name)}`, this.nameOf(name));
    const group = new Params(value, this.nameOf(name));
    this.#children.push(group);
    return group;
  }

  /** A list of texts: `name[0]`, `name[]`. */
  texts(name: string, maxItems: number): string[] {
    const group = this.group(name);
    if (group === undefined) return [];
    const names = group.names();
    if (names.length > maxItems) throw invalid(`At most ${maxItems} of ${name}.`, this.nameOf(name));
    return names.map((index) => group.needed(index, 300));
  }

  /** A list of groups: `name[0][...]`. */
  groups(name: string, maxItems: number): Params[] {
    const group = this.group(name);
    if (group === undefined) return [];
    const names = group.names();
    if (names.length > maxItems) throw invalid(`At most ${maxItems} of ${name}.`, this.nameOf(name));
    return names.flatMap((index) => group.group(index) ?? []);
  }

  names(): string[] {
    return [...this.#tree.keys()];
  }

  /** `current` with the given pairs laid over it; an empty value removes its key. */
  metadata(current: Metadata = {}): Metadata {
    const group = this.group('metadata');
    const merged = new Map(Object.entries(current));
    for (const name of group?.names() ?? []) {
      if (name.length > MAX_METADATA_KEY_CHARACTERS) {
        throw invalid(`Metadata keys have at most ${MAX_METADATA_KEY_CHARACTERS} characters.`, 'metadata');
      }
      const value = group?.clearable(name, MAX_METADATA_VALUE_CHARACTERS) ?? null;
      if (value === null) merged.delete(name);
      else merged.set(name, value);
    }
    if (merged.size > MAX_METADATA_KEYS)
      throw invalid(`At most ${MAX_METADATA_KEYS} metadata keys.`, 'metadata');
    return Object.fromEntries(merged);
  }

  /** @throws ApiError 400 parameter_unknown if there is a parameter that nothing has read */
  end(): void {
    for (const name of this.#tree.keys()) {
      if (this.#read.has(name)) continue;
      throw invalid(
        `Received unknown parameter: ${this.nameOf(name)}`,
        this.nameOf(name),
        'parameter_unknown',
      );
    }
    for (const child of this.#children) child.end();
  }

  /** The same text for the same parameters in any order, with card numbers and codes taken out. */
  canonical(): string {
    const lines: string[] = [];
    const walk = (tree: Tree, path: string) => {
      for (const [name, value] of tree) {
        const at = `${path}/${encodeURIComponent(name)}`;
        if (typeof value !== 'string') walk(value, at);
        else if (at.endsWith('/card/number')) lines.push(`${at}=…${value.slice(-4)}`);
        else if (!at.endsWith('/card/cvc')) lines.push(`${at}=${encodeURIComponent(value)}`);
      }
    };
    walk(this.#tree, '');
    return lines.sort().join('\n');
  }

  #missing(name: string): ApiError {
    return invalid(`Missing required param: ${this.nameOf(name)}.`, this.nameOf(name), 'parameter_missing');
  }
}
