/** Bugs in what services cost the operator, and in what an audit of hostile source may read. */
import type { MutantsOfFile } from '../mutant.ts';

export const CATALOGUE_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/catalogue/src/services/ai-services/ai-inference.ts',
    tests: ['packages/catalogue/src/services/ai-services/ai-inference.test.ts'],
    bugs: [
      ['  if (cost !== null) assertPaidFor(input, model, cost);\n', ''],
      ['    await chatOf(input, upstreams.ai);\n  },', '  },'],
      ['BigInt(sent + FORM_TOKENS) * cost.inputMicros', 'BigInt(FORM_TOKENS) * cost.inputMicros'],
      ['Buffer.byteLength(input.prompt) + ', 'input.prompt.length + '],
    ],
  },
  {
    file: 'packages/catalogue/src/code-analysis/published-imports.ts',
    tests: ['packages/catalogue/src/code-analysis/analyse.test.ts'],
    bugs: [["    if (!FILE.test(rest) || rest.split('/').includes('..')) return null;\n", '']],
  },
];
