/** Bugs in who is let in as an operator, as what, and in what is written down of them. */
import type { MutantsOfFile } from '../mutant.ts';

const SIGN_IN = ['apps/shop/test/operator/sign-in.test.ts'];
const TRAIL = ['apps/shop/test/operator/trail.test.ts'];
const ACCOUNTING = ['apps/shop/test/operator/accounting.test.ts'];

export const OPERATOR_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/operator/sign-in/provider.ts',
    tests: SIGN_IN,
    bugs: [
      ['  client.enableNonRepudiationChecks(made);\n', ''],
      ['          expectedNonce: nonce,\n', ''],
    ],
  },
  {
    file: 'packages/core/src/operator/sign-in/role-rules.ts',
    tests: SIGN_IN,
    bugs: [
      ['told.email_verified === true ?', 'told.email_verified !== false ?'],
      ['ROLES.findLast(', 'ROLES.find('],
    ],
  },
  {
    file: 'packages/core/src/operator/sign-in/routes.ts',
    tests: SIGN_IN,
    bugs: [
      ['attempt === null || attempt.state !== state', 'attempt === null && false'],
      ['      bounded(request);\n      const { url', '      const { url'],
    ],
  },
  {
    file: 'packages/core/src/operator/sign-in/people.ts',
    tests: SIGN_IN,
    bugs: [
      ['bounds.retentionDays * DAY_MS', '90 * DAY_MS'],
      ['if (row.issuer !== issuer || row', 'if (row'],
      ["row.role_set === 'none') return null;", "row.role_set === 'none') return 'read';"],
      ['(now - bounds.idleMs)}`;\n    if (row', '(0)}`;\n    if (row'],
      ['s.ended_at is null and s.ends_at > ', 's.ended_at is null and now() > '],
      ['if (access?.off === true || !hasTokens()) throw lastAdmin();', ''],
      ['access?.off === true && (await this.#admins(sql)).length > 0', 'access?.off === true'],
    ],
  },
  {
    file: 'packages/core/src/operator/door.ts',
    tests: SIGN_IN,
    bugs: [
      ['headers[PAGE_HEADER] !== undefined && ', ''],
      ["(site === undefined || site === 'same-origin') && ", ''],
      ["=== 'same-origin') && isOwn)", "=== 'same-origin'))"],
      ['  if (await people.tokensAreOff())\n', '  if (false)\n'],
    ],
  },
  {
    file: 'packages/core/src/operator/roles.ts',
    tests: SIGN_IN,
    bugs: [
      ['ROLES.indexOf(role) >= ROLES.indexOf(least)', 'true'],
      ["'POST /accounts/:account/grant': rule('money', 'asked')", "'POST /accounts/:account/grant': READ"],
    ],
  },
  {
    file: 'packages/core/src/operator/refund-routes.ts',
    tests: SIGN_IN,
    bugs: [
      ['if (person !== null && (await people.isPerson(asker))) return;', 'return;'],
      ['person !== null && (await people.isPerson(asker))', 'person !== null'],
    ],
  },
  {
    file: 'packages/core/src/operator/trail-hooks.ts',
    tests: TRAIL,
    bugs: [
      ["if (kind !== 'shown' || reply", "if (kind === 'shown' || reply"],
      ["if (kind !== 'asked' && kind !== 'export') return;", 'return;'],
      ["? value : 'unfit'", '? value : value'],
    ],
  },
  {
    file: 'packages/core/src/operator/audit-chain.ts',
    tests: TRAIL,
    bugs: [
      ['    if (digestOf(last[chain].sha256, chain, row.columns) !== row.sha256)\n', '    if (false)\n'],
      ['ends[chain] === undefined);\n', 'false);\n'],
      ['if (gone !== undefined)', 'if (false)'],
    ],
  },
  {
    file: 'packages/core/src/operator/accounting.ts',
    tests: ACCOUNTING,
    bugs: [
      ['t.created_at < ', 't.created_at <= '],
      ['where t.phase in (1, 3) and', 'where t.phase in (1, 2, 3) and'],
      ['/^[=+\\-@\\t\\r\\n]/.test(text)', 'false'],
    ],
  },
  {
    file: 'packages/core/src/operator/sign-in/cookies.ts',
    tests: SIGN_IN,
    bugs: [
      ['HttpOnly; ', ''],
      ["isSecure ? '__Host-' : ''", "''"],
      ['return values.length === 1 && values', 'return values.length > 0 && values'],
    ],
  },
];
