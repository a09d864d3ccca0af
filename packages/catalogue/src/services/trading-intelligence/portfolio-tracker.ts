import { outsiderText } from '@farebox/core/service/fields';
import type { Source } from '@farebox/core/words/answer';
import { CHAINS } from '@farebox/core/words/chain-names';
import { isAddress } from 'viem';
import { z } from 'zod';
import type { ListedToken } from '../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import { pricedAnswer } from '../figures.ts';
import { isEvmAddress, walletAddress } from '../shared/wallet/wallet-address.ts';
import { chainList } from '../shared/wallet/wallet-chains.ts';
import {
  NOT_SEARCHED,
  priceAgreement,
  priced,
  pricesBy,
  searched,
  tokenLists,
  tokensChecked,
  tokensCheckedCount,
} from '../shared/wallet/wallet-form.ts';
import { walletHistory } from '../shared/wallet/wallet-history.ts';
import { type Holding, inUnits, nameOf } from '../shared/wallet/wallet-holdings.ts';
import { listedCoins } from '../shared/wallet/wallet-prices.ts';
import {
  SURVEY_NEEDS,
  SURVEY_USES,
  type SurveyedChain,
  type SurveyUpstreams,
  surveyWallet,
  type Valued,
} from '../shared/wallet/wallet-survey.ts';

const usd = z.number().nonnegative().nullable();
const percent = z.number().nullable();

