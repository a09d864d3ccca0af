/** Bugs in what the vault's keeper judges, moves and remembers, and in which node the portal believes. */
import type { MutantsOfFile } from '../mutant.ts';

const keeper = 'packages/yield/src/keeper';
const KEEPER_TEST = [`${keeper}/keeper.test.ts`];

export const YIELD_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: `${keeper}/conduct.ts`,
    tests: [`${keeper}/conduct.test.ts`],
    bugs: [
      ['const CEILING_UTILIZATION = 0.92;', 'const CEILING_UTILIZATION = 0.96;'],
      ['const LEAVING_UTILIZATION = 0.97;', 'const LEAVING_UTILIZATION = 0.93;'],
      ['const LASTING = 3;', 'const LASTING = 1;'],
      ['const JUMP_FACTOR = 2;', 'const JUMP_FACTOR = 20;'],
      [' || now.spotRate > calm', ''],
      ['last.every(hasLost)', 'last.some(hasLost)'],
      ["hasLost(now) ? 'LOST' : hasJumped", 'hasJumped'],
      ['now.atS - hours.atS > AVERAGE_AT_MOST_S', 'false'],
    ],
  },
  {
    file: `${keeper}/decide.ts`,
    tests: [`${keeper}/decide.test.ts`],
    bugs: [
      ['Math.min(averageRate, spotNow)', 'spotNow'],
      ['Math.min(averageRate, spotNow)', 'averageRate'],
      ['averageRate === null || unrest !== null) continue;', 'averageRate === null) continue;'],
      ['if (gainMicrosPerYear * BPS < amountMicros * BigInt(minGainBps))', 'if (false)'],
      ['if (gainMicrosPerYear * EARN_BACK_DAYS < costMicros * DAYS_PER_YEAR)', 'if (false)'],
      ["        [share, 'share'],\n", ''],
      ["        [target.room, 'room'],\n", ''],
      [' + Number(inProtocol[to]) * (rateAfter - rateNow)', ''],
    ],
  },
  {
    file: `${keeper}/keeper.ts`,
    tests: KEEPER_TEST,
    bugs: [
      ['amountMicros - MOVE_DUST', '0n'],
      ['return send(parts, { id: `yield-move:', 'return send(parts, { id: Date.now() + `yield-move:'],
      ["  if (!complete) return 'INCOMPLETE';\n", ''],
      ["    return 'NOT_KEEPER';", '    {}'],
      ['if (lender.liquid < LEAST_LEFT_MICROS && left.includes(name)) continue;', ''],
      ['takers.length === 0 || !takers.every(isCalm)', 'takers.length === 0'],
      ["  if (timestamp < nextMoveAt) return 'COOLING';\n", ''],
    ],
  },
  {
    file: `${keeper}/samples.ts`,
    tests: KEEPER_TEST,
    bugs: [['(sample.atS - (sample.atS % SAMPLE_SECONDS)) * 1_000', 'sample.atS * 1_000']],
  },
  {
    file: `${keeper}/report.ts`,
    tests: KEEPER_TEST,
    bugs: [
      ['where k.looked_until <= ', "where '9999-01-01' > "],
      [' and look = $', ' and 0 < $'],
    ],
  },
  {
    file: 'packages/yield/src/solana/moves.ts',
    tests: ['packages/yield/src/solana/book.test.ts'],
    bugs: [
      [
        'WHERE NOT EXISTS (SELECT 1 FROM solana_yield_fees WHERE wallet',
        'WHERE true OR EXISTS (SELECT 1 FROM solana_yield_fees WHERE wallet',
      ],
    ],
  },
  {
    file: 'packages/yield/src/solana/fees.ts',
    tests: ['packages/yield/src/solana/book.test.ts'],
    bugs: [['      await sql.begin((transaction) => match(transaction, wallet));\n', '']],
  },
  {
    file: 'packages/yield/src/solana/book.ts',
    tests: ['packages/yield/src/solana/book.test.ts'],
    bugs: [
      ['if (wallet !== undefined) await fees.match(transaction, wallet);', ';'],
      ['if (!isKept && (move !== null ||', 'if (!isAlone && (move !== null ||'],
    ],
  },
  {
    file: 'packages/yield/src/solana/nodes.ts',
    tests: ['packages/yield/src/solana/nodes.test.ts'],
    bugs: [
      ['if (genesis !== GENESIS_HASH)', "if (genesis === '')"],
      ['if (error instanceof RpcRefusal && !OF_THE_NODE.has(error.code)) throw error;', ''],
      ['node.restsUntilMs = nowMs() + REST_MS;', 'node.restsUntilMs = 0;'],
      ['refusal instanceof RpcRefusal && error instanceof RpcUnreachable ? refusal : error', 'error'],
      [
        'Math.ceil(about.timeoutMs / urls.length)',
        'about.timeoutMs',
        'Only the time that a call takes tells the two apart, and no test measures time.',
      ],
    ],
  },
];
