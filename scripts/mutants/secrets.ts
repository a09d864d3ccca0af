/** Bugs in how secrets are read from files, and in how they are renewed. */
import type { MutantsOfFile } from '../mutant.ts';

export const SECRET_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/secret-files.ts',
    tests: ['apps/shop/src/config.test.ts'],
    bugs: [
      ['if (own !== null) return { problem', "if (own === '') return { problem"],
      ["if (text.trim() === '') return { why: 'names an empty file' };", ''],
      ['if (/[\\r\\n\\0]/.test(text)) return', 'if (false) return'],
      ["if (!found.isFile()) return { why: 'names no file' };", ''],
    ],
  },
  {
    file: 'packages/core/src/config.ts',
    tests: ['apps/shop/src/config.test.ts'],
    bugs: [['changed.filter(({ renewed }) => renewed === true)', 'changed']],
  },
  {
    file: 'packages/core/src/operator/credentials.ts',
    tests: ['apps/shop/test/operator/secret-rotation.test.ts'],
    bugs: [
      [
        '  return {\n    admit(authorization, address) {',
        '  const first = tokens();\n  tokens = () => first;\n  return {\n    admit(authorization, address) {',
      ],
    ],
  },
  {
    file: 'packages/core/src/relayer/remote-signer.ts',
    tests: ['packages/core/src/relayer/remote-signer.test.ts'],
    bugs: [
      ['if (by.toLowerCase() !== address) continue;', ''],
      ['s: s > n / 2n ? n - s : s', 's'],
    ],
  },
  {
    file: 'packages/core/src/relayer/signer-process.ts',
    tests: ['packages/core/src/relayer/remote-signer.test.ts'],
    bugs: [
      ['if ((transaction.value ?? 0n) > 0n)', 'if (false)'],
      ['if ((transaction.gas ?? 0n) > MAX_GAS)', 'if (false)'],
      ['if (transaction.to === undefined || transaction.to === null)', 'if (false)'],
    ],
  },
];
