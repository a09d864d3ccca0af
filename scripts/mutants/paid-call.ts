/** Bugs in the paid call: what becomes of the money, and of the answer. */
import type { MutantsOfFile } from '../mutant.ts';

export const PAID_CALL_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/paid-call/fate.ts',
    tests: ['packages/core/src/paid-call/fate.test.ts'],
    bugs: [
      ["status === 429 || status >= 500 ? 'open' : 'free'", "status >= 500 ? 'open' : 'free'"],
      ["status === 429 || status >= 500 ? 'open' : 'free'", "status === 429 ? 'open' : 'free'"],
      ['{ ...problem.details, charged }', '{ charged, ...problem.details }'],
      ['  taken: {\n    charged: true,', '  taken: {\n    charged: null,'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/sealed-answer.ts',
    tests: ['packages/core/src/paid-call/sealed-answer.test.ts'],
    bugs: [
      ['      .setAAD(Buffer.from(callId))\n      .setAuthTag', '      .setAuthTag'],
      [
        'if (!body.startsWith(NAMELESS)) return body;',
        'if (!body.startsWith(NAMELESS)) return decrypt(keyOf(current.id), callId, body);',
      ],
      ['keyOf(current.id), nonce', "keyOf(all[0]?.id ?? ''), nonce"],
    ],
  },
  {
    file: 'packages/core/src/paid-call/hands.ts',
    tests: ['packages/core/src/paid-call/hands.test.ts'],
    bugs: [
      ['stopping?.aborted !== true && ', ''],
      ['if (failures.length > 0) throw failures[0];', ''],
      ['        failures.push(error);\n', '        throw error;\n'],
      ['await Promise.allSettled(', 'await Promise.all('],
    ],
  },
  {
    file: 'packages/core/src/paid-call/content.ts',
    tests: ['packages/core/src/paid-call/content.test.ts'],
    bugs: [
      ['Buffer.from(buffer, byteOffset, byteLength)', 'Buffer.from(buffer)'],
      ['if (header.length <= MAX_PROVENANCE_BYTES) return header;', 'return header;'],
      ['/[^\\x20-\\x7e]/g', '/[^\\x20-\\xff]/g'],
    ],
  },
  {
    file: 'packages/core/src/paid-call/null-as-absent.ts',
    tests: ['packages/core/src/paid-call/null-as-absent.test.ts'],
    bugs: [
      ['if (depth > MAX_DEPTH || ', 'if ('],
      ['(fields.length > 0 ? !mustStay(name, naming) : isOpen)', '(fields.length > 0 || isOpen)'],
      ['(Array.isArray(required) && required.includes(name)) || ', ''],
      ["[type].flat().includes('null') || ", ''],
    ],
  },
];
