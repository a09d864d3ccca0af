/** Bugs in what shuts the shop after a restore, and in what puts right what was sold since. */
import type { MutantsOfFile } from '../mutant.ts';

const RESTORED_TEST = 'apps/shop/test/fire/restored-database.test.ts';
const RESTORED_SOLANA_TEST = 'apps/shop/test/fire/restored-solana.test.ts';

export const RECOVERY_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/cards/orders/order-note.ts',
    tests: ['packages/core/src/cards/orders/order-note.test.ts'],
    bugs: [
      ["JSON.stringify(['order note', orderId, fields])", "JSON.stringify(['order note', fields])"],
      [".filter((name) => name.startsWith('order_') && name !== PROOF)", '.filter((name) => name === PROOF)'],
      ['a.length === b.length && timingSafeEqual(a, b)', 'a.length === b.length'],
    ],
  },
  {
    file: 'packages/core/src/db/replicas.ts',
    tests: ['packages/core/src/db/replicas.test.ts'],
    bugs: [
      [': beats <= confirmed.beats) onRewound();', ': false) onRewound();'],
      ['return row === undefined || row.beats < confirmed.beats;', 'return false;'],
    ],
  },
  {
    file: 'packages/core/src/recovery/lineage.ts',
    tests: [RESTORED_TEST],
    bugs: [["before.timeline !== now.timeline ? 'timeline' : null", 'null']],
  },
  {
    file: 'packages/core/src/recovery/recover.ts',
    tests: [RESTORED_TEST],
    bugs: [
      ["lasts ? 'owed' : 'recorded'", "'recorded'"],
      ['  await followCards(parts);\n', ''],
      ['return noted.length === 0;', 'return false;'],
    ],
  },
  {
    file: 'packages/core/src/recovery/recover.ts',
    tests: [RESTORED_SOLANA_TEST],
    bugs: [
      ['  if (readAtMs < found.settledAtMs) throw new TooEarly(found.settledAtMs);\n', ''],
      [" || came.some(({ sale }) => sale.becomes === 'owed')", ''],
      [': each.callId === callId,', ': false,'],
      ['and s.call_id = coalesce(', 'and s.call_id = coalesce(s.call_id, '],
      ['if (found.unread.length > 0 && !options.unreadCompared)', 'if (found.unread.length > 9)'],
    ],
  },
  {
    file: 'packages/core/src/rails/x402/solana-paid-since.ts',
    tests: ['packages/core/src/rails/x402/solana-paid-since.test.ts'],
    bugs: [
      ['seconds * 1_000 <= sinceMs;', 'seconds > 0;'],
      ["if ((change.get(refunder ?? '') ?? 0n) >= 0n) continue;", ''],
      ['filter(({ err }) => err === null)', 'filter(() => true)'],
      ['if (!isWhole) throw', 'if (signatures.length < 0) throw'],
    ],
  },
  {
    file: 'packages/core/src/cards/orders/forgotten-orders.ts',
    tests: [RESTORED_TEST],
    bugs: [
      ["if (becomes === 'refunded')", "if (orderId === '')"],
      ['noted.accountId === null || (await hasAccount(noted.accountId))', 'true'],
    ],
  },
  {
    file: 'packages/yield/src/solana/keeper.ts',
    tests: ['apps/shop/test/yield/solana-yield-confirm.test.ts'],
    bugs: [
      [
        "    if (landed !== 'unreadable' && (await book.awaitsFee(landed)) && (await walk.again(each))) continue;\n",
        '',
      ],
    ],
  },
  {
    file: 'packages/core/src/http/shut.ts',
    tests: ['packages/core/src/http/shut.test.ts'],
    bugs: [
      ["if (method !== 'GET' && method !== 'HEAD') return false;", ''],
      ["path === '/' || READ_WHILE_SHUT", 'READ_WHILE_SHUT'],
      ["request.url.split('?', 1)[0] ?? ''", 'request.url'],
    ],
  },
];
