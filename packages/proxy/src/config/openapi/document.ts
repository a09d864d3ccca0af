/** An OpenAPI document as it was written by somebody outside: nothing in it is taken for granted. */
import { readLocated } from '../positions.ts';

export type Json = Readonly<Record<string, unknown>>;

/** A thing that was not taken over, and why. */
export interface LeftOut {
  /** Such as `GET /pets`, or `webhooks`. */
  readonly where: string;
  readonly why: string;
}

/** Notes a thing that was not taken over. */
export type LeaveOut = (where: string, why: string) => void;

/** A document that cannot be taken over at all. */
export class NoOpenApi extends Error {}

const MOST_REFERENCES_IN_A_ROW = 16;

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const objectOf = (value: unknown): Json => (isObject(value) ? value : {});
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** The field of an object by a name from outside; undefined also for names that every object has. */
export function fieldOf(object: Json, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

export interface OpenApiDocument {
  readonly root: Json;
  readonly version: '3.0' | '3.1';
  /** Follows references within the document. @returns null for what is not there, elsewhere, or refers to itself */
  resolve(value: unknown): Json | null;
}

/**
 * Reads a document of OpenAPI 3.0 or 3.1 in JSON or YAML.
 *
 * @throws NoOpenApi when it is none
 */
export function readOpenApi(text: string): OpenApiDocument {
  const read = readLocated(text);
  if (!('value' in read)) {
    const [first] = read;
    throw new NoOpenApi(
      `line ${first?.line ?? 1}, column ${first?.column ?? 1}: ${first?.message ?? 'cannot be read'}`,
    );
  }
  const root = objectOf(read.value);
  if (root.swagger !== undefined)
    throw new NoOpenApi('this is Swagger 2.0: convert it to OpenAPI 3 first, which many tools do');
  const written = typeof root.openapi === 'number' ? String(root.openapi) : (textOf(root.openapi) ?? '');
  const [, version] = /^(3\.[01])(\.|$)/.exec(written) ?? [];
  if (version !== '3.0' && version !== '3.1')
    throw new NoOpenApi('this is no OpenAPI 3.0 or 3.1: the document begins with "openapi" and its version');
  return { root, version, resolve: (value) => resolved(root, value) };
}

function resolved(root: Json, value: unknown): Json | null {
  let at = value;
  for (let turn = 0; turn < MOST_REFERENCES_IN_A_ROW; turn++) {
    if (!isObject(at)) return null;
    const reference = at.$ref;
    if (reference === undefined) return at;
    at = typeof reference === 'string' ? pointed(root, reference) : undefined;
  }
  return null;
}

/** The part of the document that a reference such as `#/components/schemas/Pet` names. */
export function pointed(root: Json, reference: string): unknown {
  if (reference === '#') return root;
  if (!reference.startsWith('#/')) return undefined;
  let at: unknown = root;
  for (const raw of reference.slice(2).split('/')) {
    const name = decodedName(raw).replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(at)) at = /^\d+$/.test(name) ? at[Number(name)] : undefined;
    else at = isObject(at) ? fieldOf(at, name) : undefined;
  }
  return at;
}

function decodedName(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    return raw;
  }
}
