/** Bugs in what leaves the database, and in what is proved of it afterwards. */
import type { MutantsOfFile } from '../mutant.ts';

const tests = ['packages/core/src/history/archive-weeks.test.ts'];
const history = 'packages/core/src/history';

export const HISTORY_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: `${history}/archive-weeks.ts`,
    tests,
    bugs: [
      ['  await checkFiles(needs.folder, week, written);\n', ''],
      ['in exclusive mode`);', 'in access share mode`);'],
      ['{sealOf(calls)}; $', '{sealOf(transfers)}; $'],
      ['{sealOf(name)};', '{"select 1"};'],
      ['(lease_until < now() or holder =', '(true or holder ='],
      ['  await mustBeTheFolder(needs);\n', ''],
    ],
  },
  {
    file: 'packages/core/src/ledger/functions/ledger_carry.sql',
    tests,
    bugs: [
      ['count(*) FILTER (WHERE e.account = e.owner)', 'count(*)'],
      ['WHEN 4 THEN -t.amount_micros ELSE 0', 'ELSE 0'],
    ],
  },
  {
    file: `${history}/functions/calls_carry.sql`,
    tests,
    bugs: [['WHERE c.state = 1 AND NOT EXISTS', 'WHERE NOT EXISTS']],
  },
  {
    file: `${history}/week-rows.ts`,
    tests,
    bugs: [
      ['      or exists (select 1 from named n where n.account_id = c.account_id and n.id = c.id)\n', ''],
      ['      or c.state = 2 and exists (', '      or false and exists ('],
    ],
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
    file: 'packages/core/src/paid-call/functions/released_calls_drop.sql',
    tests,
    bugs: [
      ['      AND c.begun_at < (SELECT calls_to FROM sales_folded)\n', ''],
      [
        '      AND NOT EXISTS (SELECT 1 FROM named n WHERE n.account_id = c.account_id AND n.id = c.id)\n',
        '',
      ],
      ['AND c.finished_at >= since AND c.finished_at < until', ''],
    ],
  },
  {
    file: 'packages/core/src/ledger/functions/ledger_drop_released.sql',
    tests,
    bugs: [['IF gone <> cardinality(p_id) THEN', 'IF false THEN']],
  },
  {
    file: 'packages/core/src/operator/archived-call.ts',
    tests,
    bugs: [['if (archive !== undefined)', 'if (false)']],
  },
];
