import { outsiderText } from '@farebox/core/service/fields';
import { CHAINS } from '@farebox/core/words/chain-names';
import { z } from 'zod';
import { defineService } from '../define.ts';
import { pricedAnswer } from '../figures.ts';
import { walletAddress } from '../shared/wallet/wallet-address.ts';
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
import { inUnits, type TokenHolding } from '../shared/wallet/wallet-holdings.ts';
import { SURVEY_NEEDS, SURVEY_USES, surveyWallet, type Valued } from '../shared/wallet/wallet-survey.ts';

const usd = z.number().nonnegative().nullable();
const token = z.object({
  symbol: outsiderText(60).nullable().describe('Ticker; null where nobody knows it'),
  address: z.string().describe('Address of the token'),
  decimals: z.number().int().describe('Decimal places of the smallest unit'),
  balance: z.string().describe('In whole tokens, exactly'),
  balanceRaw: z.string().describe('In the smallest unit'),
  priceUsd: usd.describe('Price of one in USD; the lower of two that disagree'),
  priceAgreement,
  pricesBy,
  valueUsd: usd.describe('Value in USD'),
});

export default defineService({
  path: 'multi-chain-balance',
  name: 'Multi-Chain Balance Checker',
  tag: 'Trading Intelligence',
  priceUsd: '0.50',
  summary:
    'Coins and tokens (of published lists) of a wallet on several chains, each read at one block, with their value in USD.',
  keywords:
    'balance balances funds money address wallet holdings holds own coins tokens how much all chains networks assets inside empty',
  input: z.object({
    walletAddress: walletAddress('Wallet: an EVM address (0x and 40 hex digits), or a Solana address'),
    chains: chainList('Chains to read; all that this server can read for this kind of address unless given'),
    includeTokens: z.boolean().default(true).describe('False: only the native coins'),
  }),
  output: z.object({
    walletAddress: z.string().describe('The wallet that was asked about'),
    balances: z
      .array(
        z.object({
          chain: z.enum(CHAINS).describe('The chain, by name'),
          nativeSymbol: z
            .string()
            .nullable()
            .describe('Ticker of the chain’s own coin; null where it could not be read'),
          native: z.string().nullable().describe('In whole coins, exactly'),
          nativeRaw: z.string().nullable().describe('In the smallest unit, such as wei'),
          nativeUsd: usd.describe('Value of that coin in USD'),
          tokens: z.array(token).describe('Those that the wallet holds some of'),
          tokensChecked,
          tokensCheckedCount,
          tokenLists,
          blockNumber: z.number().int().nullable().describe('Where all of it was read; the slot on solana'),
          error: z
            .enum(['not_configured', 'unavailable', 'other_kind_of_address'])
            .nullable()
            .describe('Why this chain could not be read'),
        }),
      )
      .describe('One for each chain'),
    totalValueUsd: z.number().nonnegative().describe('Sum of what could be read and priced'),
    totalIsPartial: z
      .boolean()
      .describe(
        'True when the wallet may hold more: something could not be read or priced, or only some tokens of a chain, or none, were looked for',
      ),
  }),
  example: { walletAddress: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266', chains: ['base'] },
  aliases: {
    address: 'walletAddress',
    wallet: 'walletAddress',
    chain: 'chains',
    networks: 'chains',
    network: 'chains',
  },
  needs: SURVEY_NEEDS,
  uses: SURVEY_USES,
  mayUse: ['tokenLists'],
  async run({ walletAddress: wallet, chains, includeTokens }, { upstreams, tokenLists: lists, nowMs }) {
    const survey = await surveyWallet(
      { wallet, chains, withTokens: includeTokens },
      { upstreams, tokenLists: lists, nowMs },
    );
    return pricedAnswer(
      {
        walletAddress: wallet,
        balances: survey.chains.map((one) => {
          if (one.error !== null) return { ...NOTHING, chain: one.chain, error: one.error };
          return {
            chain: one.chain,
            nativeSymbol: one.native.symbol,
            native: inUnits(one.native),
            nativeRaw: String(one.native.amount),
            nativeUsd: one.native.valueUsd,
            tokens: one.tokens.map(shown),
            ...searched(one),
            blockNumber: Number(one.blockNumber),
            error: null,
          };
        }),
        totalValueUsd: survey.totalValueUsd,
        totalIsPartial: survey.totalIsPartial,
      },
      {
        method:
          "Balances read from each chain at one block (balanceOf and decimals of the token contracts, of the well-known tokens and of published token lists), times current prices: DefiLlama's, held against the deepest pools by DexScreener; the lower where they differ by more than 5 %.",
        sources: survey.sources,
        notes: survey.notes,
      },
    );
  },
});

const NOTHING = {
  nativeSymbol: null,
  native: null,
  nativeRaw: null,
  nativeUsd: null,
  tokens: [],
  ...NOT_SEARCHED,
  blockNumber: null,
};

function shown(holding: Valued<TokenHolding>) {
  return {
    symbol: holding.symbol,
    address: holding.address,
    decimals: holding.decimals,
    balance: inUnits(holding),
    balanceRaw: String(holding.amount),
    ...priced(holding),
    valueUsd: holding.valueUsd,
  };
}
