/** How a route that costs nothing is described: beside itself, in words that all descriptions share (OpenAPI 3.1). */

export interface Operation {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path as OpenAPI writes it: `/api/wallets/{walletId}`. */
  path: string;
  operation: Readonly<Record<string, unknown>>;
}

/** A part's description of its routes. */
export interface Described {
  operations: readonly Operation[];
  /** Whether what is described can be used now; left out: always. What cannot be used is not shown. */
  offered?(): boolean;
  /** Routes that no document describes, and why; a path that ends in `*` stands for all that begin so. */
  untold?: readonly { path: string; because: string }[];
  /** The contents of the tags of its operations, in a sentence each. */
  tags?: Readonly<Record<string, string>>;
  /** Components that the operations refer to, by their kind. */
  schemas?: Readonly<Record<string, object>>;
  responses?: Readonly<Record<string, object>>;
  securitySchemes?: Readonly<Record<string, object>>;
}

export const CREDITS_TAG = 'Credits';
export const ABOUT_CREDITS = { [CREDITS_TAG]: 'Credit for keys, bought by card or with USDC.' } as const;
/** The tag of the operations for hosts of models that take few: the rest is bought through it. */
export const CORE_TAG = 'Core';
/** The security of an operation that takes an API key. */
export const KEYED = [{ ApiKeyHeader: [] }, { BearerKey: [] }] as const;

/** An error of the usual shape whose status says all. */
export const REFUSED = { $ref: '#/components/responses/Refused' } as const;

/** A key that is missing, or is none that may be used here. */
export const KEY_REFUSED = { $ref: '#/components/responses/KeyRefused' } as const;

/** `REFUSED`, with a description of its own (OpenAPI 3.1 lets a reference have one). */
export function refused(description: string) {
  return { ...REFUSED, description };
}

/** An answer in JSON, by an example and, where that does not say all, a schema. */
export function answered(description: string, example: unknown, schema?: object) {
  const shape = schema === undefined ? {} : { schema };
  return { description, content: { 'application/json': { ...shape, example } } };
}

/** A body that a request must have. @param required of its fields; none when it is empty */
export function bodyOf(properties: object, required: readonly string[], example: object) {
  const schema = { type: 'object', properties, ...(required.length === 0 ? {} : { required }) };
  return { required: true, content: { 'application/json': { schema, example } } };
}
