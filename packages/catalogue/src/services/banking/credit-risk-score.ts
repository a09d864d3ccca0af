import { chainName } from '@farebox/core/service/fields';
import { answer } from '@farebox/core/words/answer';
import { z } from 'zod';
import { creditCard } from '../../quant/credit-card.ts';
import { EVM_CHAIN_NAMES } from '../../upstreams/adapters/evm-chains.ts';
import { defineService } from '../define.ts';
import { lendingPosition } from '../shared/wallet/lending-position.ts';
import { type WalletActivity, walletActivity } from '../shared/wallet/wallet-activity.ts';
import { evmAddress } from '../shared/wallet/wallet-address.ts';
import { namedChain } from '../shared/wallet/wallet-chains.ts';
import { addressLists, hitsOf, oracleVerdicts, verdictOf } from '../shared/wallet/wallet-screening.ts';
import { SURVEY_USES, surveyWallet } from '../shared/wallet/wallet-survey.ts';

const DAY_MS = 86_400_000;
const DISCLAIMER =
  'Information from one chain, scored by the points shown. It is not a credit report of a person, not an industry standard, and not advice.';

export default defineService({
  path: 'credit-risk-score',
  name: 'Credit Risk Score',
  tag: 'Banking',
  priceUsd: '1.25',
  summary:
    'A score of 0 to 1,000 from what a chain shows of a wallet’s history, means and lending, point by point; sanctioned is 0, no history a thin file.',
  keywords:
    'credit creditworthy creditworthiness score lend lending loan loans borrow borrower borrowing default repay repayment debt rating underwriting collateral trust wallet history fico',
  input: z.object({
    walletAddress: evmAddress('The wallet, on an EVM chain'),
    chain: chainName.default('base').describe('Where it is looked at; base unless given'),
    includeDefi: z
      .boolean()
      .default(true)
      .describe('Also its position in Aave v3 and liquidations; true unless given'),
  }),
  output: z.object({
    data: z
      .object({
        walletAddress: z.string().describe('The wallet that was asked about'),
        chain: z.string().describe('The chain that was read'),
        score: z.number().int().min(0).max(1_000).describe('Sum of the points, 0 to 1,000; higher is better'),
        highestScore: z
          .number()
          .int()
          .min(0)
          .max(1_000)
          .describe(
            'The score if every factor that could not be evaluated had full marks: the score of a wallet of which all is known lies between the two',
          ),
        tier: z
          .enum(['Sanctioned', 'Thin file', 'Weak', 'Fair', 'Good', 'Strong'])
          .describe('Band of the score'),
        factors: z
          .array(
            z.object({
              factor: z.string().describe('What is counted'),
              points: z.number().nullable().describe('Null: not evaluated'),
              maxPoints: z.number().describe('The most that it can add'),
              because: z.string().describe('Why, in a sentence'),
            }),
          )
          .describe('What the score is made of'),
        positiveFactors: z.array(z.string()).describe('Those with at least half of their points'),
        coverage: z.number().describe('Share of the points that could be evaluated, 0 to 1'),
        history: z
          .object({
            transactionCount: z.number().int().describe('Transactions that it sent'),
            firstActivityAt: z.iso.datetime().nullable().describe('Its first transaction; null without one'),
            ageDays: z
              .number()
              .nullable()
              .describe(
                'Days since its first transaction; null without one, or where nobody could say (see the notes)',
              ),
            holdingsUsd: z.number().describe('What it holds, in USD'),
            blockNumber: z.number().int().describe('The block at which it was read'),
          })
          .describe('What the wallet did on this chain'),
        defi: z
          .object({
            aave: z
              .object({
                collateralUsd: z.number().describe('Collateral in USD'),
                debtUsd: z.number().describe('Debt in USD'),
                healthFactor: z.number().nullable().describe('Null without debt'),
                liquidations: z
                  .number()
                  .int()
                  .nullable()
                  .describe('Liquidations in the blocks that were searched; null where none were'),
                searchedFromBlock: z
                  .number()
                  .int()
                  .nullable()
                  .describe('The first block that was searched; null where none was'),
              })
              .describe('Its account at Aave'),
          })
          .nullable()
          .describe('What it lends and owes; null where nobody asked or it could not be read'),
        sanctioned: z.boolean().describe('Whether it is sanctioned'),
        disclaimer: z.string().describe('What the answer is not, in a sentence'),
      })
      .describe('The score'),
  }),
  example: { walletAddress: '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65', includeDefi: true },
  aliases: {
    address: 'walletAddress',
    wallet: 'walletAddress',
    entityId: 'walletAddress',
    network: 'chain',
    chainId: 'chain',
  },
  needs: [EVM_CHAIN_NAMES, 'defillama'],
  uses: ['solana', 'etherscan', ...SURVEY_USES],
  requires: ['lists'],
  mayUse: ['tokenLists'],
  timeoutMs: 25_000,
  async run({ walletAddress, chain, includeDefi }, { upstreams, lists, tokenLists, nowMs }) {
    const [head, opened] = await Promise.all([namedChain(chain, upstreams), addressLists(lists)]);
    const [activity, survey, oracles, lending] = await Promise.all([
      walletActivity(head, walletAddress, upstreams),
      surveyWallet(
        { wallet: walletAddress, chains: [head.chain.name], withTokens: true },
        { upstreams, tokenLists, nowMs },
      ),
      oracleVerdicts(head, walletAddress, upstreams),
      includeDefi ? lendingPosition(head, walletAddress) : null,
    ]);
    const sanctioned =
      hitsOf(opened.sanctions, walletAddress).length > 0 || verdictOf(oracles.verdicts) === true;
    const ageDays = ageOf(activity, nowMs());
    const card = creditCard({
      sanctioned,
      ageDays,
      transactions: activity.transactions,
      holdingsUsd: survey.totalValueUsd,
      lending,
      liquidations: lending?.liquidations ?? null,
    });
    const notes = [...oracles.notes, ...activity.notes, ...unevaluated(activity), ...survey.notes];
    if (includeDefi && lending === null) notes.push(`defi is null: Aave v3 does not answer on ${chain}.`);
    if (lending?.searchedFromBlock != null && lending.searchedFromBlock > 0n) {
      notes.push(`Liquidations are those since block ${lending.searchedFromBlock}; older ones are not seen.`);
    }
    return answer(
      {
        data: {
          walletAddress,
          chain: head.chain.name,
          score: card.score,
          highestScore: card.highestScore,
          tier: card.tier,
          factors: card.parts,
          positiveFactors: card.parts
            .filter(({ points, maxPoints }) => (points ?? 0) >= maxPoints / 2)
            .map(({ factor }) => factor),
          coverage: card.coverage,
          history: {
            transactionCount: activity.transactions,
            firstActivityAt:
              activity.first === null ? null : new Date(activity.first.timestampMs).toISOString(),
            ageDays,
            holdingsUsd: survey.totalValueUsd,
            blockNumber: Number(head.blockNumber),
          },
          defi:
            lending === null
              ? null
              : {
                  aave: {
                    ...lending,
                    searchedFromBlock:
                      lending.searchedFromBlock === null ? null : Number(lending.searchedFromBlock),
                  },
                },
          sanctioned,
          disclaimer: DISCLAIMER,
        },
      },
      {
        method:
          'Points are added up: age 200 at four years, transactions 50 log10(1 + n) to 150, holdings 40 log10(1 + USD) to 200, lending by its health factor to 250, no liquidations to 200. Sanctioned is 0. A thin file has sent fewer than 5 transactions or is younger than 30 days. What is unknown gives no points, lowers coverage, and is told by highestScore.',
        sources: [...opened.sources, head.source, ...activity.sources, ...survey.sources, ...oracles.sources],
        notes,
      },
    );
  },
});

/** Whole days since the first transaction; null where there is none, or nobody could say. */
function ageOf({ first }: WalletActivity, nowMs: number): number | null {
  return first === null ? null : Math.max(0, Math.floor((nowMs - first.timestampMs) / DAY_MS));
}

function unevaluated({ first, transactions }: WalletActivity): string[] {
  return first === null && transactions > 0
    ? ['WALLET_AGE was not evaluated: up to 200 points are missing from score, and stand in highestScore.']
    : [];
}
