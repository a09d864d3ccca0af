/** Bugs in what leaves the database, and in what is proved of it afterwards. */
import type { MutantsOfFile } from '../mutant.ts';

const tests = ['packages/core/src/history/archive-weeks.test.ts'];
const costs = ['apps/shop/test/operator/history-cost.test.ts'];
const history = 'packages/core/src/history';
const ENDS_SOON =
  'With its LIMIT the planner looks rows up one by one by itself, as long as it thinks that the first ones are enough.';
const NO_OTHER_WAY =
  'With sequential scans off the planner looks rows up by itself, as long as it thinks that a day has few beside all weeks.';

export const HISTORY_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: `${history}/archive-weeks.ts`,
    tests,
    bugs: [
      ['  await checkFiles(needs.folder, week, written);\n', ''],
      ['in exclusive mode`);', 'in access share mode`);'],
      ['[sealOf(calls), sealOf(transfers)]', '[sealOf(transfers), sealOf(transfers)]'],
      ['            sealOf(name),\n', ''],
      ['(lease_until < now() or holder =', '(true or holder ='],
      ['  await mustBeTheFolder(needs);\n', ''],
      ['    await keepErasures(transaction, week);\n', ''],
      ['    if (found !== wanted) throw', '    if (false) throw'],
      ['    if (!(await sha256OfFile(join(folder, name))).equals(sha256))', '    if (false)'],
      ["sqlFunction('ledger_carry')", "sqlFunction('calls_carry')"],
      ["sqlFunction('calls_carry')", "sqlFunction('ledger_carry')"],
      ['    await keepTransfers(transaction, week);\n    await keepErasures', '    await keepErasures'],
      [
        '    if (held === undefined) return false;\n',
        '',
        'Whoever comes second finds no table of what stays, and ends with that error.',
      ],
      ['  const after = await blockerOf(pools.patient, week);', '  const after = null as string | null;'],
      [
        '  await syncFolder(folder);\n',
        '',
        'What the disk had when the power went is not known to a process that goes on.',
      ],
    ],
  },
  {
    file: `${history}/archive-weeks.ts`,
    tests: ['packages/core/src/history/archive-cut-off.test.ts'],
    bugs: [
      ['    await rm(unfinished, { force: true });\n    throw error;', '    throw error;'],
      ['  await removeUnfinished(folder, week);\n', ''],
    ],
  },
  {
    file: `${history}/compact-weeks.ts`,
    tests: ['packages/core/src/history/compact-weeks.test.ts'],
    bugs: [
      ['in exclusive mode`', 'in access share mode`'],
      [' from moved`', ' from moved where false`'],
      ['w.compacted_at is null and w.lease_until <= now()', 'w.compacted_at is null'],
      ["      and not exists (select 1 from call_archives a where 'calls_' || a.week = c.relname)\n", ''],
      ['    if (!valid) await sql', '    if (false) await sql'],
      [' => wanted() && renewed(sql, week))', ' => wanted())'],
      ['set lease_until = now(), compacted_at = ${', 'set compacted_at = ${'],
      ['isCompact ? sql`now()` : null', 'sql`now()`'],
    ],
  },
  {
    file: `${history}/week-rows.ts`,
    tests,
    bugs: [
      [' or c.shared or ', ' or '],
      ["which === 'calls' ? '' : \"t.code = 'call' and \"", "''"],
      ['      or (c.account_id, c.id) in (select account_id, id from named)\n', ''],
      ['      or c.state = 2 and (', '      or false and ('],
    ],
  },
  {
    file: 'packages/core/src/ledger/functions/ledger_carry.sql',
    tests,
    bugs: [["WHERE t.code = 'call' AND NOT EXISTS", 'WHERE NOT EXISTS']],
  },
  {
    file: `${history}/blockers.ts`,
    tests,
    bugs: [
      ['where state not in (1, 2)`', 'where state > 3`'],
      [
        'union all select 1 from undelivered_calls where',
        'union all select 1 from undelivered_calls where false and',
      ],
    ],
  },
  {
    file: `${history}/prove-archives.ts`,
    tests,
    bugs: [
      ['.equals(archive.transfers_sha256)', '.equals(archive.transfers_sha256) && false'],
      ['(await wrongCarried(transaction, week)) ??', ''],
      ['(await wrongCalls(transaction, week)) ??', ''],
      ['(await wrongDay(transaction, week))', 'null'],
    ],
  },
  {
    file: `${history}/drop-released.ts`,
    tests,
    bugs: [['const KEPT_DAYS = 30;', 'const KEPT_DAYS = 29;']],
  },
  {
    file: 'packages/core/src/operator/accounting.ts',
    tests: costs,
    bugs: [
      ['id = t.id offset 0', 'id = t.id', NO_OTHER_WAY],
      ['::uuid offset 0', '::uuid'],
      [", set_config('enable_seqscan', 'off', true)`;", '`;'],
    ],
  },
  {
    file: 'packages/core/src/operator/calls-of-house.ts',
    tests: costs,
    bugs: [['id = s.call_id offset 0', 'id = s.call_id']],
  },
  {
    file: 'packages/core/src/operator/sales-figures.ts',
    tests: costs,
    bugs: [['id = o.id offset 0', 'id = o.id']],
  },
  {
    file: 'packages/core/src/paid-call/inside/books-rules.ts',
    tests: costs,
    bugs: [
      ['id = o.id offset 0', 'id = o.id'],
      ['id = f.call_id offset 0', 'id = f.call_id', ENDS_SOON],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/books-rules.ts',
    tests: costs,
    bugs: [['settlements where final_at is null and state in (0, 3)', 'settlements where state in (0, 3)']],
  },
  {
    file: 'packages/core/src/paid-call/inside/share-rules.ts',
    tests: costs,
    bugs: [
      ["            from ledger_transfers where code <> 'call'\n", '            from ledger_transfers\n'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/share-rules.ts',
    tests: ['packages/core/src/paid-call/inside/share-rules.test.ts'],
    bugs: [
      ['            where g.amount_micros >= c.price_micros group', '            group'],
      ['refund of|lost settlement of|undelivered', 'refund of|undelivered'],
      ['[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}', '[0-9a-f-]{36}'],
      ["and t.code = 'operator_refund'", "and t.code = 'call_refund'"],
      [', `created_at >= ', ', `true or created_at >= '],
      ['`set_aside_at >= ', '`true or set_aside_at >= '],
      ['(s.state = 2) <> (r.code is not null)', 'false'],
      ['(s.state = 2 and s.reversed_micros < s.amount_micros) <> (b.id is not null)', 'false'],
      ['b.amount_micros <> s.amount_micros - s.reversed_micros', 'false'],
      [' or c.state is distinct from 1\n', '\n'],
      [' or t.created_at is distinct from c.finished_at limit 1', ' limit 1'],
    ],
  },
  {
    file: 'packages/core/src/operator/books-rules.ts',
    tests: costs,
    bugs: [
      [
        "offset 0) c on true\n            where a.act = 'refund_payment'",
        ") c on true\n            where a.act = 'refund_payment'",
      ],
    ],
  },
  {
    file: 'packages/core/src/sold-keys/books-rules.ts',
    tests: costs,
    bugs: [['id = young.id offset 0', 'id = young.id']],
  },
  {
    file: 'packages/core/src/topup/books-rules.ts',
    tests: costs,
    bugs: [['id = young.id offset 0', 'id = young.id', ENDS_SOON]],
  },
  {
    file: 'packages/core/src/paid-call/inside/settlement-leases.ts',
    tests: costs,
    bugs: [['(state in (0, 3) or state = 1) and holder', 'state <> 2 and holder']],
  },
  {
    file: 'packages/core/src/paid-call/inside/bought-records.ts',
    tests: costs,
    bugs: [['          offset 0\n', '', ENDS_SOON]],
  },
  {
    file: 'packages/core/src/paid-call/inside/calls.ts',
    tests: costs,
    bugs: [
      ['id = c.id and phase = 2 offset 0', 'id = c.id and phase = 2'],
      ['  const dropped = await byKey(', '  const dropped = await sql.begin('],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/refund-store.ts',
    tests: costs,
    bugs: [
      ['id = r.call_id offset 0', 'id = r.call_id'],
      ['id = r.call_id and phase = 2 offset 0', 'id = r.call_id and phase = 2'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/settlement-leases.ts',
    tests: costs,
    bugs: [
      ['id = s.call_id offset 0', 'id = s.call_id'],
      ['id = s.call_id and phase = 2 offset 0', 'id = s.call_id and phase = 2'],
    ],
  },
  {
    file: 'packages/core/src/db/by-key.ts',
    tests: costs,
    bugs: [["set_config('enable_hashjoin', 'off', true), ", '']],
  },
  {
    file: 'packages/core/src/paid-call/followed-calls.ts',
    tests: costs,
    bugs: [
      ['    const dropped = await byKey(', '    const dropped = await this.#sql.begin('],
      ['    const [row] = await byKey(', '    const [row] = await this.#sql.begin('],
    ],
  },
  {
    file: 'packages/core/src/sold-keys/sold-keys.ts',
    tests: costs,
    bugs: [
      ['    return byKey(', '    return this.#sql.begin('],
      [
        'with k as materialized (select * from sold_keys where closed',
        'with k as not materialized (select * from sold_keys where closed',
      ],
    ],
  },
  {
    file: 'packages/core/src/topup/topups.ts',
    tests: costs,
    bugs: [['and id = t.call_id offset 0', 'and id = t.call_id', ENDS_SOON]],
  },
  {
    file: 'packages/core/src/recovery/recover.ts',
    tests: costs,
    bugs: [
      ['and s.payer = $', 'and lower(s.payer) = $'],
      ['where transaction = any($', 'where lower(transaction) = any($'],
      ['[sent, sent.toLowerCase()]', '[sent]'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/released_calls_drop.sql',
    tests: costs,
    bugs: [['c.id >= first_id AND c.id < last_id AND ', '']],
  },
  {
    file: 'packages/core/src/paid-call/functions/released_calls_drop.sql',
    tests,
    bugs: [
      [' AND NOT c.shared', ''],
      [
        '    SELECT n.account_id, n.id FROM calls_named(first_id, last_id) n\n    UNION ALL SELECT',
        '    SELECT',
      ],
      [' AND c.finished_at < until', ''],
      ['      AND c.begun_at < counted_to\n', ''],
      ['    LIMIT p_limit\n', ''],
      ['  IF NOT pg_try_advisory_xact_lock(8403) THEN RETURN 0; END IF;\n', ''],
    ],
  },
  {
    file: 'packages/core/src/paid-call/functions/calls_named.sql',
    tests,
    bugs: [
      ["t.code <> 'call' AND t.created_at >= since", 'false AND t.created_at >= since'],
      [
        'FROM followed_calls f WHERE f.call_id >= p_from',
        'FROM followed_calls f WHERE false AND f.call_id >= p_from',
      ],
    ],
  },
  {
    file: 'packages/core/src/operator/archived-call.ts',
    tests,
    bugs: [['if (archive !== undefined)', 'if (false)']],
  },
];
