/** Bugs in which server is written to, and in what all processes share. */
import type { MutantsOfFile } from '../mutant.ts';

export const DATABASE_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/db/session-settings.ts',
    tests: ['packages/core/src/db/session-settings.test.ts'],
    bugs: [
      ['    if (refused === undefined) throw error;\n', ''],
      ['    if (refused === undefined) throw error;\n', '    throw error;\n'],
      ["typeof value === 'number' || SAME_WORDS.has(value)", "typeof value === 'number'"],
      ["typeof value === 'number' || SAME_WORDS.has(value)", 'SAME_WORDS.has(value)'],
      ["typeof value === 'number' || SAME_WORDS.has(value)", "value !== '' && value !== 'farebox'"],
      ['found.get(name) !== String(value)', '!found.has(name)'],
      ['  if (lost !== null) throw', '  if (lost === null) throw'],
    ],
  },
  {
    file: 'packages/core/src/db/open.ts',
    tests: ['packages/core/src/db/session-settings.test.ts'],
    bugs: [['      await assertSettingsPass(pools.sql);\n', '']],
  },
  {
    file: 'packages/core/src/db/connection.ts',
    tests: ['packages/core/src/db/connection.test.ts'],
    bugs: [['REQUEST, REQUEST_PLANS),', 'REQUEST),']],
  },
  {
    file: 'packages/core/src/db/before-baseline.ts',
    tests: ['apps/shop/test/operator/baseline.test.ts'],
    bugs: [
      ['  if (missing.length > 0) throw new StartError(startOlderFirst(missing));\n', ''],
      ['  return !ranAll;', '  return true;'],
      ['if (known !== undefined && known !== checksum) throw', 'if (false) throw'],
      ['missing: ranNone ? [] : missing', 'missing'],
    ],
  },
  {
    file: 'packages/core/src/db/migrate.ts',
    tests: ['apps/shop/test/operator/baseline.test.ts'],
    bugs: [
      [' || isBeforeBaseline(name, checksum)', ''],
      ['  if (runs) await transaction.unsafe(text);', '  await transaction.unsafe(text);'],
      ['tooOldFor: beforeBaseline(ran).missing,', 'tooOldFor: [],'],
    ],
  },
  {
    file: 'packages/core/src/db/migrate.ts',
    tests: ['apps/shop/test/operator/migrate.test.ts'],
    bugs: [
      ['if (applied.get(name) === checksum) continue;', 'if (applied.has(name)) continue;'],
      [
        '    refuseChanged(migration, known.checksum);\n    return false;\n  }\n  const runs',
        '    return false;\n  }\n  const runs',
      ],
      [
        '  if (ran !== checksum) throw changedSince(name);',
        '  if (ran === checksum) throw changedSince(name);',
      ],
      [
        '? await inTurn(sql, (transaction) => run(transaction, migration))',
        '? await sql.begin((transaction) => run(transaction, migration))',
      ],
      ['if (known !== undefined) {\n    refuse', 'if (false && known !== undefined) {\n    refuse'],
    ],
  },
  {
    file: 'packages/core/src/db/migrate.ts',
    tests: ['packages/core/src/db/migration-steps.test.ts'],
    bugs: [
      [
        '      refuseChanged(migration, known.checksum);\n      return false;\n    }\n    for',
        '      return false;\n    }\n    for',
      ],
      ['      while (inBatches && changed > 0);', '      while (inBatches && changed < 0);'],
      ['readdirSync(folder).sort())', 'readdirSync(folder).sort().reverse())'],
    ],
  },
  {
    file: 'packages/core/src/db/distribution.ts',
    tests: ['packages/core/src/db/distribute.test.ts'],
    bugs: [
      ['if (heardIn === undefined) return statement;', "if (heardIn === undefined) return '';"],
      ["heardIn === null ? '' : statement", 'heardIn === null ? statement : statement'],
      ["  ['ledger_transfers', 'ledger_transfers_heard'],\n", "  ['ledger_transfers', null],\n"],
      ["  ['ledger_accounts', null],\n", ''],
      ['    taken.push({ trigger, table });\n', ''],
    ],
  },
  {
    file: 'packages/core/src/cards/recharge/due-recharges.ts',
    tests: ['packages/core/src/cards/recharge/auto-recharge.test.ts'],
    bugs: [
      ['    return noticed.length;', '    return 0;', 'The next round reads the rest: it is only slower.'],
      [
        '      select id, account_id from auto_recharge_notices where bucket = $',
        '      select id, account_id from auto_recharge_notices where 0 = $',
      ],
      ['::text::bigint[]) and state = 0`;', '::text::bigint[])`;'],
      ['    if (noticed.length === 0) return 0;\n', '    if (noticed.length >= 0) return 0;\n'],
      [
        'delete from auto_recharge_notices\n      where bucket = $',
        'delete from auto_recharge_notices\n      where -1 = $',
      ],
    ],
  },
  {
    file: 'packages/core/src/cards/disputes/debts.ts',
    tests: ['packages/core/src/ledger/bucket-turns.test.ts'],
    bugs: [
      ['select id from ledger_accounts where bucket = $', 'select id from ledger_accounts where 0 <= $'],
      ['    return page.looked.length;', '    return page.due.length;'],
      ['    lasts.set(bucket, page.looked.at(-1) ?? last);\n', ''],
      ['page.looked.at(-1) ?? last', 'page.due.at(-1) ?? last'],
    ],
  },
  {
    file: 'packages/core/src/db/turns.ts',
    tests: ['apps/shop/test/operator/migrate.test.ts', 'packages/core/src/db/migration-steps.test.ts'],
    bugs: [
      ['          select pg_advisory_xact_lock(8402);\n', ''],
      ['if (turn?.ours === true) break;', 'if (turn !== undefined) break;'],
    ],
  },
  {
    file: 'packages/core/src/db/weeks.ts',
    tests: [
      'packages/core/src/paid-call/inside/weeks-of-calls.test.ts',
      'packages/core/src/paid-call/inside/call-batch.test.ts',
    ],
    bugs: [
      [' && ids.every((id) => id >= week.from && id < week.to)', ''],
      ['            if (!isLockTimeout(error)) throw error;', '            throw error;'],
      ['const MONDAY_MS = 345_600_000;', 'const MONDAY_MS = 0;'],
    ],
  },
  {
    file: 'packages/core/src/db/weeks.ts',
    tests: ['packages/core/src/ledger/closed-days.test.ts'],
    bugs: [["where a.amname = 'brin' and", "where a.amname = 'gist' and"]],
  },
  {
    file: 'packages/core/src/db/primary.ts',
    tests: ['packages/core/src/db/primary.test.ts'],
    bugs: [
      ['    this.#latestTimeline = best.standing?.timeline ?? this.#latestTimeline;\n', ''],
      ['    if (!this.#hosts.every(({ isHeard }) => isHeard)) return;\n', ''],
      ['this.#primary === null ? this.#hosts : [this.#primary, ...this.#hosts]', 'this.#hosts'],
      ['      if (endpoint !== best.endpoint) drop(new Replaced());', '      void drop;'],
      [
        '      if (this.#isNeeded) this.#doubt(endpoint);\n      else this.#rest();',
        '      if (!this.#isNeeded) this.#rest();',
      ],
    ],
  },
  {
    file: 'packages/core/src/db/socket.ts',
    tests: ['packages/core/src/db/connection.test.ts'],
    bugs: [
      ['performance.now(), COUNTED_MS)', 'performance.now(), Number.POSITIVE_INFINITY)'],
      ['if (awake.passedMs() < timeoutMs) return;', 'if (timeoutMs > 0) return;'],
    ],
  },
  {
    file: 'packages/core/src/db/writing.ts',
    tests: ['packages/core/src/db/writing.test.ts'],
    bugs: [['      if (refusedBy === IS_STANDBY) worked();', '      worked();']],
  },
  {
    file: 'packages/catalogue/src/upstreams/budget.ts',
    tests: ['packages/catalogue/src/upstreams/budget.test.ts'],
    bugs: [
      ['this.#perMs / processes', 'this.#perMs'],
      ['Math.max(1, this.#capacity / processes)', 'this.#capacity'],
      ['Math.max(1, this.#capacity / processes)', 'this.#capacity / processes'],
      ['missing - ageMs * perMs', 'missing'],
      ['return this.#used;', 'return Math.max(1, this.#capacity / this.#replicas.count) - this.#tokens;'],
      ['this.#used += count;', ''],
      ['this.#used = Math.max(0, this.#used - cameBack);', ''],
    ],
  },
  {
    file: 'packages/catalogue/src/upstreams/kept-budgets.ts',
    tests: ['packages/catalogue/src/upstreams/kept-budgets.test.ts'],
    bugs: [
      ['budgets.get(source)?.inherit(missing, ageMs)', 'void [missing, ageMs, source]'],
      [' and at < now()', ' and now() is not null or at < now()'],
      ['order by at desc limit 1)', 'order by at desc)'],
      ['!hasTakenOver && ', ''],
      ['if (used.length === 0 && !hasWritten) return;', 'if (used.length === 0) return;'],
    ],
  },
  {
    file: 'packages/core/src/db/replicas.ts',
    tests: ['packages/core/src/db/replicas.test.ts'],
    bugs: [['parts.live?.counted(alive.size + 1);', 'parts.live?.counted(alive.size);']],
  },
  {
    file: 'packages/core/src/cards/ways/purchase-limits.ts',
    tests: ['apps/shop/test/cards/checkout.test.ts'],
    bugs: [
      ['  await takeTurns(on, turnsOf(origin));\n', ''],
      ['networkCheckouts: 60', 'networkCheckouts: 61'],
    ],
  },
];
