import { chainName, limit, numberBetween, outsiderText } from '@farebox/core/service/fields';
import { answer, type Source } from '@farebox/core/words/answer';
import { CHAINS, type ChainName } from '@farebox/core/words/chain-names';
import { noAnswer, notFound, sourceUnavailable, UpstreamUnavailable } from '@farebox/core/words/failure';
import { type Address, formatUnits, isAddressEqual, zeroAddress } from 'viem';
import { z } from 'zod';
import { llamaToken } from '../../upstreams/adapters/defillama.ts';
import { EVM_CHAIN_NAMES, type EvmChainName, evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import { readTokens } from '../shared/chain/chain-token.ts';
import { evmAddress } from '../shared/wallet/wallet-address.ts';
import {
  chainList,
  choice,
  type EvmChains,
  headOf,
  isNotConfigured,
} from '../shared/wallet/wallet-chains.ts';
import { worth } from '../shared/wallet/wallet-holdings.ts';
import { listedCoins, usdPrices } from '../shared/wallet/wallet-prices.ts';
import { recentTransfers, type ScannedWindow, type Transfer } from '../shared/wallet/wallet-transfers.ts';

const DEFAULT_MIN_USD = 50_000;
/** How many blocks are asked for their time, if the node does not state it with the event. */
const MOST_BLOCKS_ASKED = 25;

const chainsAsked = ({
  chain,
  chains,
}: {
  chain?: ChainName | undefined;
  chains?: ChainName[] | undefined;
}) => (chain === undefined ? (chains ?? []) : [...new Set([chain, ...(chains ?? [])])]);

export default defineService({
  path: 'whale-alerts',
  name: 'Whale Wallet Alerts',
  tag: 'Trading Intelligence',
  priceUsd: '0.35',
  summary:
    "The largest transfers of well-known tokens in the last minutes on each chain, read from the chains' own events and priced in USD.",
  keywords:
    'whale whales big large huge holder holders transfer transfers move moved moves moving transaction transactions million millions sent funds follow smart money movements exchange inflow outflow dump',
  input: z
    .object({
      chain: chainName.optional(),
      chains: chainList('Chains to scan; all that this server can read unless given'),
      minValueUsd: numberBetween(0, 1e12, 'Smallest transfer to report, in USD; 50,000 unless given').default(
        DEFAULT_MIN_USD,
      ),
      tokenAddress: evmAddress('Only this token, on one chain; well-known tokens unless given').optional(),
      limit: limit(20, 100),
    })
    .refine((input) => input.tokenAddress === undefined || chainsAsked(input).length === 1, {
      path: ['chain'],
      message: 'is required with tokenAddress, and only one',
    }),
  output: z.object({
    alerts: z
      .array(
        z.object({
          chain: z.enum(CHAINS).describe('The chain, by name'),
          token: outsiderText(100).describe('Symbol; the address where the token has none'),
          tokenAddress: z.string().describe('Address of the token'),
          amount: z.string().describe('In whole tokens, exactly'),
          valueUsd: z.number().nonnegative().describe('Value in USD'),
          direction: z.enum(['transfer', 'mint', 'burn']).describe('mint makes tokens, burn destroys them'),
          from: z.string().describe('The sender'),
          to: z.string().describe('The recipient, or the contract that is called'),
          txHash: z.string().describe('The transaction'),
          logIndex: z.number().int().describe('Its event in that block'),
          blockNumber: z.number().int().describe('Its block'),
          timestamp: z.iso.datetime().nullable().describe('Of the block'),
        }),
      )
      .describe('The largest first'),
    count: z.number().int().describe('Length of alerts'),
    totalFound: z.number().int().describe('Transfers above the threshold in what was scanned'),
    thresholdUsd: z.number().describe('The least value that counts, in USD'),
    scanned: z
      .array(
        z.object({
          chain: z.enum(CHAINS).describe('The chain, by name'),
          fromBlock: z.number().int().nullable().describe('The first block; null where none was read'),
          toBlock: z.number().int().nullable().describe('The last block; null where none was read'),
          transfers: z.number().int().describe('How many were looked through'),
          tokens: z.array(outsiderText(100)).describe('Whose transfers were looked through'),
          error: z
            .enum(['not_configured', 'unavailable', 'not_evm', 'no_token_priced'])
            .nullable()
            .describe('Why it could not be read; null where it was'),
        }),
      )
      .describe('What was looked through on each chain'),
  }),
  example: { chain: 'base', minValueUsd: 50_000 },
  aliases: {
    network: 'chain',
    chainId: 'chain',
    networks: 'chains',
    threshold: 'minValueUsd',
    minValue: 'minValueUsd',
    minUsd: 'minValueUsd',
    token: 'tokenAddress',
    contractAddress: 'tokenAddress',
    address: 'tokenAddress',
  },
  needs: [EVM_CHAIN_NAMES, 'defillama'],
  async run(input, { upstreams, nowMs }) {
    const named = chainsAsked(input);
    const asked: readonly ChainName[] = named.length > 0 ? named : EVM_CHAIN_NAMES;
    const failures: UpstreamUnavailable[] = [];
    const scans = await Promise.all(
      asked.map(async (chain): Promise<Scan> => {
        if (chain === 'solana') return { chain, error: 'not_evm' };
        try {
          return await scan(chain, input.tokenAddress, input.minValueUsd, upstreams, nowMs());
        } catch (error) {
          if (!(error instanceof UpstreamUnavailable) || error.upstream === 'defillama') throw error;
          if (isNotConfigured(error)) return { chain, error: 'not_configured' };
          failures.push(error);
          return { chain, error: 'unavailable' };
        }
      }),
    );
    const done = scans.filter((one) => one.error === null);
    if (done.length === 0) throw failures[0] ?? (await nothingToScan(scans, upstreams));

    const found = done
      .flatMap(({ window }) => window.kept)
      .sort((a, b) => b.valueUsd - a.valueUsd || Number(b.transfer.blockNumber - a.transfer.blockNumber));
    const largest = found.slice(0, input.limit);
    const timesMs = await timesOf(largest, upstreams);
    const reported = scans.filter(({ error }) => named.length > 0 || error !== 'not_configured');
    const notes = notesOf(reported, done);
    if (found.length > largest.length) {
      notes.push(
        `${found.length - largest.length} more transfers are above the threshold: raise limit or minValueUsd.`,
      );
    }
    return answer(
      {
        alerts: largest.map((one) => ({
          chain: one.chain,
          token: one.token.symbol ?? one.token.address,
          tokenAddress: one.token.address,
          amount: formatUnits(one.transfer.amount, one.token.decimals),
          valueUsd: one.valueUsd,
          direction: directionOf(one.transfer),
          from: one.transfer.from,
          to: one.transfer.to,
          txHash: one.transfer.transactionHash,
          logIndex: one.transfer.logIndex,
          blockNumber: Number(one.transfer.blockNumber),
          timestamp: isoOf(timesMs.get(blockKey(one)) ?? null),
        })),
        count: largest.length,
        totalFound: found.length,
        thresholdUsd: input.minValueUsd,
        scanned: reported.map((one) =>
          one.error === null
            ? {
                chain: one.chain,
                fromBlock: Number(one.window.fromBlock),
                toBlock: Number(one.window.toBlock),
                transfers: one.window.transfers,
                tokens: one.tokens.map(({ symbol, address }) => symbol ?? address),
                error: null,
              }
            : {
                chain: one.chain,
                fromBlock: null,
                toBlock: null,
                transfers: 0,
                tokens: [],
                error: one.error,
              },
        ),
      },
      {
        method:
          "ERC-20 Transfer events (eth_getLogs) of the tokens in the blocks of scanned, valued at DefiLlama's current prices.",
        sources: done.flatMap(({ sources }) => sources),
        notes,
      },
    );
  },
});

interface WatchedToken {
  address: Address;
  symbol: string | null;
  decimals: number;
  priceUsd: number;
}

interface Found {
  chain: EvmChainName;
  token: WatchedToken;
  transfer: Transfer;
  valueUsd: number;
}

interface DoneScan {
  chain: EvmChainName;
  error: null;
  tokens: WatchedToken[];
  /** Symbols of tokens that could not be watched. */
  left: string[];
  window: ScannedWindow<Found>;
  sources: Source[];
}

interface FailedScan {
  chain: ChainName;
  error: 'not_configured' | 'unavailable' | 'not_evm' | 'no_token_priced';
}
type Scan = DoneScan | FailedScan;

async function scan(
  name: EvmChainName,
  only: Address | undefined,
  minValueUsd: number,
  upstreams: EvmChains & Pick<Upstreams, 'defillama'>,
  nowMs: number,
): Promise<Scan> {
  const chain = upstreams[name];
  const listed = only === undefined ? evmChainFacts(name).tokens : [{ address: only, symbol: only }];
  const [head, prices] = await Promise.all([
    headOf(chain),
    only === undefined
      ? usdPrices([], upstreams, nowMs, listedCoins(name))
      : usdPrices([llamaToken(name, only)], upstreams, nowMs),
  ]);
  const addresses = listed.map(({ address }) => address);
  const facts = await readTokens(chain, addresses, head.blockNumber);
  const tokens: WatchedToken[] = [];
  const left: string[] = [];
  for (const { address, symbol } of listed) {
    const priceUsd = prices.of(llamaToken(name, address)).usd;
    const said = facts.get(address.toLowerCase());
    if (said === undefined || said.decimals === null || priceUsd === null) left.push(symbol);
    else tokens.push({ address, symbol: said.symbol, decimals: said.decimals, priceUsd });
  }
  if (tokens.length === 0) {
    if (only !== undefined) throw unwatchable(only, name, facts.get(only.toLowerCase())?.decimals ?? null);
    return { chain: name, error: 'no_token_priced' };
  }

  const byAddress = new Map(tokens.map((token) => [token.address.toLowerCase(), token]));
  const window = await recentTransfers(
    head,
    tokens.map(({ address }) => address),
    (transfer): Found | null => {
      const token = byAddress.get(transfer.token.toLowerCase());
      if (token === undefined) return null;
      const valueUsd = worth({ amount: transfer.amount, decimals: token.decimals }, token.priceUsd);
      return valueUsd < minValueUsd ? null : { chain: name, token, transfer, valueUsd };
    },
  );
  if (window === null) {
    throw sourceUnavailable(name, 'upstream_down', `${evmChainFacts(name).title}: the node gives no events`);
  }
  return { chain: name, error: null, tokens, left, window, sources: [head.source, ...prices.sources] };
}

function unwatchable(token: Address, chain: EvmChainName, decimals: number | null): Error {
  return decimals === null
    ? notFound('tokenAddress', `There is no ERC-20 token at ${token} on ${chain}.`)
    : noAnswer('TOKEN_NOT_PRICED', `No reliable price is known for ${token} on ${chain}.`, 'tokenAddress');
}

async function nothingToScan(scans: readonly Scan[], chains: EvmChains): Promise<Error> {
  const why = scans.map(({ chain, error }) => `${chain} (${(error ?? '').replaceAll('_', ' ')})`).join(', ');
  return noAnswer('NO_CHAIN_TO_READ', `Nothing could be scanned: ${why}. ${await choice(chains)}`, 'chain');
}

function directionOf({ from, to }: Transfer): 'transfer' | 'mint' | 'burn' {
  if (isAddressEqual(from, zeroAddress)) return 'mint';
  return isAddressEqual(to, zeroAddress) ? 'burn' : 'transfer';
}

function blockKey({ chain, transfer }: Found): string {
  return `${chain}:${transfer.blockNumber}`;
}

/** The time of each one's block: from the event, or from the block itself, for a bounded number of blocks. */
async function timesOf(found: readonly Found[], chains: EvmChains): Promise<ReadonlyMap<string, number>> {
  const times = new Map<string, number>();
  const untold = new Map<string, Found>();
  for (const one of found) {
    const { timestampMs } = one.transfer;
    if (timestampMs !== null) times.set(blockKey(one), timestampMs);
    else if (untold.size < MOST_BLOCKS_ASKED) untold.set(blockKey(one), one);
  }
  await Promise.all(
    [...untold].map(async ([key, { chain, transfer }]) => {
      const { timestamp } = await chains[chain].client.getBlock({ blockNumber: transfer.blockNumber });
      times.set(key, Number(timestamp) * 1_000);
    }),
  );
  return times;
}

function isoOf(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}

function notesOf(reported: readonly Scan[], done: readonly DoneScan[]): string[] {
  const notes = [
    "Only ERC-20 transfers of the tokens in scanned are looked through: the chains' own coins are not. Many large ones are between contracts, such as swaps. The newest blocks may still be reorganised.",
  ];
  for (const { chain, error } of reported) {
    if (error !== null) notes.push(`${chain} was not scanned: ${error.replaceAll('_', ' ')}.`);
  }
  for (const { chain, left } of done) {
    if (left.length > 0) {
      notes.push(`On ${chain}, not watched for want of a contract or a sure price: ${left.join(', ')}.`);
    }
  }
  return notes;
}
