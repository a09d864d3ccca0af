import { chainName, outsiderText, text, tokenAddress } from '@farebox/core/service/fields';
import type { Answer } from '@farebox/core/words/answer';
import { CHAINS, type ChainName } from '@farebox/core/words/chain-names';
import { notFound, UpstreamUnavailable } from '@farebox/core/words/failure';
import { z } from 'zod';
import { llamaToken } from '../../upstreams/adapters/defillama.ts';
import type { Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import { pricedAnswer } from '../figures.ts';
import { coinIdOf } from '../shared/market/coin-ids.ts';
import {
  coinGeckoQuote,
  coinGeckoTokenQuote,
  dexQuote,
  geckoTerminalQuote,
  llamaChange,
  llamaPrice,
  type TokenQuote,
} from '../shared/market/token-quote.ts';

/** Two sources that differ by more than this part of the price probably mean different tokens. */
const LARGEST_DISAGREEMENT = 0.05;
/** A ticker stands for a token only if the token's deepest pool holds this much, because names are free to copy. */
const MIN_POOL_OF_TICKER_USD = 50_000;

/** Clients send tickers in the address field, too. */
function tickerInAddressField(body: Record<string, unknown>): Record<string, unknown> {
  const { tokenAddress: written, ...rest } = body;
  const isTicker =
    typeof written === 'string' && /^\$?[a-z0-9.]{1,15}$/i.test(written.trim()) && !/^0x/i.test(written);
  return isTicker && rest.symbol === undefined ? { ...rest, symbol: written } : body;
}

const usd = z.number().nonnegative().nullable();
const sourceName = z.string().nullable();

const output = z.object({
  price: z.number().positive().describe('USD'),
  change24h: z.number().nullable().describe('Percent over the last 24 hours'),
  volume24h: usd.describe('USD traded in the last 24 hours'),
  marketCap: usd.describe('USD'),
  symbol: outsiderText(60).nullable().describe('Ticker; null where nobody knows it'),
  name: outsiderText(100).nullable().describe('Name of the token; null where nobody knows it'),
  tokenAddress: z.string().nullable().describe('Address of the token; null where a ticker was asked for'),
  chain: z.enum(CHAINS).nullable().describe('Its chain; null where a ticker was asked for'),
  liquidityUsd: usd.describe('USD in pools of at least 1,000 USD on this chain'),
  source: z.string().describe('Where price is from'),
  fieldSources: z
    .object({
      price: z.string().describe('Source of price'),
      change24h: sourceName.describe('Source of change24h; null where there is no value'),
      volume24h: sourceName.describe('Source of volume24h; null where there is no value'),
      marketCap: sourceName.describe('Source of marketCap; null where there is no value'),
    })
    .describe('Where each figure is from'),
});
type Fields = z.input<typeof output>;

export default defineService({
  path: 'token-price',
  name: 'Token Price Feed',
  tag: 'Trading Intelligence',
  priceUsd: '0.25',
  summary: 'Spot price, 24 h change and volume, and market cap of a token, each with its source.',
  keywords:
    'price prices quote value worth cost costs rate usd dollar dollars coin crypto cryptocurrency bitcoin btc ether ethereum eth solana sol dogecoin doge market cap capitalization ath 24h now currently trading at xrp usdc usdt tether shib pepe chart live ticker spot quote much cap',
  input: z
    .object({
      tokenAddress: tokenAddress.optional(),
      chain: chainName.optional(),
      symbol: text(
        20,
        'Ticker, instead of tokenAddress; ambiguous tickers are resolved by the deepest pool',
      ).optional(),
    })
    .refine(({ tokenAddress, symbol }) => tokenAddress !== undefined || symbol !== undefined, {
      path: ['tokenAddress'],
      message: 'is required (or a symbol instead)',
    })
    .refine(({ tokenAddress, chain }) => tokenAddress === undefined || chain !== undefined, {
      path: ['chain'],
      message: 'is required with tokenAddress',
    })
    .refine(
      ({ tokenAddress, chain }) =>
        tokenAddress === undefined ||
        chain === undefined ||
        (chain === 'solana') !== tokenAddress.startsWith('0x'),
      { path: ['tokenAddress'], message: 'is not an address of this chain' },
    )
    .meta({ anyOf: [{ required: ['tokenAddress', 'chain'] }, { required: ['symbol'] }] }),
  output,
  example: { tokenAddress: '0x4200000000000000000000000000000000000006', chain: 'base' },
  aliases: {
    address: 'tokenAddress',
    contractAddress: 'tokenAddress',
    token: 'tokenAddress',
    tokenSymbol: 'symbol',
    ticker: 'symbol',
    network: 'chain',
    chainId: 'chain',
    blockchain: 'chain',
  },
  adapt: tickerInAddressField,
  needs: [['defillama', 'dexscreener', 'geckoterminal', 'coingecko']],
  async run(input, { upstreams, nowMs }) {
    if (input.tokenAddress !== undefined && input.chain !== undefined) {
      return priceOfToken({ chain: input.chain, address: input.tokenAddress }, [], upstreams, nowMs());
    }
    const ticker = (input.symbol ?? '').replace(/^\$/, '');
    const coinId = coinIdOf(ticker);
    if (coinId !== null) return priceOfCoin(coinId, ticker.toUpperCase(), upstreams, nowMs());
    const { note, ...token } = await tokenByTicker(ticker, input.chain, upstreams);
    return priceOfToken(token, [note], upstreams, nowMs());
  },
});

type PriceSources = Pick<Upstreams, 'defillama' | 'dexscreener' | 'geckoterminal' | 'coingecko'>;
interface Token {
  chain: ChainName;
  address: string;
}

async function priceOfToken(token: Token, notes: string[], sources: PriceSources, nowMs: number) {
  const { chain, address } = token;
  const coin = llamaToken(chain, address);
  const heard = await hear([
    () => llamaPrice(coin, sources, nowMs),
    () => llamaChange(coin, sources),
    () => dexQuote(chain, address, sources),
  ]);
  // The other sources are asked only for what is still missing, because they allow few requests.
  if (lacks(heard, 'price') || lacks(heard, 'volume24h') || lacks(heard, 'marketCap')) {
    heard.push(...(await hear([() => geckoTerminalQuote(chain, address, sources)])));
  }
  if (lacks(heard, 'price'))
    heard.push(...(await hear([() => coinGeckoTokenQuote(chain, address, sources)])));
  return priceFrom(heard, token, notes, () =>
    notFound('tokenAddress', `No source knows a price of ${address} on ${chain}.`),
  );
}

async function priceOfCoin(coinId: string, ticker: string, sources: PriceSources, nowMs: number) {
  const coin = `coingecko:${coinId}`;
  const heard = await hear([
    () => llamaPrice(coin, sources, nowMs),
    () => llamaChange(coin, sources),
    () => coinGeckoQuote(coinId, sources),
  ]);
  const note = `${ticker} is taken to mean the coin "${coinId}", not a token of that name on some chain.`;
  return priceFrom(heard, null, [note], () => notFound('symbol', `No source knows a price of ${ticker}.`));
}

/** The token with that ticker whose pool is deepest. */
async function tokenByTicker(
  ticker: string,
  chain: ChainName | undefined,
  sources: PriceSources,
): Promise<Token & { note: string }> {
  const { value } = await sources.dexscreener.search(ticker);
  const wanted = ticker.toUpperCase();
  const pairs = value
    .filter(({ base }) => base.symbol?.toUpperCase() === wanted)
    .filter(({ liquidityUsd }) => (liquidityUsd ?? 0) >= MIN_POOL_OF_TICKER_USD)
    .sort((a, b) => (b.liquidityUsd ?? 0) - (a.liquidityUsd ?? 0));
  for (const pair of pairs) {
    const home = CHAINS.find((name) => name === pair.chain);
    if (home === undefined || (chain !== undefined && chain !== home)) continue;
    const namesakes =
      new Set(pairs.map((other) => `${other.chain}:${other.base.address.toLowerCase()}`)).size - 1;
    const warning =
      namesakes > 0 ? ` ${namesakes} more carry this ticker: give tokenAddress and chain to be sure.` : '';
    const note = `${ticker} was taken to be ${pair.base.address} on ${home}, the one with the deepest pool.${warning}`;
    return { chain: home, address: pair.base.address, note };
  }
  const where = chain === undefined ? '' : ` on ${chain}`;
  throw notFound(
    'symbol',
    `No token ${ticker} has a pool of at least ${MIN_POOL_OF_TICKER_USD} USD${where}.`,
  );
}

/** What each source answered: a quote, null for "unknown", or its failure. */
type Heard = (TokenQuote | UpstreamUnavailable | null)[];
type Figure = 'price' | 'change24h' | 'volume24h' | 'marketCap' | 'liquidityUsd' | 'symbol' | 'name';

function hear(questions: readonly (() => Promise<TokenQuote | null>)[]): Promise<Heard> {
  return Promise.all(
    questions.map(async (question) => {
      try {
        return await question();
      } catch (error) {
        if (error instanceof UpstreamUnavailable) return error;
        throw error;
      }
    }),
  );
}

/** The quotes, most trusted first: in the order of asking, but doubtful prices after all others. */
function quotesOf(heard: Heard): TokenQuote[] {
  const quotes = heard.filter(
    (one): one is TokenQuote => one !== null && !(one instanceof UpstreamUnavailable),
  );
  return [...quotes.filter(({ doubt }) => doubt === null), ...quotes.filter(({ doubt }) => doubt !== null)];
}

function lacks(heard: Heard, figure: Figure): boolean {
  return quotesOf(heard).every((quote) => quote[figure] === null);
}

/**
 * Each figure from the first source that has it.
 *
 * @throws `unknown` when all who answered know no price; a failure when one that might know it did not answer
 */
function priceFrom(heard: Heard, token: Token | null, notes: string[], unknown: () => Error): Answer<Fields> {
  const quotes = quotesOf(heard);
  const failures = heard.filter((one) => one instanceof UpstreamUnavailable);
  const from = (figure: Figure) => quotes.find((quote) => quote[figure] !== null);
  const priced = from('price');
  if (priced === undefined || priced.price === null) {
    const silent = failures.find(({ reason }) => reason !== 'not_configured');
    throw silent ?? (failures.length === heard.length ? failures[0] : undefined) ?? unknown();
  }

  const [changed, traded, capped] = [from('change24h'), from('volume24h'), from('marketCap')];
  const used = new Set(
    [priced, changed, traded, capped, from('liquidityUsd')].filter((quote) => quote !== undefined),
  );
  const said = [...notes];
  said.push(
    `price: ${nameOf(priced)}; change24h: ${nameOf(changed)}; volume24h: ${nameOf(traded)}; marketCap: ${nameOf(capped)}.`,
  );
  for (const quote of used) said.push(...quote.notes);
  for (const { doubt } of quotes) if (doubt !== null) said.push(doubt);
  const price = priced.price;
  for (const other of quotes) {
    if (other.price !== null && Math.abs(other.price / price - 1) > LARGEST_DISAGREEMENT) {
      said.push(`${other.source.name} has another price: ${other.price} USD.`);
    }
  }
  for (const { upstream, reason } of failures) said.push(`${upstream} did not answer (${reason}).`);
  if (traded === undefined) said.push('volume24h is null: no source that answered knows it.');
  if (capped === undefined) said.push('marketCap is null: no source that answered knows it.');
  if (changed === undefined) said.push('change24h is null: no source that answered knows it.');

  return pricedAnswer(
    {
      price,
      change24h: changed?.change24h ?? null,
      volume24h: traded?.volume24h ?? null,
      marketCap: capped?.marketCap ?? null,
      symbol: from('symbol')?.symbol ?? null,
      name: from('name')?.name ?? null,
      tokenAddress: token?.address ?? null,
      chain: token?.chain ?? null,
      liquidityUsd: from('liquidityUsd')?.liquidityUsd ?? null,
      source: priced.source.name,
      fieldSources: {
        price: priced.source.name,
        change24h: changed?.source.name ?? null,
        volume24h: traded?.source.name ?? null,
        marketCap: capped?.source.name ?? null,
      },
    },
    {
      method:
        'Each figure from the first source that has it; a price that is old or unsure gives way to another source.',
      sources: [...used].map(({ source }) => source),
      notes: [...new Set(said)],
    },
  );
}

function nameOf(quote: TokenQuote | undefined): string {
  return quote?.source.name ?? 'unknown';
}
