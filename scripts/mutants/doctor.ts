/** Bugs in what `npm run doctor` warns of, and in what it must not tell. */
import type { MutantsOfFile } from '../mutant.ts';

const TESTS = ['apps/shop/test/operator/doctor.test.ts'];

export const DOCTOR_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'apps/shop/src/doctor/proxies.ts',
    tests: TESTS,
    bugs: [
      ["if (protocol !== 'https:' && !LOOPBACK.test(hostname)) return unseen();", ''],
      ['(await isFirst(forged(FORGED[0]))) && (await isFirst(forged(FORGED[1])))', 'false'],
      ["told.by === 'peer'", 'false'],
    ],
  },
  {
    file: 'apps/shop/src/doctor/chains.ts',
    tests: TESTS,
    bugs: [
      ['if (id !== chainId) return', 'if (id === 0) return'],
      ['return wei < least', 'return wei < 0n'],
    ],
  },
  {
    file: 'apps/shop/src/doctor/database.ts',
    tests: TESTS,
    bugs: [
      ["fsync === 'on' && commits !== 'off'", "commits !== 'off'"],
      ["fsync === 'on' && commits !== 'off'", "fsync === 'on'"],
      ['return needed <= most - reserved', 'return needed > 0'],
      ['if (other.length > 0)', 'if (other.length > 1_000)'],
    ],
  },
];
