/** Bugs in the sale of other servers' routes: what is bought, what reaches an upstream, and what comes back. */
import type { MutantsOfFile } from '../mutant.ts';

export const PROXY_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/proxy/src/sell/own-addresses.ts',
    tests: ['packages/proxy/src/sell/own-addresses.test.ts'],
    bugs: [
      ['      return { whole: address, parts: [] };', '      return { whole: null, parts: [] };'],
      ["if (theirs.length > 1 && theirs.at(-1) === '') theirs.pop();", ''],
      ['if (!meets || !methods.includes(method)) continue;', 'if (!meets) continue;'],
      ['address.segments[0]?.text.toLowerCase()', 'address.segments[0]?.text'],
    ],
  },
  {
    file: 'packages/proxy/src/sell/route-call.ts',
    tests: ['packages/proxy/src/sell/route-service.test.ts'],
    bugs: [
      ['JSON.stringify([route.method, url, counted])', 'JSON.stringify([route.method, url])'],
      [
        'JSON.stringify([route.method, url, counted])',
        'JSON.stringify([route.method, route.path.text, counted])',
      ],
      ["    .update('\\n')\n    .update(body ?? '')\n", ''],
      [
        '(a.name === b.name ? 0 : a.name < b.name ? -1 : 1)',
        '(a.name + a.value < b.name + b.value ? -1 : 1)',
      ],
      ["...(body === null ? [] : ['content-type'])", ''],
      ['body.length > route.maxRequestBytes', 'false'],
      [
        "if ('refused' in headers) throw invalidInput('headers', headers.refused);",
        "if ('refused' in headers) throw new Error(headers.refused);",
      ],
    ],
  },
  {
    file: 'packages/proxy/src/sell/ask-upstream.ts',
    tests: ['packages/proxy/src/sell/route-service.test.ts'],
    bugs: [
      ['.update(`upstream', ".update('' && `upstream"],
      [
        "if (answered.kind === 'failure') throw failed(route, answered);",
        "if (answered.kind === 'failure') throw failed(route, { ...answered, reason: 'overloaded' });",
      ],
      [
        'if (holdsCredential(route, answered.body, ...Object.values(headers))) throw repeatedCredential();',
        '',
      ],
      [
        'if (holdsCredential(route, answered.body, ...Object.values(headers)))',
        'if (holdsCredential(route, answered.body))',
      ],
      ['mostAnswerBytes: mostBytes,', 'mostAnswerBytes: Number.MAX_SAFE_INTEGER,'],
      ['hasNot: success.hasNot,', 'hasNot: [],'],
      ['mayEndByClose: success.mayEndByClose,', 'mayEndByClose: true,'],
    ],
  },
  {
    file: 'packages/proxy/src/sell/ask-upstream.ts',
    tests: ['apps/shop/test/own-api/metered.test.ts'],
    bugs: [
      ['meter?.see(answered.body);', ''],
      ['meter.see(next.value);', ''],
      ['pieces: meter === null ? pieces : measuredPieces(pieces, meter),', 'pieces,'],
    ],
  },
  {
    file: 'packages/proxy/src/sell/route-call.ts',
    tests: ['apps/shop/test/own-api/metered.test.ts'],
    bugs: [["if (sale.kind === 'metered') return true;", '']],
  },
  {
    file: 'packages/proxy/src/sell/route-service.ts',
    tests: ['apps/shop/test/own-api/metered.test.ts'],
    bugs: [
      [
        '? { metered: meteredPriceOf(route.sale.meter) }',
        '? { metered: meteredPriceOf(route.sale.meter), mpp: true as const }',
      ],
    ],
  },
  {
    file: 'packages/proxy/src/sell/no-answer.ts',
    tests: ['packages/proxy/src/sell/route-service.test.ts'],
    bugs: [
      ["if (holdsCredential(route, body ?? '', contentType ?? '')) return repeatedCredential();", ''],
      ["holdsCredential(route, said ?? '') ? null : said", 'said'],
    ],
  },
  {
    file: 'packages/proxy/src/sell/route-service.ts',
    tests: ['packages/proxy/src/sell/route-service.test.ts'],
    bugs: [["if (isOpen) throw unanswered('down', retryAfterMs, 'it has been failing');", '']],
  },
  {
    file: 'packages/proxy/src/part.ts',
    tests: ['apps/shop/test/own-api/addresses.test.ts'],
    bugs: [
      ['if (isReserved(url)) return null;', ''],
      ["(length > 0 || headers['transfer-encoding'] !== undefined)", '(length > 0)'],
      [
        "if (request.method === 'HEAD') return sendFinished(reply, { status: 204, headers: {}, body: '' });",
        '',
      ],
      ['if (!verdict.allowed) throw rateExceeded(verdict);', ''],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/quotes.ts',
    tests: ['packages/core/src/paid-call/inside/quotes.test.ts'],
    bugs: [
      ['const name = `', 'const name = called.address || `'],
      ['const name = `', 'const name = String(called.priceMicros) || `'],
      [
        'priceMicros: called?.priceMicros ?? usdToMicros(service.priceUsd),',
        'priceMicros: usdToMicros(service.priceUsd),',
      ],
      ['maxSize: MOST_REMEMBERED', 'maxSize: MOST_REMEMBERED + 1'],
      ['    if (sold.revision !== current) {', '    if (sold.revision > current) {'],
    ],
  },
  {
    file: 'packages/proxy/src/wire/upstream.ts',
    tests: ['packages/proxy/src/wire/upstream.test.ts'],
    bugs: [['      if (this.#isRetired) void this.#closePool();\n', '']],
  },
];
