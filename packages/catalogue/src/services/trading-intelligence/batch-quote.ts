import { chainName, outsiderText, text } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { CHAINS } from '@farebox/core/words/chain-names';
import { noAnswer, ServiceFailure, UpstreamUnavailable } from '@farebox/core/words/failure';
import { type Address, formatUnits, getAddress, isAddress, parseUnits } from 'viem';
import { z } from 'zod';
import { EVM_CHAIN_NAMES, type EvmChainName, evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import { defineService } from '../define.ts';
import { sameAddress } from '../shared/chain/chain-pools.ts';
import { quoteSwaps, type SwapOutcome } from '../shared/chain/chain-quotes.ts';
import { readTokens, type TokenFacts } from '../shared/chain/chain-token.ts';
import { amount, amountRaw, isOneAmount, ONE_AMOUNT } from '../shared/chain/token-amount.ts';
import { type EvmChains, namedChain } from '../shared/wallet/wallet-chains.ts';

const MOST_QUOTES = 20;
/** How much less than quoted `minReceived` allows for, in hundredths of a percent. */
const SLIPPAGE_BASIS_POINTS = 50n;
const NATIVE_COIN = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee';
/** Uniswap v3 counts amounts as signed numbers of 256 bits; no token has this many units. */
const MOST_UNITS = 2n ** 127n;

const token = (which: string) => text(60, `${which}: address, or ticker of a well-known token of the chain`);
const request = z.preprocess(
  canonicalItem,
  z
    .object({
      fromToken: token('Token to give'),
      toToken: token('Token to get'),
      amount: amount.optional(),
      amountRaw: amountRaw.optional(),
      chain: chainName.default('base'),
    })
    .refine(isOneAmount, ONE_AMOUNT),
);
type QuoteRequest = z.output<typeof request>;

const number = z.number().nullable();
export const output = z.object({
  quotes: z
    .array(
      z.object({
        fromToken: z.string().describe('As asked'),
        toToken: z.string().describe('As asked'),
        fromAddress: z.string().nullable().describe('Token that is given; null where nobody knows it'),
        toAddress: z.string().nullable().describe('Token that is received; null where nobody knows it'),
        fromSymbol: outsiderText(60)
          .nullable()
          .describe('Ticker of the token given; null where nobody knows it'),
        toSymbol: outsiderText(60)
          .nullable()
          .describe('Ticker of the token received; null where nobody knows it'),
        chain: z.enum(CHAINS).describe('The chain, by name'),
        amount: z.string().nullable().describe('In whole tokens'),
        amountRaw: z.string().nullable().describe('In the smallest unit'),
        amountIn: z.string().nullable().describe('The same as amountRaw'),
        amountInFormatted: z.string().nullable().describe('The same as amount'),
        amountOut: z.string().nullable().describe('In the smallest unit'),
        amountOutFormatted: z.string().nullable().describe('In whole tokens'),
        price: number.describe('Tokens received for one token given, fees and impact included'),
        priceImpactPct: number.describe('What the amount moves the price by, in percent; fees not counted'),
        feePct: number.describe('Percent of the amount that the pools on the way take'),
        minReceived: z
          .string()
          .nullable()
          .describe(`amountOut less ${Number(SLIPPAGE_BASIS_POINTS) / 100} %, in the smallest unit`),
        route: z
          .array(
            z.object({
              pool: z.string().describe('Address of the pool'),
              dex: outsiderText(60).describe('The exchange'),
              feePct: z.number().describe('Its fee in percent'),
              fromAddress: z.string().describe('Token that goes in'),
              toAddress: z.string().describe('Token that comes out'),
            }),
          )
          .describe('The pools on the way, in order'),
        gasEstimate: z
          .number()
          .int()
          .nullable()
          .describe("Gas of the swap, without the transaction's own 21,000"),
        blockNumber: z.number().int().nullable().describe('The block at which it was read'),
        error: z
          .object({
            code: z.string().describe('A name for machines'),
            message: outsiderText(500).describe('The same in a sentence'),
          })
          .nullable()
          .describe('Why there is no quote'),
      }),
    )
    .describe('One for each swap, in the order asked'),
  count: z.number().int().describe('How many are in the list'),
  quoted: z.number().int().describe('Those without an error'),
});
type Quote = z.input<typeof output>['quotes'][number];

export default defineService({
  path: 'batch-quote',
  name: 'Batch Quote Service',
  tag: 'Trading Intelligence',
  priceUsd: '0.40',
  summary:
    'Quotes what up to 20 swaps would give now, simulated by Uniswap v3’s quoter on chain over all fee tiers, with impact and route.',
  keywords:
    'swap swaps quotes several many multiple exchange convert trade trades rate receive get out amount uniswap simulate bulk once compare weth wbtc usdc usdt dai slippage price impact route router',
  input: z.object({
    quotes: z.array(request).min(1).max(MOST_QUOTES).describe('The swaps to quote'),
  }),
  output,
  example: { quotes: [{ fromToken: 'WETH', toToken: 'USDC', amount: '1.0', chain: 'base' }] },
  aliases: { swaps: 'quotes', pairs: 'quotes' },
  adapt: quotesFromTokens,
  needs: [EVM_CHAIN_NAMES],
  async run({ quotes }, { upstreams }) {
    const byChain = Map.groupBy(quotes, ({ chain }) => chain);
    const answers = await Promise.all(
      [...byChain.values()].map((requests) => answersOf(requests, upstreams)),
    );
    const found = new Map(answers.flatMap(({ quoted }) => [...quoted]));
    const inOrder = quotes.map((asked) => found.get(asked)).filter((quote) => quote !== undefined);
    const good = inOrder.filter(({ error }) => error === null);
    if (good.length === 0) {
      const outage = answers.find(({ outage }) => outage !== null)?.outage;
      if (outage !== undefined && outage !== null) throw outage;
      const why = [...new Set(inOrder.map(({ error }) => error?.message))].slice(0, 3).join(' ');
      throw noAnswer('NO_QUOTE', `None of the ${quotes.length} swaps could be quoted. ${why}`, 'quotes');
    }
    return answer(
      { quotes: inOrder, count: inOrder.length, quoted: good.length },
      {
        method:
          'quoteExactInput of Uniswap v3’s QuoterV2, a simulation of the swap on chain, for every fee tier of the pair; where the pair has ' +
          'no pool, through the wrapped native coin or USDC. The route that gives most is shown; other exchanges are not asked.',
        sources: answers.flatMap(({ source }) => (source === null ? [] : [source])),
        notes: [
          `minReceived allows for ${Number(SLIPPAGE_BASIS_POINTS) / 100} % less than quoted. A quote holds for its block; it is no offer.`,
          ...answers.flatMap(({ notes }) => notes),
        ],
      },
    );
  },
});

/** Other names of an item's fields. */
function canonicalItem(item: unknown): unknown {
  if (typeof item !== 'object' || item === null) return item;
  const {
    tokenIn,
    token_in,
    from_token,
    from,
    tokenOut,
    token_out,
    to_token,
    to,
    amountIn,
    amount_in,
    ...rest
  } = item as Record<string, unknown>;
  const known = {
    fromToken: from_token ?? tokenIn ?? token_in ?? from,
    toToken: to_token ?? tokenOut ?? token_out ?? to,
    // Without a decimal point it is the amount that routers call by this name, in the smallest unit.
    ...(isWhole(amountIn ?? amount_in)
      ? { amountRaw: amountIn ?? amount_in }
      : { amount: amountIn ?? amount_in }),
    chain: rest.chainId ?? rest.network,
  };
  const set = Object.entries(known).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(set), ...rest };
}

