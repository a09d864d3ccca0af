/** Bugs in what may be built for whom, and in the check of a transaction before it is signed. */
import type { MutantsOfFile } from '../mutant.ts';

export const EXECUTION_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/catalogue/src/services/execution/seamless-chain-bridge.ts',
    tests: ['packages/catalogue/src/services/execution/seamless-chain-bridge.test.ts'],
    bugs: [
      ["      ...partyOf(recipient, { field: 'recipient', code: 'RECIPIENT_SANCTIONED' }),\n", ''],
      ["      ...partyOf(fromAddress ?? null, { field: 'fromAddress', code: 'SENDER_SANCTIONED' }),\n", ''],
      ['if (recipient !== null && !wasAsked)', 'if (recipient === null && !wasAsked)'],
      ['if (head === null || code !== undefined) {', 'if (head === null) {'],
    ],
  },
  {
    file: 'packages/catalogue/src/preflight/judge.ts',
    tests: ['packages/catalogue/src/services/execution/transaction-preflight.test.ts'],
    bugs: [
      ["if (known?.role === 'executor' || known?.role === 'library')", 'if (known === undefined)'],
      ["if (account === 'none' || account === 'delegated')\n    return", 'if (account === null)\n    return'],
      [
        "found('standing_allowance_used', isPerson ? 'danger' : 'caution'",
        "found('standing_allowance_used', 'caution'",
      ],
      ["...(isCut ? [found('reading_cut', 'unknown', 'call')] : []),", ''],
      ["isSanctioned === true ? [found('sanctioned'", "isSanctioned === null ? [found('sanctioned'"],
    ],
  },
  {
    file: 'packages/catalogue/src/preflight/typed-data.ts',
    tests: ['packages/catalogue/src/services/execution/transaction-preflight.test.ts'],
    bugs: [
      [
        "if (inner === undefined) return [found('undeclared_fields', 'danger', at)];",
        'if (inner === undefined) continue;',
      ],
      ['filter(([name]) => names.has(name))', 'filter(([name]) => names.has(name) || true)'],
      [': written === type,', ': written.startsWith(data.primaryType),'],
    ],
  },
  {
    file: 'packages/catalogue/src/services/shared/preflight/evm-preflight.ts',
    tests: ['packages/catalogue/src/services/execution/transaction-preflight.test.ts'],
    bugs: [
      ['...granted.map((act) => hidden(act, parties.facts)),', ''],
      [
        "if (simulation === null) return [found('not_simulated', 'unknown', 'simulation')];",
        'if (simulation === null) return [];',
      ],
      ["if (!simulation.success) findings.push(found('would_fail', 'unknown', 'simulation'));", ''],
      ["...(isBlind ? [found('not_screened', 'caution', 'parties')] : []),", ''],
    ],
  },
  {
    file: 'packages/catalogue/src/preflight/solana-instructions.ts',
    tests: ['packages/catalogue/src/services/execution/solana-preflight.test.ts'],
    bugs: [
      ['if (accounts.includes(null)) {', 'if (accounts.length > 99) {'],
      [
        "isOffCurveAddress(delegate as Address) ? 'caution' : 'danger'",
        "isOffCurveAddress(delegate as Address) ? 'danger' : 'caution'",
      ],
      ["found(pattern, to === signer ? 'info' : 'danger', at, to)", "found(pattern, 'info', at, to)"],
    ],
  },
];
