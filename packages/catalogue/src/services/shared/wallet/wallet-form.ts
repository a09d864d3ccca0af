/** How answers show what a wallet holds: fields that several services share. */
import { outsiderText } from '@farebox/core/service/fields';
import { z } from 'zod';
import type { Holding } from './wallet-holdings.ts';
import type { SurveyedChain, Valued } from './wallet-survey.ts';

/** How many of the tokens that were looked for an answer names. */
const MOST_CHECKED_NAMED = 100;

/** How far the sources of a price agree. */
export const priceAgreement = z
  .enum(['agree', 'disagree', 'one_source'])
  .nullable()
  .describe('disagree: two sources differ by more than 5 %, and the lower price counts');

/** The prices behind one price. */
export const pricesBy = z
  .array(
    z.object({
      source: z.enum(['defillama', 'dexscreener']).describe('Whose price'),
      priceUsd: z.number().nonnegative().describe('Of one, in USD'),
    }),
  )
  .describe('Each price of one in USD');

export const tokensChecked = z
  .array(outsiderText(60))
  .nullable()
  .describe(`The first ${MOST_CHECKED_NAMED} tokens looked for; null where every token account was read`);
export const tokensCheckedCount = z.number().int().nullable().describe('How many were looked for');

export const tokenLists = z
  .array(
    z.object({
      list: z.string().describe('Its name'),
      publishedAt: z.string().describe('Its own date'),
      confirmedAt: z.string().describe('When it was last seen to be current'),
      sha256: z.string().describe('Of its file'),
      entries: z.number().int().describe('Its tokens of this chain'),
    }),
  )
  .describe('Published lists whose tokens were looked for');

/** How a chain was searched for tokens. */
export function searched({ tokensChecked: checked, tokenLists: lists }: SurveyedChain) {
  return {
    tokensChecked: checked?.slice(0, MOST_CHECKED_NAMED).map(({ symbol }) => symbol) ?? null,
    tokensCheckedCount: checked?.length ?? null,
    tokenLists: lists,
  };
}

/** The same of a chain that was not read. */
export const NOT_SEARCHED = { tokensChecked: [], tokensCheckedCount: 0, tokenLists: [] };

/** A price, and where it is from. */
export function priced({ priceUsd, priced: { agreement, by } }: Valued<Holding>) {
  return { priceUsd, priceAgreement: agreement, pricesBy: by };
}
