/** Which lists there are, where each comes from, and how old it may become. */
import type { ListName } from '../services/listed-parties.ts';
import { TOKEN_LIST_NAMES, type TokenListName } from '../services/listed-tokens.ts';
import { readEuList } from '../upstreams/adapters/eusanctions.ts';
import { EVM_CHAIN_NAMES, type EvmChainName, evmChainFacts } from '../upstreams/adapters/evm-chains.ts';
import { readMixerList } from '../upstreams/adapters/mixers.ts';
import { readOfacList } from '../upstreams/adapters/ofac.ts';
import type { ListedParty, PublishedList } from '../upstreams/adapters/published-list.ts';
import { type PublishedToken, readTokenList } from '../upstreams/adapters/token-list.ts';
import { readUkList } from '../upstreams/adapters/uksanctions.ts';
import { readUnList } from '../upstreams/adapters/unsc.ts';
import type { Download, Reply } from '../upstreams/define.ts';
import type { UpstreamName, Upstreams } from '../upstreams/index.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Each list that is fetched. */
export type DataListName = ListName | TokenListName;

/** @typeParam Entry what it lists */
export interface ListDefinition<Entry> {
  title: string;
  upstream: UpstreamName;
  /** Older than this, nothing is looked up in it: the publisher has not confirmed it for so long. */
  confirmedWithinMs: number;
  /**
   * The same for its own date: a publisher that goes on handing out a file which nobody keeps any more confirms it every
   * day. Each is well above the longest pause between two of its publications.
   */
  publishedWithinMs: number;
  fetch(upstreams: Upstreams, signal: AbortSignal | undefined): Promise<Reply<Download>>;
  read(file: Download): Promise<{ publishedAt: string; entries: readonly Entry[] }>;
}

const SANCTIONS_AGES = { confirmedWithinMs: 3 * DAY_MS, publishedWithinMs: 60 * DAY_MS };

const LISTS: Readonly<Record<ListName, ListDefinition<ListedParty>>> = {
  'ofac-sdn': {
    title: 'OFAC Specially Designated Nationals and Blocked Persons List',
    upstream: 'ofac',
    ...SANCTIONS_AGES,
    fetch: ({ ofac }, signal) => ofac.sdn(signal),
    read: async ({ bytes }) => partiesOf(await readOfacList(bytes)),
  },
  'ofac-consolidated': {
    title: 'OFAC Consolidated (non-SDN) Sanctions List',
    upstream: 'ofac',
    ...SANCTIONS_AGES,
    // It changes a few times a year.
    publishedWithinMs: 400 * DAY_MS,
    fetch: ({ ofac }, signal) => ofac.consolidated(signal),
    read: async ({ bytes }) => partiesOf(await readOfacList(bytes)),
  },
  un: {
    title: 'United Nations Security Council Consolidated List',
    upstream: 'unsc',
    ...SANCTIONS_AGES,
    fetch: ({ unsc }, signal) => unsc.consolidated(signal),
    read: async ({ bytes }) => partiesOf(await readUnList(bytes)),
  },
  uk: {
    title: 'UK Sanctions List',
    upstream: 'uksanctions',
    ...SANCTIONS_AGES,
    fetch: ({ uksanctions }, signal) => uksanctions.designations(signal),
    read: async ({ bytes, lastModified }) => partiesOf(await readUkList(bytes, lastModified)),
  },
  eu: {
    title: 'EU Consolidated Financial Sanctions List',
    upstream: 'eusanctions',
    ...SANCTIONS_AGES,
    fetch: ({ eusanctions }, signal) => eusanctions.consolidated(signal),
    read: async ({ bytes }) => partiesOf(await readEuList(bytes)),
  },
  mixers: {
    title: 'List of mixing services',
    upstream: 'mixers',
    confirmedWithinMs: 3 * DAY_MS,
    publishedWithinMs: 180 * DAY_MS,
    fetch: (upstreams, signal) => upstreams.mixers.all(signal),
    read: async ({ bytes }) => partiesOf(await readMixerList(bytes)),
  },
};

const TOKENS_CONFIRMED_WITHIN_MS = 7 * DAY_MS;

const COINGECKO_TOKENS = Object.fromEntries(
  EVM_CHAIN_NAMES.map((chain) => [`tokens-coingecko-${chain}`, coingeckoTokens(chain)]),
) as Record<`tokens-coingecko-${EvmChainName}`, ListDefinition<PublishedToken>>;

const TOKEN_LISTS: Readonly<Record<TokenListName, ListDefinition<PublishedToken>>> = {
  'tokens-uniswap': {
    title: 'Uniswap default token list',
    upstream: 'uniswaptokens',
    confirmedWithinMs: TOKENS_CONFIRMED_WITHIN_MS,
    // It changes a few times a year.
    publishedWithinMs: 400 * DAY_MS,
    fetch: ({ uniswaptokens }, signal) => uniswaptokens.all(signal),
    read: async ({ bytes }) => tokensOf(await readTokenList(bytes)),
  },
  ...COINGECKO_TOKENS,
};

const ALL: Readonly<Record<DataListName, ListDefinition<ListedParty | PublishedToken>>> = {
  ...LISTS,
  ...TOKEN_LISTS,
};
export const LIST_NAMES = Object.keys(LISTS) as ListName[];
export const DATA_LIST_NAMES: readonly DataListName[] = [...LIST_NAMES, ...TOKEN_LIST_NAMES];

/** The definition of a list by its name. */
export function definitionOf(name: DataListName): ListDefinition<ListedParty | PublishedToken> {
  return ALL[name];
}

function coingeckoTokens(chain: EvmChainName): ListDefinition<PublishedToken> {
  return {
    title: `CoinGecko token list of ${evmChainFacts(chain).title}`,
    upstream: 'coingeckotokens',
    confirmedWithinMs: TOKENS_CONFIRMED_WITHIN_MS,
    publishedWithinMs: 60 * DAY_MS,
    fetch: ({ coingeckotokens }, signal) => coingeckotokens.ofChain(chain, signal),
    read: async ({ bytes }) => tokensOf(await readTokenList(bytes)),
  };
}

function partiesOf({ publishedAt, parties }: PublishedList) {
  return { publishedAt, entries: parties };
}

function tokensOf({ publishedAt, tokens }: { publishedAt: string; tokens: readonly PublishedToken[] }) {
  return { publishedAt, entries: tokens };
}
