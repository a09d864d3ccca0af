/** Bugs in which server is written to, and in what all processes share. */
import type { MutantsOfFile } from '../mutant.ts';

export const DATABASE_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/db/primary.ts',
    tests: ['packages/core/src/db/primary.test.ts'],
    bugs: [
      ['    latestTimeline = bestTimeline;\n', ''],
      ['    if (!asked.every(({ isHeard }) => isHeard)) return;\n', ''],
      ['primary === null ? asked : [primary, ...asked]', 'asked'],
      ['if (endpoint !== best.endpoint) drop(new Replaced());', ''],
      ['        if (isNeeded()) doubt(endpoint);\n        else rest();', '        if (!isNeeded()) rest();'],
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
      ['      this.#isBegun = true;\n', ''],
      ['!this.#isBegun && restedMs !== null', '!this.#isBegun'],
    ],
  },
  {
    file: 'packages/core/src/db/replicas.ts',
    tests: ['packages/core/src/db/replicas.test.ts'],
    bugs: [
      ['isAlive: before !== undefined', 'isAlive: true'],
      ['sinceMs - BEAT_MS - (performance.now() - startedAtMs)', 'sinceMs'],
    ],
  },
  {
    file: 'packages/core/src/cards/ways/purchase-limits.ts',
    tests: ['apps/shop/test/cards/checkout.test.ts'],
    bugs: [
      ['      await takeTurns(transaction, turnsOf(origin));\n      const now', '      const now'],
      ['networkCheckouts: 60', 'networkCheckouts: 61'],
    ],
  },
];
