/**
 * A part's declaration, known before it is opened. It says what the part is configured by; `config.ts` joins that,
 * checks it at the start and hands each part its own: settings, and apart from them its secrets, which no log shows.
 */
import { inspect } from 'node:util';
import { z } from 'zod';
import type { Audited } from './ledger/rule.ts';
import type { EvmKey } from './relayer/sign.ts';
import type { PersonalData } from './words/personal-data.ts';
import type { MoneyParts } from './world.ts';

export interface Variable<Output = unknown> {
  /** In the environment. */
  name: string;
  describe: string;
  /** Parses the text into the setting. An error names the variable and does not repeat the text. */
  shape: z.ZodType<Output, string>;
  /** The default, as it would be written in the environment; null: none. */
  fallback: string | null;
  /** Set when nothing starts without a value. */
  required?: true;
  secret?: true;
  /** Set for a secret that its part takes at once when its file is read again; others wait for the next start. */
  renewed?: true;
}

/** Under the names that the part itself has for them. */
export type Variables = Readonly<Record<string, Variable>>;

type ValueOf<V extends Variable> =
  | z.output<V['shape']>
  | (V extends { fallback: string } | { required: true } ? never : null);
export type ValuesOf<V extends Variables> = { readonly [Key in keyof V]: ValueOf<V[Key]> };
type SettingsOf<V extends Variables> = {
  readonly [Key in keyof V as V[Key] extends { secret: true } ? never : Key]: ValueOf<V[Key]>;
};
type SecretsOf<V extends Variables> = {
  readonly [Key in keyof V as V[Key] extends { secret: true } ? Key : never]: ValueOf<V[Key]>;
};

/** The configuration that a part gets. */
export interface Configured<V extends Variables> {
  readonly settings: SettingsOf<V>;
  readonly secrets: Sealed<SecretsOf<V>>;
}

/** A part's declaration, which is known before the part is opened. */
export interface Declared<V extends Variables = Variables> {
  /** The part's, and that of its place in the configuration. */
  name: string;
  variables: V;
  /**
   * Checks the values together. Each problem is a line that begins with a variable's name.
   *
   * @param values undefined: wrong in itself, and reported
   */
  problems?(values: Partial<ValuesOf<V>>, about: Surroundings): string[];
  /** Rules about the money that the part keeps; `npm run books` checks them in the database. */
  books?: Audited;
  /** What the part keeps about people, and what becomes of it when one is erased. */
  people?: PersonalData;
  /** The settings that say whose money it is: where it comes from, where it goes, who moves it. Read once nothing else is wrong. */
  money?(values: ValuesOf<V>, about: Surroundings): Partial<MoneyParts>;
}

export interface Surroundings {
  production: boolean;
  /** The value of another part's variable, by its name in the environment; undefined: wrong, or there is none. */
  other(name: string): unknown;
}

/**
 * A declaration with its own types kept, so that what is read has the types of its shapes.
 *
 * @example
 * ```ts
 * import { readConfig } from '@farebox/core/config';
 * import { declare } from '@farebox/core/declared';
 * import { z } from 'zod';
 *
 * const GREETINGS = declare({
 *   name: 'greetings',
 *   variables: {
 *     words: { name: 'GREETING', describe: 'What it says', shape: z.string().max(100), fallback: 'Hello' },
 *   },
 * });
 * readConfig({ GREETING: 'Welcome' }, [GREETINGS]).greetings.settings.words; // 'Welcome'
 * ```
 */
export function declare<const Name extends string, const V extends Variables>(
  declared: Omit<Declared<V>, 'name'> & { name: Name },
): Omit<Declared<V>, 'name'> & { name: Name } {
  return declared;
}

/** The rules about money of all parts. */
export function booksOf(parts: readonly Pick<Declared, 'books'>[]): readonly Audited[] {
  return parts.flatMap(({ books }) => books ?? []);
}

/** What all parts keep about people. */
export function peopleOf(parts: readonly Pick<Declared, 'people'>[]): readonly PersonalData[] {
  return parts.flatMap(({ people }) => people ?? []);
}

/** Secret values that cannot be shown by accident: they do not appear in JSON, logs, inspectors or template strings. */
export class Sealed<Values extends object> {
  #values: Values;
  constructor(values: Values) {
    this.#values = values;
  }
  /** Puts new values in the place of these; who reveals them next has the new ones. */
  renew(values: Partial<Values>): void {
    this.#values = { ...this.#values, ...values };
  }
  /** Returns the values, for the code that uses them at once and passes them to no other. */
  reveal(): Values {
    return this.#values;
  }
  toJSON(): string {
    return '[sealed]';
  }
  toString(): string {
    return '[sealed]';
  }
  [inspect.custom](): string {
    return '[sealed]';
  }
}

export const whole = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^\d+$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(minimum).max(maximum));
/** Returns the smallest and the largest number that a variable takes; null for what is no bounded number. */
export function boundsOf({ shape }: Variable): { minimum: number; maximum: number } | null {
  const { minimum, maximum } = z.toJSONSchema(shape, { io: 'output', unrepresentable: 'any' });
  return minimum === undefined || maximum === undefined ? null : { minimum, maximum };
}
export const flag = z.enum(['true', 'false']).transform((value) => value === 'true');
/** Comma-separated; empty entries are left out. */
export const list = <Output>(entry: z.ZodType<Output, string>, most = 20) =>
  z
    .string()
    .transform((value) =>
      value
        .split(',')
        .map((each) => each.trim())
        .filter((each) => each !== ''),
    )
    .pipe(z.array(entry).max(most));
/** A name of a host, as `Host` and `Origin` have it. */
export const hostName = z
  .string()
  .regex(/^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, {
    error: 'must be host names in lower case, without a scheme or a port',
  });
export const evmAddress = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, 'must be an address: 0x and 40 hex digits')
  .transform((value) => value as `0x${string}`);
/** A private key of an EVM chain, or a key that AWS KMS or a signer process holds, with its address. */
export const evmKey = z
  .string()
  .regex(
    /^(0x[0-9a-fA-F]{64}|(aws-kms:[\w:/-]{1,200}|signer:\/[\w./-]{1,100})@0x[0-9a-fA-F]{40})$/,
    'must be private keys (0x and 64 hex digits), aws-kms:KEY@ADDRESS or signer:SOCKET@ADDRESS',
  )
  .transform((value) => value as EvmKey);
export const url = z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/\/$/, ''));

/** Whether it has too few different characters to be drawn at random. */
export function isTooRegular(secret: string, leastCharacters: number): boolean {
  return new Set(secret).size < leastCharacters;
}
