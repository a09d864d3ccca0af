/** Bugs in what services cost the operator, and in what an audit of hostile source may read. */
import type { MutantsOfFile } from '../mutant.ts';

export const CATALOGUE_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/catalogue/src/compliance/rule.ts',
    tests: ['packages/catalogue/src/compliance/consult.test.ts'],
    bugs: [['return amendments ?? url;', 'return url;']],
  },
  {
    file: 'packages/catalogue/src/upstreams/adapters/coingecko.ts',
    tests: ['packages/catalogue/src/upstreams/adapters/documented-limits.test.ts'],
    bugs: [["? 'x-cg-pro-api-key' : 'x-cg-demo-api-key'", "? 'x-cg-demo-api-key' : 'x-cg-demo-api-key'"]],
  },
  {
    file: 'packages/catalogue/src/upstreams/adapters/etherscan.ts',
    tests: ['packages/catalogue/src/upstreams/adapters/documented-limits.test.ts'],
    bugs: [['  burst: 1,\n', '']],
  },
  {
    file: 'packages/catalogue/src/upstreams/adapters/nws.ts',
    tests: ['packages/catalogue/src/upstreams/adapters/nws.test.ts'],
    bugs: [['gridId: z.string().regex(/^[A-Z]{3}$/)', 'gridId: z.string()']],
  },
  {
    file: 'packages/catalogue/src/law-pages/page-reading.ts',
    tests: ['packages/catalogue/src/law-pages/law-pages.test.ts'],
    bugs: [
      ['      if (newer !== undefined) return;\n', ''],
      ['        where law_pages.rules_as_of < excluded.rules_as_of`;', '        where false`;'],
      ['delete from law_pages where url', 'delete from law_pages where false and url'],
      ['  if (row.confirmed_at === null && !isSame) {', '  if (false) {'],
      ['const changed_at = isSame ? null : (row', 'const changed_at = isSame ? row.changed_at : (row'],
      ['        await this.#queue.giveBack([row]);\n', ''],
      ['      if (error instanceof UpstreamUnavailable && wasNotAsked(error)) {', '      if (false) {'],
    ],
  },
  {
    file: 'packages/catalogue/src/law-pages/page-sites.ts',
    tests: ['packages/catalogue/src/law-pages/law-pages.test.ts'],
    bugs: [
      ['      isOneServer: true,\n', ''],
      ["    if (protocol !== 'https:') throw", "    if (protocol === '') throw"],
      ['      maxBytes: MAX_PAGE_BYTES,', '      maxBytes: 1024 * MAX_PAGE_BYTES,'],
    ],
  },
  {
    file: 'packages/catalogue/src/law-pages/visible-text.ts',
    tests: ['packages/catalogue/src/law-pages/visible-text.test.ts'],
    bugs: [
      ['      if (depth > MOST_DEPTH) throw', '      if (depth < 0) throw'],
      ['      if (hiddenFrom !== null) return;\n', ''],
    ],
  },
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
  {
    file: 'packages/catalogue/src/code-analysis/rules/spot-prices.ts',
    tests: [
      'packages/catalogue/src/code-analysis/analyse.test.ts',
      'packages/catalogue/src/code-analysis/audit-set.test.ts',
    ],
    bugs: [
      ["    if (part.kind === 'call' && MEAN.test(calledName(part))) return [];\n", ''],
      [
        '      if (!isKept(root) || grows(part.operator, part.right, frame)) continue;',
        '      if (!isKept(root)) continue;',
      ],
      ["        if (what === 'a condition' && !ofKept) continue;\n", ''],
      ['    .filter((each) => each !== declared && ', '    .filter((each) => each === declared && '],
    ],
  },
  {
    file: 'packages/catalogue/src/code-analysis/rules/wraps.ts',
    tests: [
      'packages/catalogue/src/code-analysis/analyse.test.ts',
      'packages/catalogue/src/code-analysis/audit-set.test.ts',
    ],
    bugs: [
      [
        '  return given.some((side) => !known.checks.some((check) => boundsAbove(check, side, frame)));',
        '  return true;',
      ],
      [
        'if (looksAt(each, other, expression.operator, frame)) looked.add(each);',
        'if (each.sign === undefined) looked.add(each);',
      ],
      ["  if (sign === '-' && isTaken(left, right, frame, taken)) return false;\n", ''],
      ['  if (isPlace(left, frame) || isPlace(right, frame)) return false;\n', ''],
    ],
  },
];