function isWhole(written: unknown): boolean {
  return typeof written === 'string' ? /^\s*\d+\s*$/.test(written) : Number.isInteger(written);
}

/** `{ tokens: […], chain }` asks for one of each token in USDC; a `chain` of the body holds for items without one. */
function quotesFromTokens(body: Record<string, unknown>): Record<string, unknown> {
  const { tokens, chain, ...rest } = body;
  const items =
    rest.quotes === undefined && Array.isArray(tokens)
      ? tokens.map((written: unknown) => ({ fromToken: written, toToken: 'USDC', amount: '1.0' }))
      : rest.quotes;
  if (!Array.isArray(items)) return body;
  const at = chain === undefined ? {} : { chain };
  return {
    ...rest,
    quotes: items.map((item: unknown) =>
      typeof item === 'object' && item !== null ? { ...at, ...item } : item,
    ),
  };
}

interface ChainAnswers {
  quoted: ReadonlyMap<QuoteRequest, Quote>;
  source: Source | null;
  notes: string[];
  outage: UpstreamUnavailable | null;
}

/** Quotes of one chain. A chain that cannot be read fails its own quotes, not the batch. */
async function answersOf(requests: readonly QuoteRequest[], chains: EvmChains): Promise<ChainAnswers> {
  try {
    return await readAnswers(requests, chains);
  } catch (error) {
    if (!(error instanceof ServiceFailure)) throw error;
    const quoted = new Map(requests.map((asked) => [asked, failed(asked, error.code, error.message)]));
    const outage = error instanceof UpstreamUnavailable ? error : null;
    return { quoted, source: null, notes: [], outage };
  }
}