export default defineService({
  path: 'portfolio-tracker',
  name: 'Portfolio Tracker',
  tag: 'Trading Intelligence',
  priceUsd: '0.50',
  summary:
    'What a wallet holds across chains: the share of each holding, the change over 24 hours and, where nodes still have it, a week of daily values.',
  keywords:
    'portfolio holdings track tracking performance gain loss gains losses profit pnl history week changed allocation breakdown wallet worth net value over time my investments assets chart',
  input: z.object({
    walletAddress: walletAddress('Wallet: an EVM address (0x and 40 hex digits), or a Solana address'),
    includeHistory: z
      .boolean()
      .default(false)
      .describe('True: also the value at the last seven midnights (UTC), from the state of the chains then'),
    chains: chainList('Chains to read; all that this server can read for this kind of address unless given'),
  }),
  output: z.object({
    walletAddress: z.string().describe('The wallet that was asked about'),
    totalValueUsd: z.number().nonnegative().describe('Sum of what could be read and priced'),
    totalIsPartial: z
      .boolean()
      .describe(
        'True when the wallet may hold more: something could not be read or priced, or only some tokens of a chain were looked for',
      ),
    change24hPct: percent.describe(
      'Of what is held now, by the change of its prices; transfers are not in it',
    ),
    holdings: z
      .array(
        z.object({
          chain: z.enum(CHAINS).describe('The chain, by name'),
          symbol: outsiderText(60).nullable().describe('Ticker; null where nobody knows it'),
          address: z.string().nullable().describe('Null for the coin of the chain itself'),
          balance: z.string().describe('In whole units, exactly'),
          priceUsd: usd.describe('Price of one in USD; the lower of two that disagree'),
          priceAgreement,
          pricesBy,
          valueUsd: usd.describe('Value in USD'),
          allocationPct: usd.describe('Percent of totalValueUsd'),
          change24hPct: percent.describe('Of the price'),
        }),
      )
      .describe('The most valuable first; those without a price last'),
    history: z
      .array(
        z.object({
          at: z.iso.datetime().describe('When (ISO 8601)'),
          valueUsd: z.number().nonnegative().describe('Value in USD'),
          blocks: z
            .array(
              z.object({
                chain: z.enum(CHAINS).describe('The chain, by name'),
                blockNumber: z.number().int().describe('The block at which it was read'),
              }),
            )
            .describe('The blocks that it was read at'),
        }),
      )
      .nullable()
      .describe('Oldest first; null when not asked for, or not to be had (see the notes)'),
    chains: z
      .array(
        z.object({
          chain: z.enum(CHAINS).describe('The chain, by name'),
          blockNumber: z
            .number()
            .int()
            .nullable()
            .describe('The block at which it was read; null where it was not'),
          tokensChecked,
          tokensCheckedCount,
          tokenLists,
          error: z.string().nullable().describe('Why it could not be read; null where it was'),
        }),
      )
      .describe('How each chain was read'),
  }),
  example: { walletAddress: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266', chains: ['base'] },
  aliases: {
    address: 'walletAddress',
    wallet: 'walletAddress',
    history: 'includeHistory',
    chain: 'chains',
    networks: 'chains',
    network: 'chains',
  },
  needs: SURVEY_NEEDS,
  uses: SURVEY_USES,
  mayUse: ['tokenLists'],
  async run({ walletAddress: wallet, includeHistory, chains }, { upstreams, tokenLists: lists, nowMs }) {
    const survey = await surveyWallet(
      { wallet, chains, withTokens: true },
      { upstreams, tokenLists: lists, nowMs },
    );
    const read = survey.chains.filter((one) => one.error === null);
    const held = read
      .flatMap(({ native, tokens }) => [native, ...tokens])
      .filter(({ amount }) => amount > 0n)
      .sort(byValue);
    const [changes, history] = await Promise.all([
      changesOf(read, upstreams),
      includeHistory ? historyOf(wallet, read, upstreams, nowMs()) : NO_HISTORY,
    ]);
    const change = changeOf(held, changes.of);
    return pricedAnswer(
      {
        walletAddress: wallet,
        totalValueUsd: survey.totalValueUsd,
        totalIsPartial: survey.totalIsPartial,
        change24hPct: change.percent,
        holdings: held.map((holding) => ({
          chain: holding.chain,
          symbol: holding.symbol,
          address: holding.address,
          balance: inUnits(holding),
          ...priced(holding),
          valueUsd: holding.valueUsd,
          allocationPct:
            holding.valueUsd === null || survey.totalValueUsd === 0
              ? null
              : (holding.valueUsd / survey.totalValueUsd) * 100,
          change24hPct: changes.of.get(holding.coin) ?? null,
        })),
        history:
          history.points?.map(({ atMs, valueUsd, blocks }) => ({
            at: new Date(atMs).toISOString(),
            valueUsd,
            blocks: blocks.map(({ chain, blockNumber }) => ({ chain, blockNumber: Number(blockNumber) })),
          })) ?? null,
        chains: survey.chains.map((one) =>
          one.error !== null
            ? { chain: one.chain, blockNumber: null, ...NOT_SEARCHED, error: one.error }
            : {
                chain: one.chain,
                blockNumber: Number(one.blockNumber),
                ...searched(one),
                error: null,
              },
        ),
      },
      {
        method:
          "Balances read from each chain at one block, times current prices: DefiLlama's, held against the deepest pools by DexScreener; the lower where they differ by more than 5 %. change24hPct is the sum of the values now over the sum of the same amounts at the prices of 24 hours ago.",
        sources: [...survey.sources, ...changes.sources, ...history.sources],
        notes: [...survey.notes, ...change.notes, ...history.notes],
      },
    );
  },
});

/** Their names stand in the address of one request. */
const MOST_CHANGES = 60;
const NO_HISTORY = { points: null, sources: [], notes: [] };

/** The change of prices over 24 hours in percent, by coin. */
async function changesOf(
  read: readonly SurveyedChain[],
  { defillama }: Pick<Upstreams, 'defillama'>,
): Promise<{ of: Map<string, number>; sources: Source[] }> {
  const replies = await Promise.all(
    read.flatMap(({ chain, native, tokens }) => {
      const held = tokens.slice(0, MOST_CHANGES).map(({ coin }) => coin);
      if (chain === 'solana') return [defillama.changes24h([native.coin, ...held])];
      // Those that every wallet is asked about come in a request that answers share.
      const listed = listedCoins(chain);
      const others = held.filter((coin) => !listed.includes(coin));
      return [listed, others].filter(({ length }) => length > 0).map((coins) => defillama.changes24h(coins));
    }),
  );
  return {
    of: new Map(replies.flatMap(({ value }) => Object.entries(value.coins))),
    sources: replies.map(({ source }) => source),
  };
}

/** What the holdings gained over what the same amounts were worth 24 hours ago. */
function changeOf(
  held: readonly Valued<Holding>[],
  changes: ReadonlyMap<string, number>,
): { percent: number | null; notes: string[] } {
  let nowUsd = 0;
  let beforeUsd = 0;
  const left: string[] = [];
  for (const holding of held) {
    const change = changes.get(holding.coin);
    if (holding.valueUsd === null || change === undefined || change <= -100) {
      left.push(nameOf(holding));
      continue;
    }
    nowUsd += holding.valueUsd;
    beforeUsd += holding.valueUsd / (1 + change / 100);
  }
  return {
    percent: beforeUsd > 0 ? (nowUsd / beforeUsd - 1) * 100 : null,
    notes:
      left.length === 0
        ? []
        : [
            `Not in change24hPct, for want of a price or its change: ${left.slice(0, 20).join(', ')}${left.length > 20 ? ` and ${left.length - 20} more` : ''}.`,
          ],
  };
}

async function historyOf(
  wallet: string,
  read: readonly SurveyedChain[],
  upstreams: SurveyUpstreams,
  nowMs: number,
): Promise<Awaited<ReturnType<typeof walletHistory>>> {
  const chains = read.flatMap(({ chain, tokens }) =>
    chain === 'solana'
      ? []
      : [{ chain: upstreams[chain], held: [...tokens].sort(byValue).flatMap(asListed) }],
  );
  if (!isEvmAddress(wallet) || chains.length < read.length) {
    return { points: null, sources: [], notes: ['history is null: solana serves no past balances.'] };
  }
  return walletHistory(wallet, chains, upstreams, nowMs);
}

function byValue(a: Valued<Holding>, b: Valued<Holding>): number {
  return (b.valueUsd ?? -1) - (a.valueUsd ?? -1);
}

function asListed({ address, symbol }: Holding): ListedToken[] {
  return address !== null && isAddress(address) ? [{ address, symbol: symbol ?? address }] : [];
}
