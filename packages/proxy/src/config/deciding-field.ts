/**
 * Finds the field of a JSON body that decides a price, in the bytes themselves: JSON.parse keeps the last of two equal names, another
 * program the first, and both would be right. A body that two programs could read differently there is refused.
 */
import { isUtf8 } from 'node:buffer';
import { likeness, priceRefused } from './price-refused.ts';

/** The value that decides, as a text: a text itself, or the plain form of a number or of a boolean. */
export type DecidingValue =
  | { readonly kind: 'text' | 'number' | 'boolean'; readonly text: string }
  | { readonly kind: 'absent' };

const ABSENT: DecidingValue = { kind: 'absent' };
const SPACE = /[ \t\n\r]*/y;
const ATOM = /[-+.\w]*/y;
const SIGN = /["{}[\]]/g;
/** A number without a fraction that ends in zero, an exponent or a sign that says nothing. */
const PLAIN_NUMBER = /^-?(0|[1-9]\d*)(\.\d*[1-9])?$/;

/**
 * Reads the field.
 *
 * @param names of the field and of the objects around it, from the outermost one on
 * @throws Problem 400 when the body is no JSON object in UTF-8, or when anything on the way to the field is there twice, in another
 *   spelling too, or is not plain
 */
export function decidingField(body: Uint8Array, names: readonly string[]): DecidingValue {
  if (body.length === 0) return ABSENT;
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf)
    throw priceRefused('PRICE_NOT_PLAIN', 'body', 'must begin without a byte order mark');
  if (!isUtf8(body)) throw priceRefused('PRICE_NOT_PLAIN', 'body', 'must be UTF-8');
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw priceRefused('PRICE_NOT_PLAIN', 'body', 'must be JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw priceRefused('PRICE_NOT_PLAIN', 'body', 'must be a JSON object');
  return new Scan(text).field(names);
}

/** Walks through a text that is known to be JSON. */
class Scan {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads the object that begins here; everything in it is passed over but the way to the field. */
  field(names: readonly string[], depth = 0): DecidingValue {
    const path = names.slice(0, depth + 1).join('.');
    const name = names[depth] ?? '';
    const alike = likeness(name);
    let found: DecidingValue | null = null;
    this.#space();
    this.#at += 1;
    for (;;) {
      this.#space();
      const next = this.#text[this.#at];
      this.#at += next === '}' || next === ',' ? 1 : 0;
      if (next === '}') return found ?? ABSENT;
      if (next === ',') continue;
      const written = this.#string();
      this.#space();
      this.#at += 1;
      this.#space();
      if (written === name) {
        if (found !== null)
          throw priceRefused('PRICE_DECIDED_TWICE', path, 'decides the price and stands in the body twice');
        found = this.#value(names, depth, path);
        continue;
      }
      if (likeness(unescaped(written)) === alike)
        throw priceRefused('PRICE_NOT_PLAIN', path, `decides the price: write its name exactly so, and once`);
      this.#skip();
    }
  }

  #value(names: readonly string[], depth: number, path: string): DecidingValue {
    const first = this.#text[this.#at];
    if (first === 'n') {
      this.#skip();
      return ABSENT;
    }
    if (depth < names.length - 1) {
      if (first !== '{')
        throw priceRefused('PRICE_NOT_PLAIN', path, 'decides the price and must be an object');
      return this.field(names, depth + 1);
    }
    if (first === '"') return { kind: 'text', text: unescaped(this.#string()) };
    if (first === '{' || first === '[')
      throw priceRefused(
        'PRICE_NOT_PLAIN',
        path,
        'decides the price and must be a text, a number or a boolean',
      );
    const start = this.#at;
    this.#skip();
    const text = this.#text.slice(start, this.#at);
    if (first === 't' || first === 'f') return { kind: 'boolean', text };
    if (!PLAIN_NUMBER.test(text) || String(Number(text)) !== text)
      throw priceRefused('PRICE_NOT_PLAIN', path, 'decides the price: write the number in its shortest form');
    return { kind: 'number', text };
  }

  #space(): void {
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.#at = SPACE.lastIndex;
  }

  /** Reads a text as it is written, without its quotes. */
  #string(): string {
    const start = this.#at + 1;
    let end = this.#text.indexOf('"', start);
    while (isEscaped(this.#text, start, end)) end = this.#text.indexOf('"', end + 1);
    this.#at = end + 1;
    return this.#text.slice(start, end);
  }

  /** Passes over a value, however deep it is. */
  #skip(): void {
    const first = this.#text[this.#at];
    if (first === '"') {
      this.#string();
      return;
    }
    if (first !== '{' && first !== '[') {
      ATOM.lastIndex = this.#at;
      ATOM.test(this.#text);
      this.#at = ATOM.lastIndex;
      return;
    }
    let open = 0;
    do {
      SIGN.lastIndex = this.#at;
      const sign = SIGN.exec(this.#text)?.[0];
      if (sign === undefined) return;
      this.#at = SIGN.lastIndex;
      if (sign === '"') {
        this.#at -= 1;
        this.#string();
      } else open += sign === '{' || sign === '[' ? 1 : -1;
    } while (open > 0);
  }
}

/** Whether an odd number of backslashes stands before a quote, none of them before the text's start. */
function isEscaped(text: string, start: number, quote: number): boolean {
  let first = quote;
  while (first > start && text[first - 1] === '\\') first -= 1;
  return (quote - first) % 2 === 1;
}

function unescaped(written: string): string {
  if (!written.includes('\\')) return written;
  const text: unknown = JSON.parse(`"${written}"`);
  return typeof text === 'string' ? text : written;
}
