/** Bugs in what goes to an upstream and what comes back: the address, the headers, and when an answer counts as one. */
import type { MutantsOfFile } from '../mutant.ts';

const WIRE = 'packages/proxy/src/wire';

export const PROXY_WIRE_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: `${WIRE}/path.ts`,
    tests: [`${WIRE}/path.test.ts`],
    bugs: [
      ['if (/[/\\\\]/.test(plain))', 'if (/[/]/.test(plain))'],
      ['if (/%[\\da-f]{2}/i.test(text)) return', 'if (text === raw) return'],
      ["text.normalize('NFKC') : text;\n  if", 'text : text;\n  if'],
      ['(?:;|$)/.test(plain)', '$/.test(plain)'],
      ['if (/\\p{Cc}/u.test(plain))', 'if (plain === raw)'],
      ['if (/[^\\x21-\\x7e]/.test(target))', "if (target === '')"],
      ["if (target.includes('#'))", "if (target.startsWith('#'))"],
      ['if (found.isAmbiguous)\n', 'if (found.values.length > 9)\n'],
      [".replace(/[\\s.]+$/, '')", ''],
      ["text.split(/[;.]/, 1)[0] ?? ''", "''"],
      ["text.split(';', 1)[0] ?? ''", "''"],
      ["if (text === '' || node.parameter === null)", 'if (node.parameter === null)'],
      ['segments.slice(cut).map', 'segments.slice(0).map'],
      ['segments.slice(cut).map(({ raw }) => raw)', 'segments.slice(cut).map(({ text }) => text)'],
      ['if (taken !== undefined)\n', 'if (taken === place.prefix)\n'],
      ['.split(/[&;]/)', ".split('&')"],
    ],
  },
  {
    file: `${WIRE}/headers.ts`,
    tests: [`${WIRE}/headers.test.ts`],
    bugs: [
      [
        'if (!isWanted || !mayGoOn(name) || own.has(name)) continue;',
        'if (!isWanted || own.has(name)) continue;',
      ],
      [
        'if (!isWanted || !mayGoOn(name) || own.has(name)) continue;',
        'if (!isWanted || !mayGoOn(name)) continue;',
      ],
      [
        'if (!isWanted || !mayGoOn(name) || own.has(name)) continue;',
        'if (!mayGoOn(name) || own.has(name)) continue;',
      ],
      ['if (ofConnection.has(name))\n', 'if (ofConnection.size > 9)\n'],
      ['if (!VALUE.test(value)) return { refused', "if (value === '') return { refused"],
      ["if (parts.isAnswerRead) set.delete('accept-encoding');", ''],
      ['!(named.has(name) && mayComeBack(name))', '!named.has(name)'],
      ['if (value === undefined || ofConnection.has(name)) continue;', 'if (value === undefined) continue;'],
      ['!OURS.test(name) && !PRETENDED.test(name)', '!OURS.test(name)'],
      ["name === 'content-range' && status === 206", "name === 'content-range'"],
      ['    ...DECIDED,\n', ''],
      ["if (value === '' || !VALUE.test(value))", "if (value === '')"],
    ],
  },
  {
    file: `${WIRE}/outcome.ts`,
    tests: [`${WIRE}/outcome.test.ts`],
    bugs: [
      ['if (status === 206 && !mayBePartial) return false;', ''],
      ['if (REFUSES_US.includes(status)) return', 'if (status === 0) return'],
      ['[401, 402, 403, 407]', '[401, 403, 407]'],
      ['if (status >= 500) return', 'if (status >= 999) return'],
      ['if (isEncoded && !rule.mayBeEncoded)', 'if (isEncoded && rule.mayBePartial)'],
      ['|| !Object.hasOwn(at, name)) return undefined;', ') return undefined;'],
      ["if (framing === 'close' && !rule.mayEndByClose)", 'if (rule.mayEndByClose)'],
      ["(typeof read.value !== 'object' || read.value === null)", 'read.value === null'],
      ['if (bytes < rule.leastBytes)', 'if (bytes + 1 < rule.leastBytes)'],
      ['fatal: true', 'fatal: false'],
      ["if (reason === 'failed') return OUTAGES.includes(upstreamStatus ?? 0);", ''],
    ],
  },
  {
    file: `${WIRE}/exchange.ts`,
    tests: [`${WIRE}/upstream.test.ts`, `${WIRE}/stream.test.ts`],
    bugs: [
      ['if (length === this.#bytes) {', 'if (length === -1) {'],
      ['if (this.#bytes > reading.mostBytes) {', 'if (this.#bytes > 10 * reading.mostBytes + 99_000_000) {'],
      ['    controller.pause();\n', ''],
      ["    // That nothing comes is then the reader's doing.\n    this.#stopTimer();\n", ''],
      ['if (this.#interimHeads > MOST_INTERIM_HEADS)', 'if (this.#interimHeads < 0)'],
      ["coding.trim().toLowerCase() === 'chunked' ? 'chunked' : null", "coding !== '' ? 'chunked' : null"],
      ['    this.#controller?.abort(new Error(failed.detail));\n', ''],
      ['    if (this.#bytes > MOST_DROPPED_BYTES) this.stop', '    if (this.#bytes < 0) this.stop'],
    ],
  },
  {
    file: `${WIRE}/lanes.ts`,
    tests: [`${WIRE}/upstream.test.ts`],
    bugs: [
      ["if (event === 'end' && isWithinChunks()) {", "if (event === '') {"],
      ["      event === 'error' && error", "      event === '' && error"],
    ],
  },
  {
    file: `${WIRE}/upstream.ts`,
    tests: [`${WIRE}/upstream.test.ts`, `${WIRE}/stream.test.ts`],
    bugs: [
      ['if (exchange.hasFirstByte) return false;', ''],
      ["return request.repeat !== 'never';", 'return true;'],
      [" && failed.wasSent && request.repeat === 'keyed'", " && request.repeat !== 'never'"],
      ['attempt === 1 &&', 'attempt <= 2 &&'],
      ['...(keepAlive ? {} : { reset: true })', '...(keepAlive ? {} : { reset: false })'],
      ['if (failed !== null && isOutage(failed)) leave.failed();', 'if (failed !== null) leave.failed();'],
      ['if (refused === null) leave.began();', ''],
      ['{ ...ended, wasSent }', 'ended'],
      ['        call.end();\n      });', '      });'],
      ["return error instanceof NoPlace ? 'full' : this.stopped;", 'return this.stopped;'],
      ["signal?.addEventListener('abort', this.#left);", ''],
      ['this.#stop = () => waiting.abort();', 'this.#stop = () => {};'],
      ['throw new UpstreamBroke(piece);', 'return;'],
      ["exchange.stop('abandoned', 'its reader left');", ''],
      ['if (this.#running.size === 0) return Promise.resolve();', 'return Promise.resolve();'],
      ['return tooLong(head, request.mostAnswerBytes) ?? reading(head);', 'return reading(head);'],
    ],
  },
  {
    file: `${WIRE}/upstream.ts`,
    tests: ['apps/shop/test/own-api/places.test.ts'],
    bugs: [
      ['share: most(concurrency),', 'share: concurrency,'],
      ['visitor: Visitor = {', '_: Visitor | undefined, visitor: Visitor = {'],
    ],
  },
  {
    file: 'packages/proxy/src/sell/free-route.ts',
    tests: ['apps/shop/test/own-api/places.test.ts'],
    bugs: [['caller: FREE_CALLERS };', 'caller: requestId };']],
  },
  {
    file: `${WIRE}/event-watch.ts`,
    tests: [`${WIRE}/event-watch.test.ts`],
    bugs: [
      [
        'if (this.#dataBytes > this.#mostBytes) this.#data = null;\n    else this.#data.push(value);',
        'this.#data = [value];',
      ],
      ['      this.#data = [];\n', ''],
      [
        'const isSecondHalf = chunk[at] === LF && at === from && this.#isAfterReturn;',
        'const isSecondHalf = false;',
      ],
    ],
  },
  {
    file: `${WIRE}/breaker.ts`,
    tests: [`${WIRE}/breaker.test.ts`],
    bugs: [
      ['if (sinceMs >= 0 && sinceMs < openMs)', 'if (sinceMs < openMs)'],
      ['isTrial || (isOver && this.#openedAtMs === null)', 'isTrial || isOver'],
      ['return this.#isTrying ? TRYING_RETRY_MS : null;', 'return null;'],
      ['      if (!isGiven) return;\n      isGiven = false;', ''],
    ],
  },
];
