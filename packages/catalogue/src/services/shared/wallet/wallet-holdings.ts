import type { Source } from '@farebox/core/words/answer';
import type { ChainName } from '@farebox/core/words/chain-names';
import { type Address, erc20Abi, formatUnits } from 'viem';
import { llamaToken } from '../../../upstreams/adapters/defillama.ts';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';
import { evmChainFacts } from '../../../upstreams/adapters/evm-chains.ts';
import type { Upstreams } from '../../../upstreams/index.ts';
import { headOf } from './wallet-chains.ts';
import { nativeCoin } from './wallet-prices.ts';

/** Wallets with more tokens are full of advertising tokens. The rest is left out, and the answer says so. */
const MOST_SOLANA_TOKENS = 60;

/** Something that a wallet holds on one chain. */
export interface Holding {
  chain: ChainName;
  /** Null: the chain itself does not say (Solana). */
  symbol: string | null;
  /** Null: the chain's own coin. */
  address: string | null;
  decimals: number;
  /** In the smallest unit. */
  amount: bigint;
  /** What DefiLlama calls it. */
  coin: string;
}
export type TokenHolding = Holding & { address: string };

/** What a wallet holds on one chain, all of it at one block. */
export interface ChainHoldings {
  chain: ChainName;
  native: Holding;
  /** Those with something in them. */
  tokens: TokenHolding[];
  /** Symbols of the tokens that were looked for and found to exist; null: every token account of the wallet. */
  tokensChecked: string[] | null;
  /** The block, or Solana's slot. */
  blockNumber: bigint;
  source: Source;
  notes: string[];
}

/**
 * What a wallet holds on an EVM chain at the newest block: the coin, and of tokens those on the chain's list.
 *
 * @throws UpstreamUnavailable when the chain is not configured or cannot be reached
 */
export async function evmHoldings(
  chain: EvmChain,
  wallet: Address,
  withTokens: boolean,
): Promise<ChainHoldings> {
  const head = await headOf(chain);
  const held = await evmHoldingsAt(chain, wallet, withTokens, head.blockNumber);
  const { blockNumber, timestampMs } = head;
  return { ...held, blockNumber, source: chain.source({ blockNumber, timestampMs }) };
}

/** The same at any block whose state the node still has; viem's errors say that it has not. */
export async function evmHoldingsAt(
  chain: EvmChain,
  wallet: Address,
  withTokens: boolean,
  blockNumber: bigint,
): Promise<Omit<ChainHoldings, 'source'>> {
  const listed = withTokens ? evmChainFacts(chain.name).tokens : [];
  const [amount, answers] = await Promise.all([
    chain.client.getBalance({ address: wallet, blockNumber }),
    chain.client.multicall({
      blockNumber,
      contracts: listed.flatMap(({ address }) => [
        { abi: erc20Abi, address, functionName: 'balanceOf', args: [wallet] } as const,
        { abi: erc20Abi, address, functionName: 'decimals' } as const,
      ]),
    }),
  ]);
  const tokens: TokenHolding[] = [];
  const checked: string[] = [];
  const silent: string[] = [];
  listed.forEach(({ symbol, address }, index) => {
    const balance = answers[2 * index]?.result;
    const decimals = answers[2 * index + 1]?.result;
    if (typeof balance !== 'bigint' || typeof decimals !== 'number') {
      silent.push(symbol);
      return;
    }
    checked.push(symbol);
    if (balance === 0n) return;
    const coin = llamaToken(chain.name, address);
    tokens.push({ chain: chain.name, symbol, address, decimals, amount: balance, coin });
  });
  const notes =
    silent.length === 0
      ? []
      : [`On ${chain.name} there was no answer from the contracts of: ${silent.join(', ')}.`];
  return {
    chain: chain.name,
    native: {
      chain: chain.name,
      symbol: chain.nativeSymbol,
      address: null,
      decimals: 18,
      amount,
      coin: nativeCoin(chain.name),
    },
    tokens,
    tokensChecked: checked,
    blockNumber,
    notes,
  };
}

/**
 * What a wallet holds on Solana: SOL and all its token accounts.
 *
 * @throws UpstreamUnavailable when Solana is not configured or cannot be reached
 */
export async function solanaHoldings(
  { solana }: Pick<Upstreams, 'solana'>,
  wallet: string,
  withTokens: boolean,
): Promise<ChainHoldings> {
  const [lamports, accounts] = await Promise.all([
    solana.balanceOf(wallet),
    withTokens ? solana.tokenBalancesOf(wallet, null) : null,
  ]);
  const tokens = (accounts?.value ?? []).map(
    ({ mint, amount, decimals }): TokenHolding => ({
      chain: 'solana',
      symbol: null,
      address: mint,
      decimals,
      amount,
      coin: llamaToken('solana', mint),
    }),
  );
  const left = tokens.length - MOST_SOLANA_TOKENS;
  return {
    chain: 'solana',
    native: {
      chain: 'solana',
      symbol: 'SOL',
      address: null,
      decimals: 9,
      amount: lamports.value,
      coin: nativeCoin('solana'),
    },
    tokens: tokens.slice(0, MOST_SOLANA_TOKENS),
    tokensChecked: withTokens ? null : [],
    blockNumber: BigInt(lamports.slot),
    source: lamports.source,
    notes: left > 0 ? [`${left} more tokens of this wallet on solana are left out.`] : [],
  };
}

/** An amount in whole units, exactly. */
export function inUnits({ amount, decimals }: Pick<Holding, 'amount' | 'decimals'>): string {
  return formatUnits(amount, decimals);
}

/** What a holding is worth at a price, in USD to a millionth. */
export function worth(holding: Pick<Holding, 'amount' | 'decimals'>, priceUsd: number): number {
  return toMicroUsd(Number(inUnits(holding)) * priceUsd);
}

/** Cuts what floating-point sums leave behind the millionth of a dollar. */
export function toMicroUsd(usd: number): number {
  return Math.round(usd * 1e6) / 1e6;
}
