/**
 * The sandbox's two EVM chains, each with a node of its own. Calls are paid on the chain with Base's chain id. On it,
 * USDC, Uniswap, ERC-8004, the lending protocols of the yield vault and the contracts that wallets rely on have the
 * addresses that they have on Base. The chain with Ethereum's chain id is only read. Both are built on the first start
 * and kept over restarts.
 */
import { type Address, parseEther } from 'viem';
import { StartError } from '../../../process/src/start-error.ts';
import { accountsOf, BUILDERS, type MoneyAccounts } from './accounts.ts';
import { BASE, ETHEREUM, MULTICALL3, PERMIT2, type Places } from './addresses.ts';
import { startAnvil } from './anvil.ts';
import { borrowAndRepay } from './lending/borrowers.ts';
import { placeLending } from './lending/place.ts';
import { readManifest } from './lending/snapshot.ts';
import { ethPriceUsd } from './market-price.ts';
import { buildMulticall3 } from './multicall3.ts';
import { connect, hasCode, type Node } from './node.ts';
import type { NodeKeeper } from './node-keeper.ts';
import { placeOwnContracts } from './own-contracts.ts';
import { buildPermit2 } from './permit2.ts';
import { buildUniswap, tradeToMarket } from './uniswap.ts';
import { buildUsdc, mintUsdc, moveImplementation, usdcBalanceMicros } from './usdc.ts';

export interface ReadChain {
  /** JSON-RPC over HTTP, and over websocket at the same address. */
  url: string;
  /** Resolves when the node ends although nobody stopped it, with what is known of the reason. */
  died: Promise<string>;
  /** Saves the state and ends. */
  stop(): Promise<void>;
}

export interface EvmChain extends ReadChain {
  /** The yield vault. */
  vault: Address;
  /** The contract that deposits into the vault with a permit. */
  permitDeposit: Address;
}

const REFUNDS_USDC_MICROS = 10_000_000_000n;
const FAUCET_USDC_MICROS = 1_000_000_000_000n;
/** The balance that a development node gives each of its own accounts. */
const SENDERS_WEI = parseEther('10000');

/**
 * Starts the chain with Base's id. The first start takes a few seconds, later ones a fraction of a second.
 *
 * @param options.stateDir the folder in which the chain is kept; null: nothing is kept
 * @param options.seed the installation's secret, see `accountsOf`
 * @param options.port any free one when left out
 * @throws StartError when the node cannot be started or its state does not fit this version of the sandbox
 */
export async function startEvmChain(options: ChainOptions & { seed: string }): Promise<EvmChain> {
  const accounts = accountsOf(options.seed);
  const chain = await startChain(BASE, options, async (node) => {
    await fund(node, accounts);
    await placeLending(node, accounts);
    await borrowAndRepay(node, Date.now());
  });
  const { vault, permitDeposit } = readManifest();
  return { ...chain, vault, permitDeposit };
}

/**
 * Starts the chain with Ethereum's id. Nobody is paid on it: it has the contracts and pools that services read.
 *
 * @param options see `startEvmChain`
 * @throws StartError see `startEvmChain`
 */
export async function startEthereum(options: ChainOptions): Promise<ReadChain> {
  return startChain(ETHEREUM, options, async () => undefined);
}

interface ChainOptions {
  stateDir: string | null;
  port?: number;
  /** The process that runs the node; a new one when left out. */
  keeper?: NodeKeeper;
}

async function startChain(
  places: Places,
  { stateDir, port = 0, keeper }: ChainOptions,
  buildMore: (node: Node) => Promise<void>,
): Promise<ReadChain> {
  const anvil = await startAnvil({ stateDir, port, chainId: places.chainId }, keeper);
  try {
    const node = connect(anvil.url, places);
    await build(node);
    await buildMore(node);
  } catch (cause) {
    await anvil.stop();
    if (cause instanceof StartError) throw cause;
    throw new StartError(
      `the sandbox chain could not be built: ${cause instanceof Error ? cause.message : cause}`,
      { cause },
    );
  }
  anvil.keep();
  return { url: anvil.url, died: anvil.died, stop: anvil.stop };
}

/** Builds what is not there yet, so that a chain built by an earlier version gets what later versions added. */
async function build(node: Node): Promise<void> {
  const { usdc, usdcImplementation, uniswapFactory } = node.places;
  const priceUsd = ethPriceUsd(Date.now());
  const missing = async (address: Address) => !(await hasCode(node, address));
  await placeOwnContracts(node);
  if (await missing(MULTICALL3)) await buildMulticall3(node);
  if (await missing(PERMIT2)) await buildPermit2(node);
  if (await missing(usdc)) {
    await buildUsdc(node);
    await mintUsdc(node, BUILDERS.faucet.address, FAUCET_USDC_MICROS);
  } else if (await missing(usdcImplementation)) await moveImplementation(node);
  if (await missing(uniswapFactory)) await buildUniswap(node, priceUsd);
  else await tradeToMarket(node, priceUsd);
}

/** Gives ETH to the installation's accounts, except the recipient, and USDC to the refund account, where they have none. */
async function fund(node: Node, { recipient: _, ...senders }: MoneyAccounts): Promise<void> {
  for (const { address } of Object.values(senders)) {
    if ((await node.getBalance({ address })) === 0n) await node.setBalance({ address, value: SENDERS_WEI });
  }
  const { address: refunds } = senders.refunds;
  if ((await usdcBalanceMicros(node, refunds)) === 0n) await mintUsdc(node, refunds, REFUNDS_USDC_MICROS);
}
