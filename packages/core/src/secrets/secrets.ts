/**
 * The versions of the server's secret. What is new is made with the current one, the first; what is there already is
 * recognized by all of them, so that a secret can be changed and nothing that followed from it is lost.
 */
import { createHmac } from 'node:crypto';

export interface Secret {
  /** A name that tells nothing about it: 16 hex digits. Stands beside what was made with it. */
  readonly id: string;
  readonly value: string;
}

export interface Secrets {
  /** For whatever is made from now on. */
  readonly current: Secret;
  /** All that can be recognized; the current one first. */
  readonly all: readonly Secret[];
}

/**
 * @param values the current secret first
 * @throws when there is none, or one stands there twice
 */
export function secretsOf(values: readonly string[]): Secrets {
  const all = values.map((value) => new Version(value));
  const [current] = all;
  if (current === undefined) throw new Error('a server needs a secret');
  if (new Set(values).size < values.length) throw new Error('a secret stands twice');
  return { current, all };
}

/** Shows its id alone, to whoever writes it into a log. */
class Version implements Secret {
  readonly id: string;
  readonly #value: string;
  constructor(value: string) {
    this.id = idOf(value);
    this.#value = value;
  }
  get value(): string {
    return this.#value;
  }
}

function idOf(value: string): string {
  return createHmac('sha256', value).update('farebox secret version').digest('hex').slice(0, 16);
}
