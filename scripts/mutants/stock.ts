/** Bugs in what is sold, and at which price: which terms are honoured, whose word wins, and what comes in force. */
import type { MutantsOfFile } from '../mutant.ts';

export const STOCK_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/service/shelf.ts',
    tests: ['packages/core/src/service/shelf.test.ts'],
    bugs: [
      ['replacedAtMs > sinceMs ? ', 'true ? '],
      ['.filter(({ path }) => !next.has(path))', ''],
      ['(wasHere(path) ? [service] : [])', '[service]'],
      ['].slice(0, MOST_EARLIER);', '];'],
      ['if (changed.length > 0)', ''],
    ],
  },
  {
    file: 'packages/core/src/paid-call/inside/terms-before.ts',
    tests: ['packages/core/src/paid-call/inside/terms-before.test.ts'],
    bugs: [
      ['b.priceMicros < a.priceMicros ? b : a', 'b.priceMicros > a.priceMicros ? b : a'],
      ['if (!(error instanceof PaymentRefused)) throw error;', ''],
      ['prices.has(priceMicros)', 'false'],
      ['return [{ ...quote, priceMicros }];', 'return [quote];'],
      ['return { quote: each, payment }', 'return { quote, payment }'],
      ['if (quote.service.metered !== null) return [];', ''],
      ['if (request.service.metered !== null) return priceMicros;', ''],
      ['then !== null && then < least', 'then !== null && then > least'],
      ['called?.keyTerms?.(accountId).priceMicros ?? ', ''],
    ],
  },
  {
    file: 'packages/core/src/paid-call/paid-call.ts',
    tests: ['apps/shop/test/operator/stock.test.ts', 'apps/shop/test/own-api/reload.test.ts'],
    bugs: [
      ['{ ...quote, priceMicros: leastForKey(ofKey, payment.accountId, request, honoured) }', 'quote'],
      ['        ? terms.quote\n', '        ? quote\n'],
      ['if (request.isGone === true || !availability.available) {', 'if (!availability.available) {'],
      ['const newer = hasLooked ? null : await this.#underNewer(asked, error);', 'const newer = null;'],
    ],
  },
  {
    file: 'packages/proxy/src/part.ts',
    tests: ['apps/shop/test/own-api/reload.test.ts'],
    bugs: [['      shelf.look(),\n', '']],
  },
  {
    file: 'packages/core/src/mcp/server.ts',
    tests: ['apps/shop/test/own-api/reload-doors.test.ts'],
    bugs: [['service: gone, given, isGone: true', 'service: gone, given']],
  },
  {
    file: 'packages/core/src/a2a/task-runner.ts',
    tests: ['apps/shop/test/own-api/reload-doors.test.ts'],
    bugs: [['      service,\n      isGone,\n', '      service,\n']],
  },
  {
    file: 'packages/core/src/stock/service-rule.ts',
    tests: ['packages/core/src/stock/service-rule.test.ts'],
    bugs: [
      [".refine((usd) => /[1-9]/.test(usd), 'must be above zero')", ''],
      ['rule !== undefined && rule[name] !== null', 'rule !== undefined'],
      ['priceInUsd(priceMicros);\n  const mpp', 'service.priceUsd;\n  const mpp'],
      ['isSoldByMpp ?? service.mpp', 'service.mpp'],
    ],
  },
  {
    file: 'packages/core/src/stock/keeper.ts',
    tests: ['packages/core/src/stock/keeper.test.ts'],
    bugs: [
      ['if (newest.file !== this.#seen.file) this.#refusedFile = null;', 'this.#refusedFile = null;'],
      ['if (newest.file !== this.#seen.file) this.#refusedFile = null;', ''],
      ['if (refused !== null) throw new StockRefused(refused);', ''],
      [
        'const isSettled = state !== null && state === this.#changingState;',
        'const isSettled = state !== null;',
      ],
      ['changedAtMs > last.madeAtMs', 'true'],
      ['      this.#make(content, this.rules);\n', ''],
    ],
  },
  {
    file: 'packages/core/src/stock/version-store.ts',
    tests: ['apps/shop/test/operator/stock.test.ts'],
    bugs: [
      [
        'order by number desc limit 1`;\n      const content',
        'order by number limit 1`;\n      const content',
      ],
    ],
  },
  {
    file: 'packages/core/src/stock/desk.ts',
    tests: ['apps/shop/test/operator/stock.test.ts'],
    bugs: [
      ['        refuseUnsellable(keeper, rules);\n', ''],
      ['if (!source.own.some((service) => service.path === path))', 'if (false as boolean)'],
      [
        'priceMicros: priceMicros === undefined ? before.priceMicros : priceMicros,',
        'priceMicros: priceMicros ?? before.priceMicros,',
      ],
      [
        'isAvailable: isAvailable === undefined ? before.isAvailable : isAvailable,',
        'isAvailable: isAvailable ?? null,',
      ],
      [
        'isSoldByMpp: isSoldByMpp === undefined ? before.isSoldByMpp : isSoldByMpp,',
        'isSoldByMpp: isSoldByMpp ?? null,',
      ],
      ['byOperator: shown(keeper.rules.get(path)),', 'byOperator: shown(keeper.fileRules.get(path)),'],
      ['byFile: shown(keeper.fileRules.get(path)),', 'byFile: null,'],
    ],
  },
  {
    file: 'packages/core/src/operator/stock-routes.ts',
    tests: ['apps/shop/test/operator/stock.test.ts'],
    bugs: [
      ['isSoldByMpp: mpp,', 'isSoldByMpp: undefined,'],
      [
        '({ price, available, mpp }) => price !== undefined || available !== undefined || mpp !== undefined,',
        '() => true,',
      ],
      ['reason: why, path, rule', 'reason: path, path, rule'],
    ],
  },
];
