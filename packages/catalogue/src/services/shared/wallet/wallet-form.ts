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
  .describe(
    'agree: two sources, within 5 %; disagree: they differ by more, and the lower price counts; one_source: only one knows a price; null without any',
  );

/** The prices behind one price. */
export const pricesBy = z
  .array(
    z.object({
      source: z.enum(['defillama', 'dexscreener']).describe('Whose price it is'),
      priceUsd: z.number().nonnegative().describe('Price of one in USD'),
    }),
  )
  .describe('Each price that a source gave');

export const tokensChecked = z
  .array(outsiderText(60))
  .nullable()
  .describe(
    `Symbols of the first ${MOST_CHECKED_NAMED} tokens that were looked for (tokensCheckedCount says of how many); null where every token account of the wallet was read`,
  );
export const tokensCheckedCount = z
  .number()
  .int()
  .nullable()
  .describe('How many tokens were looked for; null where every token account of the wallet was read');

export const tokenLists = z
  .array(
    z.object({
      list: z.string().describe('The list, by its short name'),
      title: z.string().describe('The list, in full'),
      publishedAt: z.string().describe('When its publisher issued it'),
      confirmedAt: z.string().describe('When this server last checked that it is current'),
      sha256: z.string().describe('Hash of the file that was read, in hex'),
      entries: z.number().int().describe('Its tokens of this chain'),
    }),
  )
  .describe('The published lists whose tokens were looked for, beside the well-known ones');

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
