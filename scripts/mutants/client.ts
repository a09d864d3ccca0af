/** Bugs in how the client pays: a second payment for one call, more than a limit, or a payment to a sandbox. */
import type { MutantsOfFile } from '../mutant.ts';

const CLIENT_TEST = 'packages/client/src/client.test.ts';
const BOOK_TEST = 'packages/client/src/buying/store-book.test.ts';
const LIES_TEST = 'packages/client/src/lying-server.test.ts';
const STORE_TEST = 'packages/client/src/store-attacks.test.ts';
const TOOLS_TEST = 'packages/client/src/tools.test.ts';
const WORDS_TEST = 'packages/client/src/cli/hostile-words.test.ts';
const PAY_TEST = 'packages/mcp-bridge/src/pay.test.ts';
const PURCHASE_TEST = 'packages/mcp-bridge/src/purchase.test.ts';

export const CLIENT_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/client/src/buying/buyer.ts',
    tests: [CLIENT_TEST, PURCHASE_TEST, STORE_TEST],
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
      [
        "if (outcome === 'paid') await parts.answered?.(",
        "if (outcome === 'refused') await parts.answered?.(",
      ],
      ['charged > micros ? charged : micros', 'charged < micros ? charged : micros'],
      ['[url, payer.name, service, named, inOrder(input)]', '[url, payer.name, named, inOrder(input)]'],
      ['[url, payer.name, service, named, inOrder(input)]', '[url, payer.name, service, inOrder(input)]'],
      ['[url, payer.name, service, named, inOrder(input)]', '[url, payer.name, service, named]'],
    ],
  },
  {
    file: 'packages/client/src/buying/store-book.ts',
    tests: [BOOK_TEST, CLIENT_TEST, STORE_TEST],
    bugs: [
      ['          dropUnsent(pages, request);\n', ''],
      ['entry.request === request && entry.untilMs === 0', 'entry.request === request'],
      ['          delete pages.open[purchase.id];\n          await save();\n', ''],
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
    tests: [CLIENT_TEST, LIES_TEST, STORE_TEST],
    bugs: [
      ['if (route !== null) addressBelow(url, route.path);', ''],
      ['  addressBelow(till.url, path);\n', ''],
      ['if (route === null && !/^[A-Za-z0-9]', 'if (route === null && !/^[.A-Za-z0-9]'],
      ['if (!/^[\\x21-\\x7e]{1,400}$/.test(key))', "if (key === '')"],
      ['return await Promise.race([answer, left]);', 'return await answer;'],
      ["if (said.id !== receipt.callId) doubts.push('the server tells of another call');", ''],
      ['bought.answer.status !== 402 || !bought.isFirst', 'bought.answer.status !== 402'],
      [
        'const limits = { ...usual, ...options.limits };',
        'const limits = { maxCallMicros: null, maxDayMicros: null, ...options.limits };',
      ],
      ["return said === true ? 'yes' : 'no';", "return said !== false ? 'yes' : 'no';"],
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
    tests: [CLIENT_TEST, LIES_TEST],
    bugs: [
      ["redirect: 'error'", "redirect: 'follow'"],
      ['if (bytes > MAX_ANSWER_BYTES) {', 'if (bytes < 0) {'],
      ['signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])', 'signal'],
      ['if (!whole.startsWith(', "if (whole === '' || ''.startsWith("],
      ['if (/^\\d{1,9}$/.test(text)) return', 'if (/^\\d/.test(text)) return'],
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
    file: 'packages/client/src/receipt.ts',
    tests: [CLIENT_TEST, LIES_TEST, STORE_TEST],
    bugs: [
      [
        'payer !== null && asked.payer !== null && payer !== asked.payer',
        'payer === asked.payer && payer === null',
      ],
      ['if (!settled.isSettled) doubts', 'if (!settled.isSaid) doubts'],
      ['micros === 0n || (microsOf(used) ?? 0n) <= micros', 'micros >= 0n'],
      ['{1,100}$/.test(value) ? value : null', '{1,9000}$/.test(value) ? value : null'],
      ['store.exclusively === undefined ? keep() : store.exclusively(keep)', 'keep()'],
      ['const next = turn.then(() => (', 'const next = Promise.resolve().then(() => ('],
      ['if (receipt.callId !== null && kept.some(', 'if (receipt.callId === null && kept.some('],
    ],
  },
  {
    file: 'packages/client/src/folder-lock.ts',
    tests: [STORE_TEST],
    bugs: [
      [
        'host === here ? !(await isAlive(pid, began)) || ageMs > DEAD_HERE_MS :',
        'host === here ? ageMs > DEAD_ELSEWHERE_MS :',
      ],
      ['host === here ? !(await isAlive(pid, began)) || ageMs > DEAD_HERE_MS :', 'host === here ? false :'],
      ['if (!isDead) return false;', ''],
      ['if (holder === token) {', 'if (holder !== "") {'],
      ['    await before();\n', ''],
    ],
  },
  {
    file: 'packages/client/src/node.ts',
    tests: [STORE_TEST],
    bugs: [['        await rm(fresh, { force: true });\n', '']],
  },
  {
    file: 'packages/client/src/tools.ts',
    tests: [TOOLS_TEST],
    bugs: [
      ['  shownText(textOf(value))', '  textOf(value)'],
      ["typeof each === 'string' ? shownText(each) : each", 'each'],
      ['.length > MAX_SCHEMA_CHARACTERS', '.length < 0'],
    ],
  },
  {
    file: 'packages/client/src/cli/program.ts',
    tests: [WORDS_TEST],
    bugs: [
      ['out: (text) => io.out(escapedText(text)),', 'out: (text) => io.out(text),'],
      ['error: (text) => io.error(escapedText(text)),', 'error: (text) => io.error(text),'],
      [
        'const message = inOneLine(error instanceof Error ? error.message : ',
        'const message = String(error instanceof Error ? error.message : ',
      ],
    ],
  },
  {
    file: 'packages/client/src/x402.ts',
    tests: [PAY_TEST, LIES_TEST],
    bugs: [
      ['/^[1-9]\\d{0,14}$/.test(amount)', '/^\\d{1,15}$/.test(amount)'],
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
