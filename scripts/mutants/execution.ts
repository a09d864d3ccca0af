/** Bugs in what may be built for whom: recipients and senders that stand on a sanctions list. */
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
];
