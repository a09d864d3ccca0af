/** Bugs in how the client pays: a second payment for one call, more than a limit, or a payment to a sandbox. */
import type { MutantsOfFile } from '../mutant.ts';

const CLIENT_TEST = 'packages/client/src/client.test.ts';
const BOOK_TEST = 'packages/client/src/buying/store-book.test.ts';
const PAY_TEST = 'packages/mcp-bridge/src/pay.test.ts';
const PURCHASE_TEST = 'packages/mcp-bridge/src/purchase.test.ts';

export const CLIENT_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/client/src/buying/buyer.ts',
    tests: [CLIENT_TEST, PURCHASE_TEST],
    bugs: [
      ['const open = await parts.book().openFor(request);', 'const open = null as Purchase | null;'],
      ['return present(parts, opened, call);', 'return present(parts, { ...opened, payment: text }, call);'],
      ['aboveCall = maxCallMicros !== null && micros > maxCallMicros', 'aboveCall = false'],
      [
        '{ dayMicros: limits.maxDayMicros, serviceMicros: serviceLimit(limits, service) }',
        '{ dayMicros: null, serviceMicros: null }',
      ],
      ["if (said === 'no') return", "if (said === 'no' && micros < 0n) return"],
      ['isFirst: bought.isFirst && isFirst', 'isFirst: true'],
      ['isFirst: attempt === 0', 'isFirst: true'],
      ['await parts.book().denied(leaving.send);', ''],
      ['if (!call.signal.aborted) outcome = reading.outcome;', 'outcome = reading.outcome;'],
      ['code > 0 ? code !== REQUEST_TIMEOUT : NOT_TAKEN.includes(code)', 'true'],
      ['charged > micros ? charged : micros', 'charged < micros ? charged : micros'],
      ['[url, payer.name, service, named, inOrder(input)]', '[url, payer.name, named, inOrder(input)]'],
      ['[url, payer.name, service, named, inOrder(input)]', '[url, payer.name, service, inOrder(input)]'],
      ['[url, payer.name, service, named, inOrder(input)]', '[url, payer.name, service, named]'],
    ],
  },
  {
    file: 'packages/client/src/buying/store-book.ts',
    tests: [BOOK_TEST, CLIENT_TEST],
    bugs: [
      ['if (known !== null) return purchaseOf(known);', ''],
      ['sumOf(pages, nowMs(), null) + micros > dayMicros', 'micros > dayMicros'],
      ['sumOf(pages, nowMs(), service) + micros > serviceMicros', 'micros > serviceMicros'],
      ["outcome === 'uncharged' || untilMs > nowMs()", 'untilMs > nowMs()'],
      ["outcome === 'uncharged' || untilMs > nowMs()", "outcome === 'uncharged'"],
      ['if (isKnown || !again) addSpent', 'addSpent'],
      ['    addSpent(pages, dayOf(heldUntilMs ?? sentMs), service, BigInt(micros));\n', ''],
      ['if (kept) keep(pages', 'if (!kept) keep(pages'],
      [
        'if (Object.keys(pages.open).length >= MAX_OPEN || isFullOfNames(pages, purchase)) return',
        'if (isFullOfNames(pages, purchase)) return',
      ],
      ['store.exclusively === undefined ? run() : store.exclusively(run)', 'run()'],
    ],
  },
  {
    file: 'packages/client/src/client.ts',
    tests: [CLIENT_TEST],
    bugs: [
      ['bought.answer.status !== 402 || !bought.isFirst', 'bought.answer.status !== 402'],
      [
        'const limits = { ...usual, ...options.limits };',
        'const limits = { maxCallMicros: null, maxDayMicros: null, ...options.limits };',
      ],
      ["(await approve({ service, input: sent, micros, question })) === true ? 'yes' : 'no'", "'yes'"],
      ["if (approve === undefined) return 'cannot';", "if (approve === undefined) return 'yes';"],
    ],
  },
  {
    file: 'packages/client/src/payer.ts',
    tests: [CLIENT_TEST],
    bugs: [
      ['sandbox === terms.sandbox', 'true'],
      ['sandbox === terms.sandbox', 'sandbox || !terms.sandbox'],
      ['each.micros < best.micros ? each : best', 'each.micros > best.micros ? each : best'],
    ],
  },
  {
    file: 'packages/client/src/http.ts',
    tests: [CLIENT_TEST],
    bugs: [
      ['body.sandbox === true || x402.sandbox === true || accepts.some(isMarked)', 'body.sandbox === true'],
      ['body.sandbox === true || x402.sandbox === true || accepts.some(isMarked)', 'accepts.some(isMarked)'],
      ["if (terms !== null) return 'refused';", ''],
      ["status >= 400 && status < 500 && status !== 408 ? 'uncharged' : 'unknown'", "'uncharged'"],
    ],
  },
  {
    file: 'packages/client/src/cli/input.ts',
    tests: ['packages/client/src/cli/input.test.ts'],
    bugs: [
      [
        'if (isClosed && !Object.hasOwn(properties, field))',
        'if (!Object.hasOwn(properties, name) && !isClosed)',
      ],
    ],
  },
  {
    file: 'packages/client/src/address.ts',
    tests: [CLIENT_TEST],
    bugs: [
      [
        "if (pays && url.protocol === 'http:' && !isThisMachine(url))",
        "if (pays && url.protocol === 'ftp:' && !isThisMachine(url))",
      ],
    ],
  },
  {
    file: 'packages/client/src/x402.ts',
    tests: [PAY_TEST],
    bugs: [
      ["scheme === 'exact' &&\n", ''],
      ['    network === wanted &&\n', ''],
      ["    (extra.assetTransferMethod ?? 'eip3009') === 'eip3009' &&\n", ''],
      ['validMs <= MOST_VALID_MS &&\n', ''],
      ['isUsdc(wanted, asset)', 'true'],
    ],
  },
  {
    file: 'packages/client/src/mpp.ts',
    tests: [PAY_TEST],
    bugs: [
      ['    splits.length === 0 &&\n', ''],
      ['    isSigned &&\n', ''],
      ['isUsdc(NETWORKS[name], request.currency)', 'true'],
      ["    intent === 'charge' &&\n", ''],
    ],
  },
];
