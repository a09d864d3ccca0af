/**
 * The sandbox's EVM chain: a node of its own with Base's chain id, on which USDC, Uniswap, ERC-8004, the lending
 * protocols of the yield vault and what wallets rely on are where Base has them. Built on the first start, kept over restarts.
 */
import { type Address, parseEther } from 'viem';
import { StartError } from '../../../process/src/start-error.ts';
import { accountsOf, BUILDERS, type MoneyAccounts } from './accounts.ts';
import { CHAIN_ID, MULTICALL3, PERMIT2, UNISWAP_FACTORY, USDC } from './addresses.ts';
import { startAnvil } from './anvil.ts';
import { borrowAndRepay } from './lending/borrowers.ts';
import { placeLending } from './lending/place.ts';
import { readManifest } from './lending/snapshot.ts';
import { ethPriceUsd } from './market-price.ts';
import { buildMulticall3 } from './multicall3.ts';
import { connect, hasCode, type Node } from './node.ts';
import { placeOwnContracts } from './own-contracts.ts';
import { buildPermit2 } from './permit2.ts';
import { buildUniswap, tradeToMarket } from './uniswap.ts';
import { buildUsdc, mintUsdc, usdcBalanceMicros } from './usdc.ts';

export interface EvmChain {
  /** JSON-RPC over HTTP, and over websocket at the same address. */
  url: string;
  /** The yield vault, and the contract that deposits into it with a permit. */
  vault: Address;
  permitDeposit: Address;
  /** Settles when the node ends although nobody stopped it, with what is known of the reason. */
  died: Promise<string>;
  /** Saves the state and ends. */
  stop(): Promise<void>;
}

const REFUNDS_USDC_MICROS = 10_000_000_000n;
const FAUCET_USDC_MICROS = 1_000_000_000_000n;
/** As much as a development node gives its own accounts. */
const SENDERS_WEI = parseEther('10000');

/**
 * Starts the chain, a few seconds on the first start and a fraction of one later.
 *
 * @param options.stateDir where it is kept; null keeps nothing
 * @param options.seed the installation's, as `accountsOf` takes it
 * @param options.port any free one when left out
 * @throws StartError when the node cannot be started or its state does not fit this version of the sandbox
 */
export async function startEvmChain(options: {
  stateDir: string | null;
  seed: string;
  port?: number;
}): Promise<EvmChain> {
  const anvil = await startAnvil({
    stateDir: options.stateDir,
    port: options.port ?? 0,
    chainId: CHAIN_ID,
  });
  try {
    await build(connect(anvil.url), accountsOf(options.seed));
  } catch (cause) {
    await anvil.stop();
    throw new StartError(
      `the sandbox chain could not be built: ${cause instanceof Error ? cause.message : cause}`,
      { cause },
    );
  }
  anvil.keep();
  const { vault, permitDeposit } = readManifest();
  return { url: anvil.url, vault, permitDeposit, died: anvil.died, stop: anvil.stop };
}

/** Builds what is not there yet, so that a chain of an earlier version gets what later ones added. */
async function build(node: Node, accounts: MoneyAccounts): Promise<void> {
  const priceUsd = ethPriceUsd(Date.now());
  const missing = async (address: Address) => !(await hasCode(node, address));
  await placeOwnContracts(node);
  if (await missing(MULTICALL3)) await buildMulticall3(node);
  if (await missing(PERMIT2)) await buildPermit2(node);
  if (await missing(USDC)) {
    await buildUsdc(node);
    await mintUsdc(node, BUILDERS.faucet.address, FAUCET_USDC_MICROS);
  }
  await fund(node, accounts);
  if (await missing(UNISWAP_FACTORY)) await buildUniswap(node, priceUsd);
  else await tradeToMarket(node, priceUsd);
  await placeLending(node, accounts);
  await borrowAndRepay(node, Date.now());
}

/** Gives the installation's accounts what they work with, where they have nothing yet. */
async function fund(node: Node, { recipient: _, ...senders }: MoneyAccounts): Promise<void> {
  for (const { address } of Object.values(senders)) {
    if ((await node.getBalance({ address })) === 0n) await node.setBalance({ address, value: SENDERS_WEI });
  }
  const { address: refunds } = senders.refunds;
  if ((await usdcBalanceMicros(node, refunds)) === 0n) await mintUsdc(node, refunds, REFUNDS_USDC_MICROS);
}
