import { answer, type Source } from '@farebox/core/words/answer';
import { CHAINS, type ChainName } from '@farebox/core/words/chain-names';
import { noAnswer, UpstreamUnavailable } from '@farebox/core/words/failure';
import { type Address, formatGwei, parseAbi, serializeTransaction } from 'viem';
import { z } from 'zod';
import type { EvmChain } from '../../upstreams/adapters/evm.ts';
import { EVM_CHAIN_NAMES, evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import type { UpstreamName, Upstreams } from '../../upstreams/index.ts';
import { defineService } from '../define.ts';
import { chainList, headOf } from '../shared/wallet/wallet-chains.ts';
import { nativeCoin, usdPrices } from '../shared/wallet/wallet-prices.ts';

const SPEEDS = ['slow', 'standard', 'fast'] as const;
type Speed = (typeof SPEEDS)[number];

/** The tips that these parts of the gas in recent blocks paid at most. */
const TIP_PERCENTILES = [10, 50, 90];
const HISTORY_BLOCKS = 20;
/** How many full blocks in a row a transaction stays valid for: each raises the base fee by at most an eighth. */
const FULL_BLOCKS: Readonly<Record<Speed, number>> = { slow: 1, standard: 3, fast: 6 };

/** https://specs.optimism.io/protocol/exec-engine.html#l1-cost-fees-l1-fee-vault */
const L1_FEE_ORACLE: Address = '0x420000000000000000000000000000000000000F';
const L1_FEE_ABI = parseAbi(['function getL1Fee(bytes transaction) view returns (uint256)']);
/** Nobody's account, without code on any chain: a transfer between such is what a plain transfer costs. */
const NOBODY: Address = '0x000000000000000000000000000000000000dEaD';

/** https://solana.com/docs/core/fees: 5,000 lamports a signature; a transfer with a tip runs three instructions of 150. */
const LAMPORTS_PER_SIGNATURE = 5_000;
const TRANSFER_COMPUTE_UNITS = 450;

const fee = z.object({
  maxFeeGwei: z.number().nonnegative().nullable().describe('Most to offer a unit of gas; null on solana'),
  priorityFeeGwei: z.number().nonnegative().nullable().describe('Tip a unit of gas; null on solana'),
  maxFeeWei: z
    .string()
    .nullable()
    .describe('Most to pay for a unit of gas, in wei; null where the chain has no such fee'),
  priorityFeeWei: z
    .string()
    .nullable()
    .describe('Tip for a unit of gas, in wei; null where the chain has no such fee'),
  priorityFeeMicroLamports: z
    .number()
    .nonnegative()
    .nullable()
    .describe('Tip a compute unit; null but on solana'),
  usdTransfer: z
    .number()
    .nonnegative()
    .nullable()
    .describe('USD that a transfer of the native coin would pay now'),
});
export const output = z.object({
  gasPrices: z
    .array(
      z.object({
        chain: z.enum(CHAINS).describe('The chain, by name'),
        chainId: z.number().int().nullable().describe('EIP-155 id; null on solana, which has none'),
        nativeSymbol: z.string().describe('Ticker of the chain’s own coin'),
        nativePriceUsd: z.number().positive().nullable().describe('Its price in USD; null where nobody says'),
        baseFeeGwei: z.number().nonnegative().nullable().describe('Base fee of the next block'),
        gasPriceGwei: z
          .number()
          .nonnegative()
          .nullable()
          .describe('What the node itself suggests (eth_gasPrice)'),
        slow: fee.describe('For a transaction that can wait'),
        standard: fee.describe('For a usual transaction'),
        fast: fee.describe('For a transaction in a hurry'),
        transferGas: z.number().int().nullable().describe('Gas of a transfer of the native coin'),
        l1FeeWei: z
          .string()
          .nullable()
          .describe(
            'What such a transfer pays for its data on Ethereum; null where that is not charged apart',
          ),
        blockNumber: z.number().int().nullable().describe('Newest block, or slot on solana'),
      }),
    )
    .describe('One for each chain'),
  unavailable: z
    .array(
      z.object({
        chain: z.enum(CHAINS).describe('The chain, by name'),
        reason: z.string().describe('Why not'),
      }),
    )
    .describe('Chains that were asked for and could not be read'),
});
type Row = z.input<typeof output>['gasPrices'][number];
type Fee = z.input<typeof fee>;

export default defineService({
  path: 'gas-price-oracle',
  name: 'Gas Price Oracle',
  tag: 'Trading Intelligence',
  priceUsd: '0.10',
  mpp: true,
  summary:
    'Base fee and three tip levels on each chain, from what recent blocks really paid, and what a transfer costs in USD.',
  keywords:
    'gas fee fees network transaction cost gwei priority tip congestion cheap expensive base eip1559 blockspace busy ethereum polygon arbitrum transfer now send',
  featured: true,
  input: z.object({
    chains: chainList('Chains to read; all that this server can read unless given'),
  }),
  output,
  example: { chains: ['base'] },
  aliases: { chain: 'chains', network: 'chains', networks: 'chains', chainId: 'chains' },
  needs: [[...EVM_CHAIN_NAMES, 'solana']],
  uses: ['defillama'],
  async run({ chains }, { upstreams, nowMs }) {
    const asked = chains === undefined || chains.length === 0 ? CHAINS : chains;
    const readings = await Promise.all(asked.map((chain) => readingOf(chain, upstreams)));
    const read = readings.filter((reading) => 'row' in reading);
    const failed = readings.filter((reading) => 'failure' in reading);
    if (read.length === 0) throw nothingRead(failed);

    const notes = [...new Set(read.flatMap((reading) => reading.notes))];
    const sources = read.map(({ source }) => source);
    const prices = await pricesOf(
      read.map(({ row }) => row.chain),
      upstreams,
      nowMs(),
    );
    if ('failure' in prices) notes.push(`No prices in USD: defillama did not answer (${prices.failure}).`);
    else sources.push(prices.source);

    // A caller that asks for all chains gets those that are configured here.
    const named = chains !== undefined && chains.length > 0;
    const missing = failed.filter(({ failure }) => named || failure.reason !== 'not_configured');
    const silent = failed.filter((reading) => !missing.includes(reading)).map(({ chain }) => chain);
    if (silent.length > 0) notes.push(`Not configured on this server: ${silent.join(', ')}.`);
    return answer(
      {
        gasPrices: read.map(({ row, costs }) => {
          const price = 'failure' in prices ? null : prices.usd(row.chain);
          return priced(row, costs, price);
        }),
        unavailable: missing.map(({ chain, failure }) => ({ chain, reason: failure.reason })),
      },
      {
        method:
          `eth_feeHistory over ${HISTORY_BLOCKS} blocks: slow, standard and fast tips are the medians, over the blocks that had ` +
          `transactions, of the tips at the ${TIP_PERCENTILES.join('th, ')}th percentile of gas. maxFee is the tip plus the next base fee ` +
          'raised by an eighth for each of 1, 3 and 6 full blocks (EIP-1559): a cap, not the price. usdTransfer takes the next base ' +
          'fee as it is, plus the tip, times the gas that the node estimates for a transfer, plus the L1 data fee on OP-stack chains.',
        sources,
        notes,
      },
    );
  },
});

/** What a transfer costs at each speed, in whole native coins; null where the gas is not known. */
type Costs = Record<Speed, number | null>;
type Reading =
  | { chain: ChainName; row: Row; costs: Costs; source: Source; notes: string[] }
  | { chain: ChainName; failure: UpstreamUnavailable };

async function readingOf(
  chain: ChainName,
  upstreams: Pick<Upstreams, (typeof EVM_CHAIN_NAMES)[number] | 'solana'>,
): Promise<Reading> {
  try {
    return await (chain === 'solana' ? readSolana(upstreams.solana) : readEvm(upstreams[chain]));
  } catch (error) {
    if (error instanceof UpstreamUnavailable) return { chain, failure: error };
    throw error;
  }
}

function nothingRead(failed: readonly { chain: ChainName; failure: UpstreamUnavailable }[]): Error {
  const down = failed.find(({ failure }) => failure.reason !== 'not_configured');
  if (down !== undefined) return down.failure;
  const chains = failed.map(({ chain }) => chain).join(', ');
  return noAnswer('CHAIN_NOT_CONFIGURED', `Not configured on this server: ${chains}.`, 'chains');
}

async function readEvm(chain: EvmChain): Promise<Reading> {
  const notes: string[] = [];
  const { blockNumber, source } = await headOf(chain);
  const { opStack } = evmChainFacts(chain.name);
  const [history, gasPrice, transferGas, l1Fee] = await Promise.all([
    chain.client.getFeeHistory({ blockCount: HISTORY_BLOCKS, rewardPercentiles: TIP_PERCENTILES }),
    chain.client.getGasPrice(),
    chain.client.estimateGas({ account: NOBODY, to: NOBODY, value: 0n }),
    opStack ? l1FeeOf(chain) : undefined,
  ]);
  const nextBaseFee = history.baseFeePerGas.at(-1) ?? 0n;
  const paid = (history.reward ?? []).filter((_, index) => (history.gasUsedRatio[index] ?? 0) > 0);
  let tips = TIP_PERCENTILES.map((_, index) => median(paid.map((tipsOfBlock) => tipsOfBlock[index] ?? 0n)));
  if (paid.length === 0) {
    const suggested = await chain.client.estimateMaxPriorityFeePerGas();
    tips = TIP_PERCENTILES.map(() => suggested);
    notes.push(
      `The last ${HISTORY_BLOCKS} blocks of ${chain.name} were empty: all its tips are the node's own suggestion.`,
    );
  } else if (paid.length < HISTORY_BLOCKS / 2) {
    notes.push(`Only ${paid.length} of the last ${HISTORY_BLOCKS} blocks of ${chain.name} had transactions.`);
  }

  if (l1Fee === null) {
    notes.push(`${chain.name} does not tell its fee for data on Ethereum: usdTransfer is without it.`);
  }

  const fees = {} as Record<Speed, Fee>;
  const costs = {} as Costs;
  SPEEDS.forEach((speed, index) => {
    const tip = tips[index] ?? 0n;
    const cap = tip + afterFullBlocks(nextBaseFee, FULL_BLOCKS[speed]);
    fees[speed] = {
      maxFeeGwei: gwei(cap),
      priorityFeeGwei: gwei(tip),
      maxFeeWei: String(cap),
      priorityFeeWei: String(tip),
      priorityFeeMicroLamports: null,
      usdTransfer: null,
    };
    costs[speed] = Number((nextBaseFee + tip) * transferGas + (l1Fee ?? 0n)) / 1e18;
  });
  return {
    chain: chain.name,
    row: {
      chain: chain.name,
      chainId: chain.chainId,
      nativeSymbol: chain.nativeSymbol,
      nativePriceUsd: null,
      baseFeeGwei: gwei(nextBaseFee),
      gasPriceGwei: gwei(gasPrice),
      ...fees,
      transferGas: Number(transferGas),
      l1FeeWei: l1Fee == null ? null : String(l1Fee),
      blockNumber: Number(blockNumber),
    },
    costs,
    source,
    notes,
  };
}

/** The fee for the data of a plain transfer, in wei, from the chain's own oracle; null where that does not answer. */
async function l1FeeOf(chain: EvmChain): Promise<bigint | null> {
  const transfer = serializeTransaction({
    type: 'eip1559',
    chainId: chain.chainId,
    nonce: 100,
    to: NOBODY,
    value: 10n ** 18n,
    gas: 21_000n,
    maxFeePerGas: 10n ** 9n,
    maxPriorityFeePerGas: 10n ** 6n,
  });
  const call = {
    address: L1_FEE_ORACLE,
    abi: L1_FEE_ABI,
    functionName: 'getL1Fee',
    args: [transfer],
  } as const;
  const [read] = await chain.client.multicall({ contracts: [call] });
  return read.result ?? null;
}

async function readSolana(solana: Upstreams['solana']): Promise<Reading> {
  const { value, source } = await solana.recentPriorityFees();
  const tips = value.map(({ microLamportsPerComputeUnit }) => microLamportsPerComputeUnit);
  const fees = {} as Record<Speed, Fee>;
  const costs = {} as Costs;
  SPEEDS.forEach((speed, index) => {
    const tip = percentile(tips, TIP_PERCENTILES[index] ?? 50);
    fees[speed] = {
      maxFeeGwei: null,
      priorityFeeGwei: null,
      maxFeeWei: null,
      priorityFeeWei: null,
      priorityFeeMicroLamports: tip,
      usdTransfer: null,
    };
    const lamports = LAMPORTS_PER_SIGNATURE + Math.ceil(((tip ?? 0) * TRANSFER_COMPUTE_UNITS) / 1e6);
    costs[speed] = tip === null ? null : lamports / 1e9;
  });
  return {
    chain: 'solana',
    row: {
      chain: 'solana',
      chainId: null,
      nativeSymbol: 'SOL',
      nativePriceUsd: null,
      baseFeeGwei: null,
      gasPriceGwei: null,
      ...fees,
      transferGas: null,
      l1FeeWei: null,
      blockNumber: value.at(-1)?.slot ?? null,
    },
    costs,
    source,
    notes: [
      `solana has no gas price: a transaction pays ${LAMPORTS_PER_SIGNATURE} lamports a signature and a tip a compute unit. Its tips are ` +
        `percentiles (${TIP_PERCENTILES.join(', ')}) over ${value.length} recent slots of the least that any transaction paid.`,
    ],
  };
}

async function pricesOf(
  chains: readonly ChainName[],
  upstreams: Pick<Upstreams, Extract<UpstreamName, 'defillama'>>,
  nowMs: number,
): Promise<{ usd(chain: ChainName): number | null; source: Source } | { failure: string }> {
  try {
    const prices = await usdPrices([...new Set(chains.map(nativeCoin))].sort(), upstreams, nowMs);
    return { usd: (chain) => prices.of(nativeCoin(chain)).usd, source: prices.sources[0] };
  } catch (error) {
    if (error instanceof UpstreamUnavailable) return { failure: error.reason };
    throw error;
  }
}

function priced(row: Row, costs: Costs, nativePriceUsd: number | null): Row {
  const usdOf = (speed: Speed) => {
    const coins = costs[speed];
    return coins === null || nativePriceUsd === null ? null : Number((coins * nativePriceUsd).toPrecision(6));
  };
  return {
    ...row,
    nativePriceUsd,
    slow: { ...row.slow, usdTransfer: usdOf('slow') },
    standard: { ...row.standard, usdTransfer: usdOf('standard') },
    fast: { ...row.fast, usdTransfer: usdOf('fast') },
  };
}

/** The base fee after so many full blocks in a row; EIP-1559 raises it by at most an eighth a block. */
function afterFullBlocks(baseFee: bigint, blocks: number): bigint {
  let raised = baseFee;
  for (let block = 0; block < blocks; block++) raised += (raised + 7n) / 8n;
  return raised;
}

/** The lower of the two middle values where there are two: a tip that was really paid. */
function median(values: readonly bigint[]): bigint {
  const sorted = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0n;
}

/** Nearest rank; null of nothing. */
function percentile(values: readonly number[], percent: number): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? null;
}

function gwei(wei: bigint): number {
  return Number(formatGwei(wei));
}