async function readAnswers(requests: readonly QuoteRequest[], chains: EvmChains): Promise<ChainAnswers> {
  const name = requests[0]?.chain ?? 'base';
  const { chain, blockNumber, source } = await namedChain(name, chains);
  const named = requests.map((asked) => ({
    asked,
    from: addressOf(asked.fromToken, chain.name),
    to: addressOf(asked.toToken, chain.name),
  }));
  const addresses = named.flatMap(({ from, to }) => [from, to]).filter((address) => address !== null);
  const tokens = await readTokens(chain, addresses, blockNumber);
  const factsOf = (address: Address | null) =>
    address === null ? undefined : tokens.get(address.toLowerCase());

  const quoted = new Map<QuoteRequest, Quote>();
  const swaps: { asked: QuoteRequest; from: Priceable; to: Priceable; amountIn: bigint }[] = [];
  for (const { asked, from, to } of named) {
    const [give, get] = [factsOf(from), factsOf(to)];
    const unknown = isPriceable(give) ? asked.toToken : asked.fromToken;
    if (!isPriceable(give) || !isPriceable(get)) {
      quoted.set(
        asked,
        failed(asked, 'UNKNOWN_TOKEN', `${unknown} is no token on ${name} that could be read.`),
      );
    } else if (sameAddress(give.address, get.address)) {
      quoted.set(asked, failed(asked, 'SAME_TOKEN', 'Both tokens are the same.'));
    } else {
      const amountIn = unitsOf(asked, give.decimals);
      if (typeof amountIn === 'string') quoted.set(asked, failed(asked, 'BAD_AMOUNT', amountIn));
      else swaps.push({ asked, from: give, to: get, amountIn });
    }
  }

  const outcomes = await quoteSwaps(
    chain,
    swaps.map(({ from, to, amountIn }) => ({ from: from.address, to: to.address, amountIn })),
    blockNumber,
  );
  swaps.forEach((swap, index) => {
    quoted.set(swap.asked, quoteOf(swap, outcomes[index] ?? 'no_pool', Number(blockNumber)));
  });
  const meantNative = requests.some(({ fromToken, toToken }) =>
    [fromToken, toToken].some((written) => isNative(written, chain.name)),
  );
  const wrapped = evmChainFacts(chain.name).wrappedNative.symbol;
  return {
    quoted,
    source,
    notes: meantNative
      ? [`On ${name} the native coin is quoted as ${wrapped}, which it is wrapped into.`]
      : [],
    outage: null,
  };
}

type Priceable = TokenFacts & { decimals: number };

function isPriceable(facts: TokenFacts | undefined): facts is Priceable {
  return facts !== undefined && facts.decimals !== null;
}

function isNative(written: string, chain: EvmChainName): boolean {
  const { nativeSymbol } = evmChainFacts(chain);
  // On bsc there is a token named ETH beside the coin BNB.
  return sameAddress(written, NATIVE_COIN) || written.toUpperCase() === nativeSymbol;
}

