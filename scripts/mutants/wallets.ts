/** Bugs in what a wallet is said to hold, what that is worth, and how old it is. */
import type { MutantsOfFile } from '../mutant.ts';

const TOKENS_TEST = 'packages/catalogue/src/services/shared/wallet/wallet-tokens.test.ts';
const BALANCE_TEST = 'packages/catalogue/src/services/trading-intelligence/multi-chain-balance.test.ts';

export const WALLET_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/catalogue/src/services/shared/wallet/wallet-tokens.ts',
    tests: [TOKENS_TEST],
    bugs: [
      ['.filter((each) => isListOf(each, chain))', ''],
      ['if (!found.has(key)) found.set(key, { address, symbol });', 'found.set(key, { address, symbol });'],
      ['sought.notes.push(`$', 'void (`$'],
      ['if (tokens.length > LEAST_TOKENS_PER_CALL && failedAsOne(answers)) {', 'if (tokens.length > 999) {'],
      ['return amount > 0n ? [{ ...token, amount }] : [];', 'return [{ ...token, amount }];'],
      [
        'const silent = tokens.filter((_, index) => amounts[index] === null);',
        'const silent: ListedToken[] = [];',
      ],
    ],
  },
  {
    file: 'packages/catalogue/src/services/shared/wallet/wallet-survey.ts',
    tests: [TOKENS_TEST, BALANCE_TEST],
    bugs: [
      ['tokensChecked !== null || leavesOut', 'leavesOut'],
      ['tokensChecked !== null || leavesOut', 'tokensChecked !== null'],
      ['someTokensOnly || unpriced.length > 0 ||', 'someTokensOnly ||'],
      ["missing.some(({ error }) => error !== 'other_kind_of_address')", 'missing.length > 0'],
      ['      ...disagreements(held),\n', ''],
    ],
  },
  {
    file: 'packages/catalogue/src/services/shared/wallet/wallet-prices.ts',
    tests: [TOKENS_TEST],
    bugs: [
      ['nowMs - atMs <= OLDEST_PRICE_MS && ', ''],
      [' && (confidence ?? 1) >= LEAST_CONFIDENCE', ''],
      [' && market.liquidityUsd >= LEAST_LIQUIDITY_USD', ''],
      ['value.filter((pair) => pair.chain === chain)', 'value'],
      ['addresses.slice(0, MOST_SECOND_PRICES)', 'addresses.slice()'],
      ['usd: differs ? lower : defillama', 'usd: defillama'],
      ['> MOST_DIFFERENCE * lower', '> MOST_DIFFERENCE * defillama'],
    ],
  },
  {
    file: 'packages/catalogue/src/services/shared/wallet/wallet-activity.ts',
    tests: ['packages/catalogue/src/services/shared/wallet/wallet-activity.test.ts'],
    bugs: [
      [
        '  return { ...facts, ...(await firstByIndex({ chain }, wallet, etherscan)) };',
        '  return { ...facts, first, sources: [], notes: [] };',
      ],
      ['  if (first !== null) return { ...facts, first, sources: [], notes: [] };\n', ''],
      ['if (error instanceof BaseError || error instanceof UpstreamUnavailable) return null;', ''],
      [
        '    if (!(error instanceof UpstreamUnavailable)) throw error;\n    return unknown(',
        '    throw error;\n    return unknown(',
      ],
      ['    if (!value.known) {', '    if (false as boolean) {'],
      ['  if (transactions === 0) {', '  if (transactions < 0) {'],
      ['sources: [{ ...source, asOf: source.retrievedAt }],', 'sources: [],'],
      ['if (sent[index] === false && block > before) before = block;', ''],
    ],
  },
];
