/** Bugs in what a configured route costs: in the file that says it, and in the request that decides it. */
import type { MutantsOfFile } from '../mutant.ts';

const PRICES = ['packages/proxy/src/config/price-of-request.test.ts'];
const LOADED = ['packages/proxy/src/config/load.test.ts'];

export const PROXY_PRICES_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/proxy/src/config/deciding-field.ts',
    tests: PRICES,
    bugs: [
      ['if (found !== null)\n', 'if (found === undefined)\n'],
      ['likeness(unescaped(written)) === alike', 'unescaped(written) === name'],
      ['likeness(unescaped(written)) === alike', 'likeness(written) === alike'],
      ['if (written === name)', 'if (unescaped(written) === name)'],
      ['!PLAIN_NUMBER.test(text) || ', ''],
      [' || String(Number(text)) !== text', ''],
      ['if (!isUtf8(body))', 'if (body.length < 0)'],
      ['body[0] === 0xef', 'body[0] === 0xee'],
      [' || Array.isArray(value)', ''],
      [
        "if (first === '{' || first === '[')",
        "if (first === '[')",
        'An object is no plain number either, and is refused as that.',
      ],
      ["if (first !== '{')\n", "if (first === '[')\n"],
      ['(quote - first) % 2 === 1', 'quote > first'],
    ],
  },
  {
    file: 'packages/proxy/src/config/price-refused.ts',
    tests: PRICES,
    bugs: [
      [".normalize('NFKC')", ''],
      ['.toLowerCase()', ''],
      ["text.split('\\0', 1)", '[text]'],
      ['/[\\s_-]/g', '/[_-]/g'],
    ],
  },
  {
    file: 'packages/proxy/src/config/price-of-request.ts',
    tests: PRICES,
    bugs: [
      ['    refuseUnreadable(request);\n', ''],
      ['if (inQuery(outermost, request.query)', "if (inQuery('', '')"],
      ['if (inBody(source.name, request)', "if (inQuery('', '')"],
      ["if (text.includes(';'))", "if (text === ';')"],
      ['if (meant !== undefined)', 'if (meant === field)'],
      ['likeness(text) === likeness(value)', 'text === value'],
      ['Number(text) === Number(value)', 'text === value'],
      ['if (!/^(0|-?[1-9]\\d{0,14})$/.test(text))', 'if (!Number.isFinite(Number(text)))'],
      ['count <= upTo', 'count < upTo'],
      ["written.replaceAll('_', '-') === name.replaceAll('_', '-')", 'written === name'],
      ['if (another !== undefined) throw twice(name);', ''],
      ['if (another !== undefined) throw twice(field);', ''],
      ["if (another !== undefined) throw twice('content-type');", ''],
      ["|| text.includes(',')", ''],
      ["(name.split('[', 1)[0] ?? '')", 'name'],
      ["decodedName(each.split('=', 1)[0] ?? '')", "(each.split('=', 1)[0] ?? '')"],
      ['[pair, ...behind].some', '[pair].some'],
      ['rawName === name && behind.length === 0', 'rawName === name'],
      ['turn < 3', 'turn < 1'],
      ['if (/[A-Za-z0-9._~-]/.test(String', 'if (/[~]/.test(String'],
      ['/\\p{Cc}|%[\\da-f]{2}/iu', '/\\p{Cc}/iu'],
      ['/\\p{Cc}|%[\\da-f]{2}/iu', '/%[\\da-f]{2}/iu'],
      ["value.trim().toLowerCase() !== 'identity' && ", "value.trim() === 'none' && "],
      ['charsets.length > 1 || ', ''],
      ['type?.isExact !== true || ', ''],
    ],
  },
  {
    file: 'packages/proxy/src/config/resolve-sale.ts',
    tests: LOADED,
    bugs: [
      ['if (micros === 0n)', 'if (micros < 0n)'],
      ['if (ways.length !== 1)', 'if (ways.length === 0)'],
      ['if (ways.length !== 1)', 'if (ways.length > 1)'],
      ['upTo <= before', 'upTo < before'],
      ['if (written.length !== 1)', 'if (written.length === 0)'],
      ['path !== undefined && !names.includes(name)', 'path === name && names.length > 9'],
    ],
  },
  {
    file: 'packages/proxy/src/config/resolve.ts',
    tests: LOADED,
    bugs: [
      ['if (twin === undefined) {', 'if (twin === undefined || twin !== route) {'],
      ['if (refused !== null) complain', 'if (refused === key) complain'],
      ['  Object.freeze(value);\n', ''],
    ],
  },
  {
    file: 'packages/proxy/src/config/resolve-upstream.ts',
    tests: LOADED,
    bugs: [
      ["url.username !== '' || url.password !== ''", "url.password === 'x'"],
      ['else if (isCredentialHeader(name))', 'else if (name === value)'],
      ["if (value === undefined || value === '')", 'if (value === undefined)'],
      ['Object.hasOwn(env, variable) ? env[variable] : undefined', 'env[variable]'],
      ['!/^[\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?$/.test(value)', 'value === name'],
      ['value.length > MOST_SECRET_CHARACTERS || ', ''],
    ],
  },
];