/** Null: no address and no ticker on the chain's list. */
function addressOf(written: string, chain: EvmChainName): Address | null {
  const { tokens, wrappedNative } = evmChainFacts(chain);
  if (isNative(written, chain)) return wrappedNative.address;
  if (isAddress(written, { strict: false })) return getAddress(written);
  return tokens.find(({ symbol }) => symbol.toUpperCase() === written.toUpperCase())?.address ?? null;
}

/** The amount in the smallest unit, or in words why it is none. */
function unitsOf({ amount: written = '', amountRaw: raw }: QuoteRequest, decimals: number): bigint | string {
  const [, fraction = ''] = written.split('.');
  if (fraction.replace(/0+$/, '').length > decimals) {
    return `${written} has more decimals than the token, which has ${decimals}.`;
  }
  const units = raw === undefined ? parseUnits(written, decimals) : BigInt(raw);
  if (units === 0n) return 'The amount is zero.';
  return units > MOST_UNITS ? `${raw ?? written} is more than any pool can hold.` : units;
}

function failed(asked: QuoteRequest, code: string, message: string): Quote {
  const { fromToken, toToken, chain, amount = null, amountRaw = null } = asked;
  return { ...NOTHING, fromToken, toToken, chain, amount, amountRaw, error: { code, message } };
}

const NOTHING = {
  fromAddress: null,
  toAddress: null,
  fromSymbol: null,
  toSymbol: null,
  amountIn: null,
  amountInFormatted: null,
  amountOut: null,
  amountOutFormatted: null,
  price: null,
  priceImpactPct: null,
  feePct: null,
  minReceived: null,
  route: [],
  gasEstimate: null,
  blockNumber: null,
};

function quoteOf(
  { asked, from, to, amountIn }: { asked: QuoteRequest; from: Priceable; to: Priceable; amountIn: bigint },
  outcome: SwapOutcome,
  blockNumber: number,
): Quote {
  const { fromToken, toToken, chain } = asked;
  const swap = {
    fromToken,
    toToken,
    chain,
    amount: formatUnits(amountIn, from.decimals),
    amountRaw: String(amountIn),
    fromAddress: from.address,
    toAddress: to.address,
    fromSymbol: from.symbol,
    toSymbol: to.symbol,
    amountIn: String(amountIn),
    amountInFormatted: formatUnits(amountIn, from.decimals),
    blockNumber,
  };
  if (typeof outcome === 'string') return { ...NOTHING, ...swap, error: whyNone(outcome, chain) };
  const { amountOut, pools, tokens, priceImpactPercent, gasEstimate } = outcome;
  const amountOutFormatted = formatUnits(amountOut, to.decimals);
  const price = Number(amountOutFormatted) / Number(swap.amountInFormatted);
  const kept = pools.reduce((part, { fee }) => part * (1 - fee / 1e6), 1);
  return {
    ...swap,
    amountOut: String(amountOut),
    amountOutFormatted,
    price: Number.isFinite(price) ? Number(price.toPrecision(12)) : null,
    priceImpactPct: priceImpactPercent,
    feePct: Number(((1 - kept) * 100).toFixed(6)),
    minReceived: String((amountOut * (10_000n - SLIPPAGE_BASIS_POINTS)) / 10_000n),
    route: pools.map((pool, index) => ({
      pool: pool.address,
      dex: 'uniswap v3',
      feePct: pool.fee / 10_000,
      fromAddress: tokens[index] ?? '',
      toAddress: tokens[index + 1] ?? '',
    })),
    gasEstimate: Number(gasEstimate),
    error: null,
  };
}

function whyNone(outcome: Exclude<SwapOutcome, object>, chain: string): { code: string; message: string } {
  switch (outcome) {
    case 'no_pool': {
      const message = `Uniswap v3 on ${chain} has no pool of the two, nor of both with the wrapped native coin or USDC.`;
      return { code: 'NO_POOL', message };
    }
    case 'not_enough_liquidity':
      return { code: 'NOT_ENOUGH_LIQUIDITY', message: 'No pool of the two can take the whole amount.' };
    case 'too_small':
      return { code: 'TOO_SMALL', message: 'Less than the smallest unit would come out for the amount.' };
  }
}
