import { arrayLiteral } from './array-literal.ts';

/**
 * How arrays come out of the database. The driver would ask each new connection for the types of arrays, in a promise that
 * nobody holds and that ends the process when the connection breaks just then.
 */

/**
 * Reads an array of one dimension as PostgreSQL writes it.
 * https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO
 */
function parseArray<T>(text: string, parse: (element: string) => T): (T | null)[] {
  const elements: (T | null)[] = [];
  const token = /"((?:[^"\\]|\\.)*)"|([^,{}"]+)/gsy;
  // Past the opening brace, then past each comma.
  for (let at = 1; text[at] !== '}' && at < text.length; at = token.lastIndex + 1) {
    token.lastIndex = at;
    const [, quoted, plain] = token.exec(text) ?? [];
    if (quoted !== undefined) elements.push(parse(quoted.replace(/\\(.)/gs, '$1')));
    else if (plain === 'NULL') elements.push(null);
    else if (plain !== undefined) elements.push(parse(plain));
    else throw new Error('the database sent an array of more than one dimension');
    if (text[token.lastIndex] === '}') break;
  }
  return elements;
}

const arrayOf = <T>(oid: number, parse: (element: string) => T) => ({
  to: oid,
  from: [oid],
  serialize: (value: string | Parameters<typeof arrayLiteral>[0]) =>
    typeof value === 'string' ? value : arrayLiteral(value),
  parse: (text: string) => parseArray(text, parse),
});

/** For the driver's `types`, by the names of `pg_type`. */
export const ARRAY_TYPES = {
  _bool: arrayOf(1_000, (element) => element === 't'),
  _int2: arrayOf(1_005, Number),
  _int4: arrayOf(1_007, Number),
  _text: arrayOf(1_009, String),
  _int8: arrayOf(1_016, BigInt),
  _numeric: arrayOf(1_231, String),
  _uuid: arrayOf(2_951, String),
};
